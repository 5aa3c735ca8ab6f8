"""A real server on one directory and port that is killed and started again under its clients.

It may be one of several on a PostgreSQL store, each of which has an arena.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from memorywall.assembly import open_memory, settings_for
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key
from tests.faults.support import spawn
from tests.support.process import ServerProcess

TENANT = "default"


class Arena:
    """The server process of the moment.

    store: the URL of a PostgreSQL database, where it is not to use the one of the whole run
    arguments: more for its command line
    """

    def __init__(
        self, data: Path, seed: int, store: str | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self.data = data
        self._store = {} if store is None else {"database_url": store}
        self._arguments = [*arguments, *(() if store is None else ("--store", store))]
        self.up = asyncio.Event()
        self.kills = 0
        self.port = free_port()
        self._random = random.Random(seed)
        self._server: ServerProcess | None = None
        self._closed = False

    async def create_keys(self, agents: Iterable[str], *permissions: Permission) -> list[str]:
        """A key for each agent named, made before the server starts: through the command line it
        would take a second each."""
        self.data.mkdir(parents=True, exist_ok=True)
        async with open_memory(settings_for(self.data, **self._store)) as services:
            return [
                (await create_key(services, TENANT, agent, PrincipalKind.AGENT, permissions))[0]
                for agent in agents
            ]

    async def start(self) -> None:
        await asyncio.to_thread(self._start)
        self.up.set()

    async def kill_and_restart(self) -> None:
        """SIGKILL in the midst of everything; sometimes once more while it gets up again."""
        self.kills += 1
        self.up.clear()
        self._end()
        while self._random.random() < 0.3:
            delay = self._random.uniform(0.0, 0.6)
            await asyncio.to_thread(self._kill_soon_after_start, delay)
        await self.start()

    def signal(self, number: signal.Signals) -> None:
        """Sends the server a signal."""
        assert self._server is not None, "it runs"
        self._server.process.send_signal(number)

    def close(self) -> None:
        self._closed = True
        self.up.clear()
        self._end()

    def _start(self) -> None:
        server = ServerProcess(self.data, "--port", str(self.port), *self._arguments, dev=False)
        if self._closed:
            # A test that failed meanwhile does not wait for this thread.
            server.kill()
            server.errors.close()
        else:
            self._server = server

    def _end(self) -> None:
        if self._server is not None:
            self._server.kill()
            # A busy machine may hold the loop for longer; other tests measure that.
            complaints = "\n".join(
                line
                for line in self._server.read_errors().splitlines()
                if "a callback has held the event loop" not in line
            )
            self._server.errors.close()
            self._server = None
            assert not complaints, f"the server wrote to its standard error: {complaints[:2000]}"

    def _kill_soon_after_start(self, delay: float) -> None:
        process = spawn(self.data, *self._arguments)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=delay)
        assert process.returncode is None, f"it did not start: {process.communicate()}"
        process.kill()
        process.communicate()


@asynccontextmanager
async def open_arena(data: Path, seed: int) -> AsyncIterator[Arena]:
    """An arena whose server does not outlive it."""
    arena = Arena(data, seed)
    try:
        yield arena
    finally:
        arena.close()


def free_port() -> int:
    """A port nobody listens on, outside those the system gives to connections by itself: while a
    server is down it would lose one of those to any connection made meanwhile."""
    for _ in range(1_000):
        port = random.randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")
