"""An ASGI application as an httpx transport: no sockets, replies read while they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

# An application that sends faster than its reply is read waits after this many pieces.
_PIECES_AHEAD = 8


class AsgiTransport(httpx.AsyncBaseTransport):
    """Answers requests by calling an application on the running event loop."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        path, _, query = url.raw_path.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), text) for name, text in request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": path,
            "query_string": query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 0),
            "root_path": "",
        }
        exchange = _Exchange(self._application, scope, request.content)
        status, headers = await exchange.begin()
        return httpx.Response(status, headers=headers, stream=exchange, request=request)


class _Exchange(httpx.AsyncByteStream):
    """One request, and the body of its reply as a stream."""

    def __init__(self, application: Application, scope: Message, content: bytes) -> None:
        self._application = application
        self._scope = scope
        self._content: bytes | None = content
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES_AHEAD)
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Calls the application; returns status and headers of its reply."""
        self._task = asyncio.create_task(self._run())
        either: set[asyncio.Future[Any]] = {self._task, self._head}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not self._head.done():
                self._task.result()
                raise httpx.RemoteProtocolError("the application sent no reply")
        except BaseException:
            await self.aclose()
            raise
        return self._head.result()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def aclose(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        await self._application(self._scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._content is None:
            # The client is there until it closes the reply, which cancels this.
            await asyncio.get_running_loop().create_future()
        content, self._content = self._content, None
        return {"type": "http.request", "body": content, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head.set_result((message["status"], list(message.get("headers", ()))))
            return
        if piece := message.get("body", b""):
            await self._pieces.put(piece)
        if not message.get("more_body", False):
            await self._pieces.put(None)
