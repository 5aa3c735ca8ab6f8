"""Measures sessions: turns beside plain creates, and checkpoints and resuming by length of session.

    python benchmarks/sessions.py [--store postgresql://...] [--lengths 100,1000,10000]

The calls go through the operation runner in this process, without HTTP, one at a time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import memorywall
from memorywall.sdk.client import Client

_SEED = 7
_SAMPLES = 300
_CHECKPOINTS = 40
_WORDS = """
    order refund invoice delivery address customer agent ticket amount account flight hotel booking
    plan budget meeting report server release database branch commit review garden kitchen paint
    doctor insurance claim letter school lesson exam recipe flour oven bicycle repair wheel brake
"""
_LIST = _WORDS.split()


def main() -> None:
    """Prints a table of the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", help="PostgreSQL; default: a SQLite file in a new directory")
    parser.add_argument("--lengths", default="100,1000,10000", help="turns of a session")
    asked = parser.parse_args()
    dice = random.Random(_SEED)
    print(f"{'turns':>6} {'create':>8} {'turn':>8} {'ratio':>6} {'checkpoint':>11} {'resume':>8}")
    for length in map(int, asked.lengths.split(",")):
        with _opened(asked.store) as client:
            _measure(client, dice, length)


def _measure(client: Client, dice: random.Random, length: int) -> None:
    session = client.sessions.create("ann")
    for start in range(0, length, 100):
        session.add_many(_turn(dice, start + place) for place in range(min(100, length - start)))
    session.checkpoint()
    creates, turns = [], []
    for number in range(_SAMPLES):
        text = _text(dice)
        value = {"role": "user", "content": text}
        creates.append(_milliseconds(partial(client.memory.set, "plain", str(number), value)))
        turns.append(_milliseconds(partial(session.add, "user", text)))
    checkpoints, resumes = [], []
    for _ in range(_CHECKPOINTS):
        session.add_many(_turn(dice, place) for place in range(10))
        checkpoints.append(_milliseconds(session.checkpoint))
        resumes.append(_milliseconds(session.resume))
    # The mean of a turn includes the checkpoints that the policy makes.
    create, turn = statistics.fmean(creates), statistics.fmean(turns)
    print(
        f"{length:>6} {create:>8.3f} {turn:>8.3f} {create / turn:>6.2f}"
        f" {statistics.median(checkpoints):>11.2f} {statistics.median(resumes):>8.2f}",
        flush=True,
    )


@contextmanager
def _opened(store: str | None) -> Iterator[Client]:
    with tempfile.TemporaryDirectory() as directory:
        place = store or str(Path(directory, "memory.db"))
        with memorywall.open(place, agent="bench") as client:
            yield client


def _turn(dice: random.Random, number: int) -> dict[str, str]:
    return {"role": "assistant" if number % 2 else "user", "content": _text(dice)}


def _text(dice: random.Random) -> str:
    words = " ".join(dice.choices(_LIST, k=30))
    return f"I pay {dice.randrange(10, 900)} euros for the {words} by {dice.randrange(28)} May."


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
