"""httpx without sockets: a client and a transport that call an ASGI application."""

from __future__ import annotations

import asyncio
import json
import re
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
# httpx sends such a path and query as they are.
_PLAIN_TARGET = re.compile(r"(/[A-Za-z0-9_\-.~/:]*)(?:\?([A-Za-z0-9_\-.~/:=&+%,]*))?")
_PLAIN_OPTIONS = {"params", "json", "content", "headers"}


def _scope(
    method: str, url: httpx.URL, headers: httpx.Headers, path: str, raw_path: bytes, query: bytes
) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "headers": [(name.lower(), text) for name, text in headers.raw],
        "scheme": url.scheme,
        "path": path,
        "raw_path": raw_path,
        "query_string": query,
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }


class AsgiClient(httpx.AsyncClient):
    """A client that takes plain requests straight to the application.

    Most of the time of a request in a test would else be spent in httpx. Requests that are not
    plain (streams, forms, unusual characters in the path) go through httpx and its transport.
    """

    def __init__(self, application: Application, base_url: str, headers: dict[str, str]) -> None:
        super().__init__(
            transport=httpx.ASGITransport(application, raise_app_exceptions=True),  # type: ignore[arg-type]
            base_url=base_url,
            headers=headers,
        )
        self._application = application

    async def request(self, method: str, url: Any, **options: Any) -> httpx.Response:  # type: ignore[override]
        plain = _PLAIN_TARGET.fullmatch(url) if isinstance(url, str) else None
        given = {
            name: value
            for name, value in options.items()
            if value is not None and value is not httpx.USE_CLIENT_DEFAULT
        }
        content = given.get("content", b"")
        if not plain or not given.keys() <= _PLAIN_OPTIONS or not isinstance(content, str | bytes):
            return await super().request(method, url, **options)
        path, query = plain[1], plain[2] or ""
        if "params" in given:
            query = str(httpx.QueryParams(given["params"]))
        headers = self.headers.copy()
        if isinstance(content, str):
            content = content.encode()
        if "json" in given:
            content = json.dumps(
                given["json"], ensure_ascii=False, separators=(",", ":"), allow_nan=False
            ).encode()
            headers["content-type"] = "application/json"
        headers.update(given.get("headers"))
        headers.setdefault("host", self.base_url.host)
        if content or method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(content))
        response = await self._call(method, path, query, headers, content)
        response.request = httpx.Request(method, self.base_url.join(url), headers=headers)
        return response

    async def _call(
        self, method: str, path: str, query: str, headers: httpx.Headers, content: bytes
    ) -> httpx.Response:
        scope = _scope(method, self.base_url, headers, path, path.encode(), query.encode())
        sent: list[Message] = []
        is_complete = asyncio.Event()
        waiting = [content]

        async def receive() -> Message:
            if waiting:
                return {"type": "http.request", "body": waiting.pop(), "more_body": False}
            await is_complete.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                is_complete.set()

        await self._application(scope, receive, send)
        body = b"" if method == "HEAD" else b"".join(one.get("body", b"") for one in sent[1:])
        return httpx.Response(
            sent[0]["status"], headers=list(sent[0].get("headers", ())), content=body
        )


class AsgiTransport(httpx.AsyncBaseTransport):
    """Answers requests by calling an application on the running event loop."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        path, _, query = url.raw_path.partition(b"?")
        scope = _scope(request.method, url, request.headers, url.path, path, query)
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
