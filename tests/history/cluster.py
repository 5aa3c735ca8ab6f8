"""Several servers of one PostgreSQL store, killed one by one, and clients that go between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from memorywall.records.principal import Permission
from tests.history.arena import Arena
from tests.history.line import Line, Reply, Request

_STORE_DEADLINE = 55
"""Seconds a write may wait for its turn. On a busy machine a refusal after the usual time would be
right, and a complaint in the server's log; a client waits five seconds longer for a reply."""


class Cluster:
    """Server processes that share a database, each on a port of its own."""

    def __init__(self, data: Path, seed: int, store: str, servers: int) -> None:
        arguments = ["--store-deadline", str(_STORE_DEADLINE)]
        self.arenas = [Arena(data, seed + number, store, arguments) for number in range(servers)]
        self._random = random.Random(seed)

    @property
    def kills(self) -> int:
        """How many servers were killed so far."""
        return sum(arena.kills for arena in self.arenas)

    async def create_keys(self, agents: Iterable[str], *permissions: Permission) -> list[str]:
        """A key for each agent named, made before the servers start."""
        return await self.arenas[0].create_keys(agents, *permissions)

    async def start(self) -> None:
        """Starts all at the same time."""
        await asyncio.gather(*(arena.start() for arena in self.arenas))

    async def kill_and_restart_some(self) -> None:
        """Kills mostly one, sometimes several at once, now and then all."""
        [count] = self._random.choices([1, 2, len(self.arenas)], weights=[7, 2, 1])
        victims = self._random.sample(self.arenas, count)
        await asyncio.gather(*(arena.kill_and_restart() for arena in victims))

    async def kill_and_restart_all(self) -> None:
        """What is there afterwards is in the database and nowhere else."""
        await asyncio.gather(*(arena.kill_and_restart() for arena in self.arenas))

    def close(self) -> None:
        """Ends all, also when one of them has complaints."""
        with ExitStack() as stack:
            for arena in self.arenas:
                stack.callback(arena.close)


@asynccontextmanager
async def open_cluster(data: Path, seed: int, store: str, servers: int) -> AsyncIterator[Cluster]:
    """A cluster whose servers do not outlive it."""
    cluster = Cluster(data, seed, store, servers)
    try:
        yield cluster
    finally:
        cluster.close()


class Roamer:
    """A client's way to all servers: it mostly stays with one, changes now and then, and leaves a
    server that is gone.

    number: of the client, which tells where it begins
    moves: how often it changes without need
    """

    def __init__(
        self, arenas: Sequence[Arena], key: str, number: int, seed: int, moves: float = 0.1
    ) -> None:
        self._moves = moves
        self._arenas = arenas
        self._lines = [Line(arena.port, key, arena.up) for arena in arenas]
        self._at = number % len(arenas)
        self._random = random.Random(f"{seed}-{number}")

    @property
    def server(self) -> int:
        """The number of the server it is at."""
        return self._at

    async def ready(self) -> None:
        """Comes back with a connection to some server."""
        if self._random.random() < self._moves or not self._arenas[self._at].up.is_set():
            others = [number for number, arena in enumerate(self._arenas) if arena.up.is_set()]
            # When all are gone it waits for the one it was at.
            self._at = self._random.choice(others or [self._at])
        await self._lines[self._at].ready()

    async def exchange(self, request: Request) -> Reply:
        """Sends a request. Raises Unanswered."""
        return await self._lines[self._at].exchange(request)

    def close(self) -> None:
        for line in self._lines:
            line.close()
