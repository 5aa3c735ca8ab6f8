"""`python -m benchmarks.summaries`: what summaries keep of labelled dialogues."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.summaries.dialogues import Dialogue, generate
from benchmarks.summaries.measure import Score, measure
from memorywall.summaries import TokenCounter, summarize
from memorywall.summaries.statements import read_statements

HALVES = {"held out": "heldout.txt", "development": "development.txt"}
BUDGETS = (25, 10, 5)
_LEAST_TOKENS = 2_000


def estimate(text: str) -> int:
    """The tokens of a text, about four characters each."""
    return len(text) // 4 + 1


def main() -> None:
    """Measures both halves and prints a table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.summaries", description=__doc__)
    parser.add_argument("--dialogues", type=int, default=100, help="of each half (default: 100)")
    parser.add_argument("--half", choices=HALVES, help="only this half")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for half in [options.half] if options.half else HALVES:
        dialogues = generate(Path(__file__).with_name(HALVES[half]), options.dialogues)
        found[half] = _measure(half, dialogues, estimate)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


def _measure(half: str, dialogues: list[Dialogue], count: TokenCounter) -> dict[str, Any]:
    tokens = [count("\n".join(turn.text for turn in one.turns)) for one in dialogues]
    assert min(tokens) >= _LEAST_TOKENS
    labels = sum(len(one.labels) for one in dialogues)
    print(f"\n{half}: {len(dialogues)} dialogues of {min(tokens)} to {max(tokens)} tokens,")
    print(f"{labels} labelled statements\n")
    print("| budget | method | kept of what fits | labels kept | oracle | stale | altered | over |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    figures: dict[str, Any] = {}
    for percent in BUDGETS:
        scores = measure(dialogues, percent, count)
        figures[str(percent)] = {name: _figures(score) for name, score in scores.items()}
        for name, score in scores.items():
            print(
                f"| {percent} % | {name} | {_percent(score)} | {score.kept} of {score.labels}"
                f" | {score.possible} | {score.stale} | {score.altered} | {score.over} |"
            )
        by_category = scores["extractive"].by_category
        print("  ", ", ".join(f"{name} {a}/{b}" for name, (a, b) in sorted(by_category.items())))
    figures["classes"] = _classes(dialogues)
    seconds = _seconds(dialogues[:20], count)
    figures["milliseconds"] = statistics.median(seconds) * 1_000
    print(f"\none summary of a whole dialogue: {figures['milliseconds']:.0f} ms (median)")
    return figures


def _figures(score: Score) -> dict[str, Any]:
    return {
        "share": score.share,
        "kept": score.kept,
        "labels": score.labels,
        "possible": score.possible,
        "altered": score.altered,
        "stale": score.stale,
        "over": score.over,
        "by_category": score.by_category,
    }


def _percent(score: Score) -> str:
    """The share, with half the width of its 95 % interval over dialogues."""
    deviation = statistics.pstdev(score.shares)
    half = 1.96 * deviation / math.sqrt(len(score.shares))
    return f"{score.share:.1%} ± {half:.1%}"


def _classes(dialogues: list[Dialogue]) -> dict[str, int]:
    """Labels in statements that need not be kept, and statements to keep without a label."""
    missed = extra = 0
    for dialogue in dialogues:
        statements = read_statements(dialogue.turns, "")
        texts = [one.text for one in statements if one.must_keep]
        missed += sum(not any(one.text in text for text in texts) for one in dialogue.labels)
        labelled = [text for one in dialogue.labels for text in (one.text, one.replaces) if text]
        extra += sum(not any(one in text for one in labelled) for text in texts)
    print(f"\nlabels not recognized: {missed}; statements to keep without a label: {extra}")
    return {"missed": missed, "extra": extra}


def _seconds(dialogues: list[Dialogue], count: TokenCounter) -> list[float]:
    found = []
    for dialogue in dialogues:
        start = time.perf_counter()
        summarize(dialogue.turns, 512, count=count)
        found.append(time.perf_counter() - start)
    return found


if __name__ == "__main__":
    main()
