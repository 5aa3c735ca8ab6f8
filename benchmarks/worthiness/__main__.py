"""`python -m benchmarks.worthiness`: how much junk is admitted, and how much else refused."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import memorywall
from benchmarks.worthiness.candidates import HALVES, LabelledText, generate, written_by_hand
from memorywall.longterm.worthiness import MemoryCandidate, judge
from memorywall.summaries.words import content_words

ROUNDS = 1_000
_LEAST_CHARACTERS = 30
_SAME = 0.8
_RECALLED = 5
Decide = Callable[[Sequence[LabelledText]], list[bool]]


def store_everything(candidates: Sequence[LabelledText]) -> list[bool]:
    """Admits every text."""
    return [True] * len(candidates)


def by_length_and_novelty(candidates: Sequence[LabelledText]) -> list[bool]:
    """Admits texts of some length whose words are not nearly those of an admitted one."""
    admitted: list[frozenset[str]] = []
    decided: list[bool] = []
    for one in candidates:
        words = content_words(one.text)
        is_new = all(
            len(words & other) < _SAME * min(len(words), len(other) or 1) for other in admitted
        )
        decided.append(len(one.text) >= _LEAST_CHARACTERS and is_new)
        if decided[-1]:
            admitted.append(words)
    return decided


def by_rules(candidates: Sequence[LabelledText]) -> list[bool]:
    """Remembers each text and reads the verdict, with what was remembered before as memory."""
    decided: list[bool] = []
    with tempfile.TemporaryDirectory() as directory:
        client = memorywall.open(Path(directory) / "memory.db")
        for one in candidates:
            verdict = client.remember(one.text).worthiness
            assert verdict is not None
            decided.append(verdict.worthy)
        client.close()
    return decided


METHODS: dict[str, Decide] = {
    "store everything": store_everything,
    "length and novelty": by_length_and_novelty,
    "rules": by_rules,
}


def main() -> None:
    """Measures all sets and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worthiness", description=__doc__)
    parser.add_argument("--candidates", type=int, default=2_000, help="of a half (default: 2,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the halves and all choices")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of ingesting what is recalled")
    parser.add_argument("--set", type=Path, help="also a set: JSON Lines of `text` and `worthy`")
    options = parser.parse_args()
    sets: dict[str, list[LabelledText]] = {}
    sets |= {half: generate(half, options.candidates, options.seed) for half in HALVES}
    sets |= {f"by hand, {name}": some for name, some in written_by_hand().items()}
    if options.set:
        sets[options.set.stem] = _read(options.set)
    print("| set | method | junk admitted | worthy refused |\n| --- | --- | --- | --- |")
    for name, candidates in sets.items():
        for method, decide in METHODS.items():
            decided = decide(candidates)
            junk = _share(candidates, decided, is_worthy=False)
            refused = _share(candidates, [not one for one in decided], is_worthy=True)
            print(f"| {name} | {method} | {junk} | {refused} |")
    texts = [one.text for half in HALVES for one in sets[half]]
    begun = time.process_time()
    for text in texts:
        judge(MemoryCandidate(text=text))
    each = (time.process_time() - begun) / len(texts)
    print(f"\na verdict without the search: {each * 1e6:.0f} µs of processor time (mean)")
    _ingest([one.text for one in sets["held out"] if one.is_worthy], options.rounds, options.seed)


def _share(candidates: Sequence[LabelledText], wrong: Iterable[bool], *, is_worthy: bool) -> str:
    found = [bad for one, bad in zip(candidates, wrong, strict=True) if one.is_worthy is is_worthy]
    return f"{sum(found)} of {len(found)} ({100 * sum(found) / max(len(found), 1):.1f} %)"


def _read(path: Path) -> list[LabelledText]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [LabelledText(one["text"], one["worthy"], "", "") for one in lines]


def _ingest(texts: Sequence[str], rounds: int, seed: int) -> None:
    """Remembers again what was recalled, in several forms, and counts what it adds."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        client = memorywall.open(Path(directory) / "memory.db")
        for name in ("a new", "a known"):
            begun = time.process_time()
            for text in texts:
                client.remember(text)
            each = (time.process_time() - begun) / len(texts)
            print(f"{name} text: {each * 1e3:.2f} ms of processor time to remember (mean)")
        before, begun = client.memory.count(), time.process_time()
        for _ in range(rounds):
            said = [hit.text for hit in client.memory.search(rng.choice(texts), limit=_RECALLED)]
            rng.shuffle(said)
            listed = "\n".join(f"- {one}" for one in said)
            numbered = "\n".join(f'{place}. "{one}"' for place, one in enumerate(said, start=1))
            forms = (said[0], f"Recalled: {said[0]}", listed, f"Relevant memories:\n{numbered}")
            client.remember(rng.choice(forms))
        each = (time.process_time() - begun) / rounds
        added = client.memory.count() - before
        client.close()
    print(f"{rounds:,} rounds of recalling and ingesting added {added} entries to {before};")
    print(f"{each * 1e3:.1f} ms of processor time for each recall and its ingestion")


if __name__ == "__main__":
    main()
