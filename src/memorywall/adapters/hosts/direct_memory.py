"""Memory for a hook that no other process answers: with a client of its own, for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memorywall.adapters.hosts.connection import HostConnection
from memorywall.adapters.hosts.host_memory import DrainCounts, HostMemory

Result = TypeVar("Result")
Tell = Callable[[str], None]


def recall_directly(
    connection: HostConnection, prompt: str, session: str, tell: Tell, patience: float
) -> str | None:
    """Returns the text for the model; see `HostMemory.recall`.

    patience: the seconds after which TimeoutError is raised
    """
    return _use(connection, tell, lambda memory: memory.recall(prompt, session), patience)


def drain_directly(
    connection: HostConnection, tell: Tell, patience: float | None = None
) -> DrainCounts:
    """Stores what waits; see `HostMemory.drain`.

    patience: the seconds after which TimeoutError is raised; default: none
    """
    return _use(connection, tell, lambda memory: memory.drain(), patience)


def _use(
    connection: HostConnection,
    tell: Tell,
    action: Callable[[HostMemory], Awaitable[Result]],
    patience: float | None,
) -> Result:
    async def run() -> Result:
        async with connection.open() as client, asyncio.timeout(patience):
            return await action(HostMemory(connection, client, tell))

    return asyncio.run(run())
