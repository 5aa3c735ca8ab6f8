"""What a promotion costs: `python -m benchmarks.promotions [--entries 100000]`.

Decides about new texts beside a semantic namespace of many entries, as dry runs, and prints the
processor time of each decision of the whole process, the search of the namespace included.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import memorywall

_SEED = 7
_AT_ONCE = 100
_DECISIONS = 60
_THINGS = tuple(
    f"{name} {part}"
    for name in ("cluster", "invoice", "parcel", "server", "report", "ticket", "budget", "backup")
    for part in ("job", "page", "key", "plan", "queue")
)
_VERBS = ("fails", "breaks", "starts", "stops", "moves", "waits", "expires", "renews")


def _text(chosen: random.Random, number: int) -> str:
    one, other = chosen.sample(_THINGS, 2)
    first, second = chosen.sample(_VERBS, 2)
    return (
        f"The {one} of team {number % 997} {first} when the {other} {second} on day {number % 365}."
    )


def main() -> None:
    """Measures, and prints the median and the 95th percentile."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=100_000)
    entries = parser.parse_args().entries
    chosen = random.Random(_SEED)
    with (
        tempfile.TemporaryDirectory() as folder,
        memorywall.open(Path(folder) / "memory.db", agent="ada") as client,
    ):
        for first in range(0, entries, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, entries))
            client.memory.batch(
                [
                    {
                        "namespace": "operations",
                        "key": str(number),
                        "memory_type": "semantic",
                        "value": {"text": _text(chosen, number)},
                    }
                    for number in numbers
                ]
            )
        took = []
        for number in range(_DECISIONS):
            text = f"{_text(chosen, entries + number)} Always retry it after the audit."
            case = client.memory.put("cases", str(number), {"text": text}, "episodic")
            begun = time.process_time()
            client.promotions.promote(case.id, "semantic", namespace="operations", dry_run=True)
            took.append((time.process_time() - begun) * 1_000)
        # The first decision loads the index.
        took = sorted(took[1:])
        print(f"{entries:,} entries: median {statistics.median(took):.1f} ms,", end=" ")
        print(f"95 % within {took[len(took) * 95 // 100]:.1f} ms")


if __name__ == "__main__":
    main()
