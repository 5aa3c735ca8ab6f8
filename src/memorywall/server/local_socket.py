"""Answers other processes of the same user, over HTTP on a socket that is a file.

The socket asks for no key: only its user may open it, who may read the files of the store as well.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

SERVER_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "ws": "none",
        "lifespan": "off",
        "proxy_headers": False,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "date_header": False,
    }
)
"""What uvicorn does otherwise, the application does itself or nobody needs."""
_GRACE_SECONDS = 2


@asynccontextmanager
async def serving_locally(app: ASGIApp, path: Path) -> AsyncIterator[None]:
    """Serves an application on a socket for the duration of the context.

    path: of the socket, which replaces one that another process has left
    """
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen()
        config = uvicorn.Config(
            app,
            **SERVER_OPTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        server = _LocalServer(config)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            server.should_exit = True
            path.unlink(missing_ok=True)
            await running


class _LocalServer(uvicorn.Server):
    """Leaves signals to the program that it is a part of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
