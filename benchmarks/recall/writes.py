"""Whether writes are slower where what is written is also embedded."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median

from benchmarks.plan import CONNECTIONS, LoadResult
from benchmarks.recall.directories import DataDirectories, Running, running
from benchmarks.recall.load_connections import create_at_once
from benchmarks.recall.variants import NONE
from benchmarks.servers import Servers

_WARM_UP_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Writes:
    """The rounds of one embedder, and the rounds without one between which they lie."""

    embedder: str
    rounds: list[LoadResult]
    without: list[LoadResult]

    @property
    def rate(self) -> float:
        """The median of the creates a second."""
        return median(one.rate for one in self.rounds)

    @property
    def rate_without(self) -> float:
        """The same without an embedder."""
        return median(one.rate for one in self.without)

    @property
    def ratio(self) -> float:
        """The median over the rounds: each is compared with the one beside it."""
        return median(
            one.rate / other.rate for one, other in zip(self.rounds, self.without, strict=True)
        )


def measure_writes(
    embedders: Sequence[str], servers: Servers, places: DataDirectories, rounds: int, seconds: float
) -> list[Writes]:
    """Creates entries with and without an embedder by turns. The server whose turn it is not
    stands still, and so does its embedding."""
    kinds = [NONE, *(one for one in embedders if one != NONE)]
    seen: dict[str, list[LoadResult]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        started = {}
        for kind in kinds:
            server = stack.enter_context(running(servers, places.new(), kind))
            create_at_once(server, CONNECTIONS, _WARM_UP_SECONDS, 0)
            started[kind] = server
            stack.enter_context(_standing_still(server))
        for number in range(1, rounds + 1):
            # Each begins as often as the others: a disk may grow tired in the course of a round.
            for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
                with _moving(started[kind]):
                    place = number * CONNECTIONS
                    seen[kind].append(create_at_once(started[kind], CONNECTIONS, seconds, place))
    return [Writes(embedder=kind, rounds=seen[kind], without=seen[NONE]) for kind in kinds[1:]]


@contextmanager
def _standing_still(server: Running) -> Iterator[None]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        # It is asked to end after this, which a process that stands still would not hear.
        os.kill(server.pid, signal.SIGCONT)


@contextmanager
def _moving(server: Running) -> Iterator[None]:
    os.kill(server.pid, signal.SIGCONT)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGSTOP)
