"""Runs the application under uvicorn until a stop signal."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Collection
from math import ceil
from types import FrameType
from typing import cast

import uvicorn
import uvloop

from memorywall.assembly import open_index, open_memory
from memorywall.records.errors import ConfigurationError
from memorywall.server.app import Endpoints, build_app
from memorywall.server.local_socket import SERVER_OPTIONS
from memorywall.server.loop_watchdog import watch_loop
from memorywall.server.scheduler import run_jobs
from memorywall.server.slow_clients import ClientConnection, SlowClientGuard
from memorywall.server.uvicorn_transport import CoalescingProtocol
from memorywall.service.access.bearer_tokens import open_authenticator
from memorywall.service.requests.services import SharedServices
from memorywall.settings import Settings

_BACKLOG = 2_048
_SWITCH_SECONDS = 0.0005


_TICKS_PER_CHECK = 10
"""uvicorn ticks ten times a second."""


class _Server(uvicorn.Server):
    """Ends open event streams on a stop signal; they are endless otherwise. Closes connections of
    slow clients."""

    def __init__(
        self, config: uvicorn.Config, stopping: asyncio.Event, client_timeout: float
    ) -> None:
        super().__init__(config)
        self._stopping = stopping
        connections = cast(Collection[ClientConnection], self.server_state.connections)
        self._guard = SlowClientGuard(connections, client_timeout)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_PER_CHECK == 0:
            self._guard.check()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


_PORT_IN_USE = (
    "; end the program that uses the port, or choose another one: `--port 7400`, or `PORT=7400` of"
    " `make serve`"
)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. It is opened before the store, so that a port in use fails at once.

    port: 0 for any free port
    Raises ConfigurationError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        in_use = getattr(error, "errno", None) == errno.EADDRINUSE
        hint = _PORT_IN_USE if in_use else ""
        raise ConfigurationError(f"cannot listen on {host}:{port}: {reason}{hint}") from error


def load_tls(settings: Settings) -> ssl.SSLContext | None:
    """The certificate and the key of the settings, None for HTTP without TLS.

    Raises ConfigurationError.
    """
    if settings.tls_cert is None and settings.tls_key is None:
        return None
    if settings.tls_cert is None or settings.tls_key is None:
        raise ConfigurationError("TLS needs a certificate and its key; give both or neither")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot load the TLS certificate and its key: {error}") from error
    return context


def serve(
    settings: Settings,
    listener: socket.socket,
    opened: Callable[[SharedServices], Awaitable[None]],
    endpoints: Endpoints,
) -> None:
    """Serves until SIGTERM or SIGINT, then completes running requests.

    opened: is called when the store is open, before the first request
    endpoints: endpoints of higher layers
    Raises StoreLockedError and ConfigurationError before the first request.
    """
    uvloop.run(_serve(settings, listener, opened, endpoints))


async def _serve(
    settings: Settings,
    listener: socket.socket,
    opened: Callable[[SharedServices], Awaitable[None]],
    endpoints: Endpoints,
) -> None:
    stopping = asyncio.Event()
    tls = load_tls(settings)
    # A signal during the start takes effect after it. At the end uvicorn raises the signal again
    # for the previous handler: a clean stop is no failure.
    early: list[int] = []
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, _: early.append(number))
    async with (
        open_memory(settings) as services,
        open_index(settings, services) as index,
        run_jobs(services, index),
    ):
        authenticator = await open_authenticator(services)
        await opened(services)
        app = build_app(services, authenticator, stopping, index, endpoints)
        config = uvicorn.Config(
            app,
            http=CoalescingProtocol,
            **SERVER_OPTIONS,
            # uvicorn takes whole seconds.
            timeout_graceful_shutdown=ceil(settings.shutdown_timeout),
            ssl_context_factory=None if tls is None else lambda config, default: tls,
        )
        # The writer's thread returns from the disk many times between two switches of the
        # interpreter.
        sys.setswitchinterval(_SWITCH_SECONDS)
        # Present objects stay alive; freezing them spares the garbage collector repeated work.
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        server = _Server(config, stopping, settings.client_timeout)
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, server.handle_exit)
        if early:
            server.handle_exit(early[0], None)
        with watch_loop(services.loop):
            await server.serve(sockets=[listener])
        if app.access_log is not None:
            app.access_log.flush()
