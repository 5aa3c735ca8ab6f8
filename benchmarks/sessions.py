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
from collections.abc import Iterator
from contextlib import contextmanager
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
    print("  each: median, and median CPU, in ms; ratios of the means of creates and turns")
    print(" turns        create           turn     checkpoint         resume  ratio    CPU")
    for length in map(int, asked.lengths.split(",")):
        with _opened(asked.store) as client:
            _measure(client, dice, length)


def _measure(client: Client, dice: random.Random, length: int) -> None:
    session = client.sessions.create("ann")
    for start in range(0, length, 100):
        session.add_many(_turn(dice, start + place) for place in range(min(100, length - start)))
    # Until the summary covers all turns, each checkpoint summarizes 200 of them.
    while session.checkpoint().summarized_through < length:
        pass
    creates, turns, checkpoints, resumes = _Times(), _Times(), _Times(), _Times()
    for number in range(_SAMPLES):
        text = _text(dice)
        value = {"role": "user", "content": text}
        with creates:
            client.memory.set("plain", str(number), value)
        with turns:
            session.add("user", text)
    for _ in range(_CHECKPOINTS):
        session.add_many(_turn(dice, place) for place in range(10))
        with checkpoints:
            session.checkpoint()
        with resumes:
            session.resume()
    # The means of turns include the checkpoints that the policy makes.
    walls = f"{statistics.fmean(creates.wall) / statistics.fmean(turns.wall):.2f}"
    cpus = f"{statistics.fmean(creates.cpu) / statistics.fmean(turns.cpu):.2f}"
    texts = [str(times) for times in (creates, turns, checkpoints, resumes)]
    print(f"{length:>6} {' '.join(texts)} {walls:>6} {cpus:>6}", flush=True)


class _Times:
    """The durations of one kind of call, and the time that its process used, in milliseconds."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> None:
        self._started = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = self._started
        self.wall.append((time.perf_counter() - wall) * 1000)
        self.cpu.append((time.process_time() - cpu) * 1000)

    def __str__(self) -> str:
        return f"{statistics.median(self.wall):>7.2f} {statistics.median(self.cpu):>6.2f}"


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


if __name__ == "__main__":
    main()
