"""`make bench-context`: prints the tables of docs/context.md."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from tabulate import tabulate

from benchmarks.context.dialogues import generated, read
from benchmarks.context.evidence import WINDOWS, interval, measure
from benchmarks.context.speed import compile_times, prefixes
from memorywall.context.item import STRATEGIES

_TOKENS_OF_TURN = 30
_MOVED = 0.6
"""The share below which the turns of a prompt begin elsewhere than those of the one before it."""


def main() -> None:
    options = argparse.ArgumentParser(prog="make bench-context")
    options.add_argument("--data", type=Path, help="dialogues, in a form of bench-recall")
    options.add_argument("--embedder", default="none")
    options.add_argument("--questions", type=int, default=40)
    options.add_argument("--windows", type=int, nargs="+", default=WINDOWS)
    options.add_argument("--only", choices=("evidence", "prefix", "speed"))
    options.add_argument("--store", help="of the speed: PostgreSQL; default: SQLite")
    asked = options.parse_args()
    if asked.only in {None, "evidence"}:
        _evidence(asked.data, asked.embedder, asked.questions, asked.windows)
    if asked.only in {None, "prefix"}:
        rows = [
            [window, *map(fmean, prefixes(60, window).values())]
            for window in (1_500, 4_000, 16_000)
        ]
        print("\n" + tabulate(rows, ["window", *STRATEGIES], floatfmt=".3f", tablefmt="github"))
        _long_prefixes()
    if asked.only in {None, "speed"}:
        _speed(asked.store)


def _long_prefixes() -> None:
    """Prints the shares over 60 exchanges of several lengths, and what is lost where the turns
    move and elsewhere."""
    rows = []
    for repeated in range(1, 5):
        shares = prefixes(120, 3_000, repeated, ("hierarchical",))["hierarchical"]
        moves = [one for one in shares if one < _MOVED]
        lost = sum(1 - one for one in moves) / len(shares)
        rows.append([repeated, fmean(shares), len(moves), lost, 1 - fmean(shares) - lost])
    head = ["length", "share", "moves", "lost by moves", "lost otherwise"]
    print("\n" + tabulate(rows, head, floatfmt=".3f", tablefmt="github"))


def _evidence(data: Path | None, embedder: str, questions: int, windows: Sequence[int]) -> None:
    rows: dict[str, list[str]] = {}
    for window in windows:
        turns = int(3.2 * window / _TOKENS_OF_TURN)
        dialogues = read(data) if data else [generated(seed, turns) for seed in (11, 12)]
        found = measure(dialogues, embedder, (window,), questions)
        for (method, _), hits in found.items():
            share, half = interval(hits)
            rows.setdefault(method, []).append(f"{share:.3f} ± {half:.3f}")
    print(tabulate([[name, *cells] for name, cells in rows.items()],
                   ["method", *map(str, windows)], tablefmt="github"))  # fmt: skip


def _speed(store: str | None) -> None:
    rows = []
    sizes = ((100, 8_000), (1_000, 8_000), (10_000, 8_000), (1_000, 128_000))
    with tempfile.TemporaryDirectory() as directory:
        # PostgreSQL needs the same key for all sizes; each file of SQLite has a key of its own.
        places = [Path(directory, "" if store else f"{one[0]}-{one[1]}") for one in sizes]
        measured = [
            compile_times(place, turns, 10_000, 200, window, store)
            for place, (turns, window) in zip(places, sizes, strict=True)
        ]
    for (turns, window), times in zip(sizes, measured, strict=True):
        walls, cpus = (sorted(one) for one in zip(*times, strict=True))
        p50, p99 = (walls[int(len(walls) * share)] * 1_000 for share in (0.5, 0.99))
        rows.append([turns, window, p50, p99, cpus[len(cpus) // 2] * 1_000])
    print("\n" + tabulate(rows, ["turns", "window", "p50 ms", "p99 ms", "p50 CPU ms"],
                          floatfmt=".1f", tablefmt="github"))  # fmt: skip


if __name__ == "__main__":
    main()
