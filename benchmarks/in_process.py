"""The cost of `memorywall.open` on top of SQLite: `python -m benchmarks.in_process`.

In turn, so that whatever else the machine does falls on all alike, it times calls of a client in
this process and the same done with bare SQLite through apsw in a file of its own: a look-up of a
row by its name, and a durable insert (WAL, synchronous=FULL). It prints the median of each and what
is asked of it: a get by name at most 10 times the bare look-up, a page of 100 at most 80 times, and
a set the bare insert and 0.2 ms. Beside the median stands the fastest tenth, which a busy machine
disturbs less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

import memorywall

_ROWS = 500
"""Fewer than an agent may have episodic entries, so that none is evicted."""
_AT_A_TIME = 10
_TABLE = """
CREATE TABLE entries (number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL,
    namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX entries_by_name ON entries (tenant, namespace, key);
"""
_GET = (
    "SELECT id, namespace, key, value FROM entries WHERE tenant = ? AND namespace = ? AND key = ?"
)
_INSERT = "INSERT INTO entries (tenant, id, namespace, key, value) VALUES (?, ?, ?, ?, ?)"


class Figures(NamedTuple):
    """In seconds: what half of the calls took at most, and what a tenth of them did."""

    median: float
    tenth: float


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=20, help="turns, in which each is done ten times"
    )
    parser.add_argument("--directory", type=Path, help="where the databases are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        measured = measure(Path(directory), options.rounds)
    report(measured)


def measure(directory: Path, rounds: int) -> dict[str, Figures]:
    """Returns the duration of each call."""
    bare = _bare_database(directory / "bare.db")
    numbers = itertools.count(_ROWS)
    value = {"text": "x" * 60, "n": 1}
    text = json.dumps(value).encode()
    with memorywall.open(directory / "memory.db", agent="benchmark") as client:
        made = [
            entry
            for first in range(0, _ROWS, 500)
            for entry in client.memory.batch(
                {"namespace": "n", "key": f"k{number}", "value": value, "memory_type": "episodic"}
                for number in range(first, min(first + 500, _ROWS))
            )
        ]
        turn = itertools.cycle(range(_ROWS))

        def set_new() -> None:
            client.memory.set("n", f"k{next(numbers)}", value, "working")

        def set_again() -> None:
            client.memory.set("n", "k7", value, "episodic")

        def insert() -> None:
            number = next(numbers)
            bare.execute(_INSERT, ("t", f"e{number}", "n", f"k{number}", text))

        steps: dict[str, Callable[[], object]] = {
            "bare look-up": lambda: bare.execute(_GET, ("t", "n", f"k{next(turn)}")).fetchone(),
            "get by name": lambda: client.memory.get("n", f"k{next(turn)}", "episodic"),
            "get by name, no tier": lambda: client.memory.get("n", f"k{next(turn)}"),
            "get by id": lambda: client.memory.get_by_id(made[next(turn)].id),
            "page of 100": lambda: client.memory.query(memory_type="episodic", limit=100),
            "bare insert": insert,
            "set, new": set_new,
            "set, changed": set_again,
        }
        return _timed(steps, rounds)


def report(measured: dict[str, Figures]) -> None:
    """Prints the medians, and how they stand to what is asked."""
    look_up, insert = measured["bare look-up"], measured["bare insert"]
    for name, took in measured.items():
        if name.startswith("bare"):
            standing = ""
        elif name.startswith("set"):
            median, tenth = ((one - two) * 1e3 for one, two in zip(took, insert, strict=True))
            standing = f"bare insert + {median:.2f} ms, tenth + {tenth:.2f} ms (asked: 0.20 ms)"
        else:
            most = 80 if name.startswith("page") else 10
            median, tenth = (one / two for one, two in zip(took, look_up, strict=True))
            standing = f"{median:.1f} x, tenth {tenth:.1f} x (asked: {most} x)"
        print(f"{name:22} {took.median * 1e6:9.1f} us {took.tenth * 1e6:9.1f} us   {standing}")


def _bare_database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").fetchall()
    connection.execute(_TABLE)
    with connection:
        connection.executemany(
            _INSERT, [("t", f"e{n}", "n", f"k{n}", b'{"n":1}') for n in range(_ROWS)]
        )
    return connection


def _timed(steps: dict[str, Callable[[], object]], rounds: int) -> dict[str, Figures]:
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            for _ in range(_AT_A_TIME):
                begun = time.perf_counter()
                step()
                took[name].append(time.perf_counter() - begun)
    return {name: _figures(sorted(times)) for name, times in took.items()}


def _figures(times: list[float]) -> Figures:
    return Figures(times[len(times) // 2], times[len(times) // 10])


if __name__ == "__main__":
    main()
