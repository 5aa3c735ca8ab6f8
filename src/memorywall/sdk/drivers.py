"""Does what scripts ask for, over httpx: one driver for each colour."""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
)
from contextlib import contextmanager
from typing import TypeVar

import httpx

from memorywall.sdk.problems import MemoryTransportError
from memorywall.sdk.steps import (
    Emit,
    Now,
    Open,
    Pause,
    Read,
    Request,
    Response,
    Script,
    StreamScript,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
# Whoever sleeps must not believe to hold what has run out meanwhile; where there is a clock that
# goes on while the machine sleeps, it is the one to ask.
_SLEEPLESS: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady_clock() -> float:
    """Seconds since some moment, which never go back."""
    return time.monotonic() if _SLEEPLESS is None else time.clock_gettime(_SLEEPLESS)


class Driver:
    """Runs scripts, and returns when they are through.

    pause: lets seconds pass
    clock: tells the time to scripts that ask for it
    """

    def __init__(
        self,
        http: httpx.Client,
        *,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self.http = http
        self.pause = pause
        self.clock = clock

    def run(self, script: Script[Result]) -> Result:
        """The script's result."""
        try:
            step = next(script)
            while True:
                try:
                    answer = self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    def stream(self, script: StreamScript[Item]) -> Generator[Item, None, None]:
        """What the script emits. Closing this closes the stream it reads."""
        opened: httpx.Response | None = None
        pieces: Iterator[bytes] | None = None
        try:
            step = next(script)
            while True:
                try:
                    match step:
                        case Emit(item):
                            yield item
                            answer: object = None
                        case Read():
                            assert pieces is not None, "a script opens before it reads"  # noqa: S101
                            with _transport_errors():
                                answer = next(pieces, None)
                        case Open():
                            if opened is not None:
                                opened.close()
                            with _transport_errors():
                                opened = self.http.send(_build(self.http, step), stream=True)
                                refused = opened.status_code >= 300
                                body = opened.read() if refused else b""
                            pieces = opened.iter_bytes()
                            answer = Response(opened.status_code, body)
                        case _:
                            answer = self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                opened.close()

    def _do(self, step: Request | Pause | Now) -> object:
        match step:
            case Request():
                return self._send(step)
            case Pause(seconds):
                return self.pause(seconds)
            case Now():
                return self.clock()

    def _send(self, request: Request) -> Response:
        with _transport_errors():
            reply = self.http.send(_build(self.http, request))
        return Response(reply.status_code, reply.content)


class AsyncDriver:
    """Runs scripts without blocking the event loop; see `Driver`."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        self.http = http
        self.pause = pause
        self.clock = clock

    async def run(self, script: Script[Result]) -> Result:
        """The script's result."""
        try:
            step = next(script)
            while True:
                try:
                    answer = await self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def stream(self, script: StreamScript[Item]) -> AsyncGenerator[Item, None]:
        """What the script emits. Closing this closes the stream it reads."""
        opened: httpx.Response | None = None
        pieces: AsyncIterator[bytes] | None = None
        try:
            step = next(script)
            while True:
                try:
                    match step:
                        case Emit(item):
                            yield item
                            answer: object = None
                        case Read():
                            assert pieces is not None, "a script opens before it reads"  # noqa: S101
                            with _transport_errors():
                                answer = await anext(pieces, None)
                        case Open():
                            if opened is not None:
                                await opened.aclose()
                            with _transport_errors():
                                opened = await self.http.send(_build(self.http, step), stream=True)
                                refused = opened.status_code >= 300
                                body = await opened.aread() if refused else b""
                            pieces = opened.aiter_bytes()
                            answer = Response(opened.status_code, body)
                        case _:
                            answer = await self._do(step)
                except MemoryTransportError as error:
                    step = script.throw(error)
                else:
                    step = script.send(answer)
        except StopIteration:
            return
        finally:
            script.close()
            if opened is not None:
                await opened.aclose()

    async def _do(self, step: Request | Pause | Now) -> object:
        match step:
            case Request():
                return await self._send(step)
            case Pause(seconds):
                return await self.pause(seconds)
            case Now():
                return self.clock()

    async def _send(self, request: Request) -> Response:
        with _transport_errors():
            reply = await self.http.send(_build(self.http, request))
        return Response(reply.status_code, reply.content)


def _build(http: httpx.Client | httpx.AsyncClient, step: Request | Open) -> httpx.Request:
    if isinstance(step, Open):
        request = step.request
        timeout = httpx.Timeout(http.timeout.connect, read=step.silence)
    else:
        request, timeout = step, http.timeout
    # As bytes, because names in headers may be any text and go as UTF-8.
    headers = [(name.encode(), text.encode()) for name, text in request.headers.items()]
    if request.body is not None:
        headers.append((b"Content-Type", request.media.encode()))
    return http.build_request(
        request.method, request.target, content=request.body, headers=headers, timeout=timeout
    )


@contextmanager
def _transport_errors() -> Iterator[None]:
    """Raises MemoryTransportError in place of what httpx raises."""
    try:
        yield
    except (httpx.RequestError, httpx.InvalidURL) as error:
        never_sent = isinstance(error, (*_NEVER_SENT, httpx.InvalidURL))
        raise MemoryTransportError(_describe(error), sent=not never_sent) from error


def _describe(error: httpx.RequestError | httpx.InvalidURL) -> str:
    """Which server, and what went wrong. What httpx says of a header may repeat the key in it."""
    if isinstance(error, httpx.InvalidURL):
        return "the server's address is not a URL"
    kind = type(error).__name__
    try:
        url = error.request.url
    except RuntimeError:
        return kind
    where = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{where} cannot be reached; is the server running? ({kind})"
    return f"no whole reply came from {where} ({kind})"
