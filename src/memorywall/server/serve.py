"""Runs the application under uvicorn until a signal asks it to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from types import FrameType

import uvicorn
import uvloop

from memorywall.assembly import open_index, open_memory
from memorywall.records.errors import ConfigurationError
from memorywall.server.app import build_app
from memorywall.server.protocol import GatheringProtocol
from memorywall.server.scheduler import housekeeping
from memorywall.settings import Settings
from memorywall.wall.door import Door
from memorywall.wall.keyring import Keyring

_GRACE_SECONDS = 10
_BACKLOG = 2_048
_SWITCH_SECONDS = 0.0005


class _Server(uvicorn.Server):
    """Ends open event streams when it is told to stop; they would go on for ever otherwise."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, taken before anything is opened so that a port in use is told at once.

    Raises ConfigurationError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error}") from error


def serve(
    settings: Settings, listener: socket.socket, opened: Callable[[Door], Awaitable[None]]
) -> None:
    """Serves until SIGTERM or SIGINT; then what is under way is finished and answered.

    opened: called once the store is open, before the first request
    Raises StoreLockedError and ConfigurationError before the first request is taken.
    """
    uvloop.run(_serve(settings, listener, opened))


async def _serve(
    settings: Settings, listener: socket.socket, opened: Callable[[Door], Awaitable[None]]
) -> None:
    stopping = asyncio.Event()
    # A signal during the start is heeded after it. And uvicorn raises the one that stopped it once
    # more at the end, to the handler it found: a clean stop is no failure.
    early: list[int] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _: early.append(number))
    async with (
        open_memory(settings) as door,
        open_index(settings, door) as index,
        housekeeping(door, index),
    ):
        await opened(door)
        config = uvicorn.Config(
            build_app(door, Keyring(door.store), stopping, index),
            http=GatheringProtocol,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        # The writer's thread comes back from the disk many times between two of the loop's pauses.
        sys.setswitchinterval(_SWITCH_SECONDS)
        # What is there now stays; collecting it again and again would only cost time.
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        server = _Server(config, stopping)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, server.handle_exit)
        if early:
            server.handle_exit(early[0], None)
        await server.serve(sockets=[listener])
