"""What the tests of the SDK share: both colours of client, over a server process and in-process."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import memorywall
from memorywall import AsyncClient, Claim, Client
from memorywall.in_process.drivers import AsyncInProcessDriver, InProcessDriver
from memorywall.sdk.facade import AsyncFacade, Facade
from tests.support.process import ServerProcess

WORLDS = ["http-blocking", "http-async", "local-blocking", "local-async"]


class Either:
    """Makes a client of either colour awaitable, so that one test serves both."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)
        if isinstance(method, Facade | AsyncFacade):
            return Either(method)

        async def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            result = await result if inspect.isawaitable(result) else result
            return Either(result) if isinstance(result, Client | AsyncClient) else result

        return call


@asynccontextmanager
async def held(client: Either, *arguments: Any, **named: Any) -> AsyncIterator[Claim]:
    """`client.claims.hold` of either colour."""
    holding = client.target.claims.hold(*arguments, **named)
    if hasattr(holding, "__aenter__"):
        async with holding as claim:
            yield claim
    else:
        with holding as claim:
            yield claim


async def take(iterator: Any, most: int = 1_000_000) -> list[Any]:
    """The first items of an iterator of either colour, which is closed then."""
    taken: list[Any] = []
    if most == 0:
        return taken
    if hasattr(iterator, "__anext__"):
        async with aclosing(iterator) as items:
            async for item in items:
                taken.append(item)
                if len(taken) == most:
                    break
    else:
        with closing(iterator) as pieces:
            for item in pieces:
                taken.append(item)
                if len(taken) == most:
                    break
    return taken


def fresh(name: str) -> str:
    """A name nobody has used; tests share a server."""
    return f"{name}-{uuid.uuid4().hex[:12]}"


class World:
    """Makes clients of one colour over one transport, for any agent of one tenant."""

    def __init__(self, colour: str, stack: AsyncExitStack) -> None:
        self.colour = colour
        self._stack = stack

    def client(self, agent: str, task_id: str | None = None) -> Either:
        """A new client, which has seen nothing yet."""
        raise NotImplementedError

    def administrator(self) -> Either:
        """A client of the administrator of the tenant."""
        raise NotImplementedError

    def _keep(self, client: Client | AsyncClient) -> Either:
        if isinstance(client, Client):
            self._stack.callback(client.close)
        else:
            self._stack.push_async_callback(client.aclose)
        return Either(client)


class HttpWorld(World):
    """Clients of a server process, with a key that may speak for any agent."""

    def __init__(self, colour: str, stack: AsyncExitStack, server: ServerProcess) -> None:
        super().__init__(colour, stack)
        self._server = server

    def client(self, agent: str, task_id: str | None = None) -> Either:
        kind = Client if self.colour == "blocking" else AsyncClient
        return self._keep(
            kind(self._server.url, self._server.dev_key, agent=agent, task_id=task_id)
        )

    def administrator(self) -> Either:
        kind = Client if self.colour == "blocking" else AsyncClient
        return self._keep(kind(self._server.url, self._server.dev_key))


class LocalWorld(World):
    """Clients of one store in this process."""

    def __init__(self, colour: str, stack: AsyncExitStack, opened: Client | AsyncClient) -> None:
        super().__init__(colour, stack)
        self._opened = opened

    def client(self, agent: str, task_id: str | None = None) -> Either:
        # The store is locked by the client that opened it; others share its driver.
        driver = self._opened.driver
        if isinstance(driver, InProcessDriver):
            return Either(Client.over(driver.for_agent(agent), agent=agent, task_id=task_id))
        assert isinstance(driver, AsyncInProcessDriver)
        return Either(AsyncClient.over(driver.for_agent(agent), agent=agent, task_id=task_id))

    def administrator(self) -> Either:
        return Either(self._opened)


@asynccontextmanager
async def open_world(kind: str, server: ServerProcess, place: Path | str) -> AsyncIterator[World]:
    """A world by its name in WORLDS; `place` is for those without the server."""
    transport, colour = kind.split("-")
    async with AsyncExitStack() as stack:
        if transport == "http":
            yield HttpWorld(colour, stack, server)
        elif colour == "blocking":
            yield LocalWorld(colour, stack, stack.enter_context(memorywall.open(place)))
        else:
            opened = await stack.enter_async_context(memorywall.open_async(place))
            yield LocalWorld(colour, stack, opened)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server process that the tests of a module share."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture(params=WORLDS)
async def world(
    request: pytest.FixtureRequest, server: ServerProcess, place: Path | str
) -> AsyncIterator[World]:
    """Each colour over each transport."""
    async with open_world(request.param, server, place) as opened:
        yield opened


class Faults:
    """Faults a transport makes, each once and in order.

    "unsent": the request is not sent; "unheard": it is carried out and its reply is lost;
    "cut": the reply's stream breaks after its first piece; "pass": none
    replies: what the next requests of a method are answered in the server's place
    """

    def __init__(self, *faults: str) -> None:
        self.faults = list(faults)
        self.requests: list[httpx.Request] = []
        self.replies: list[tuple[int, bytes, str]] = []

    def next(self, request: httpx.Request) -> str:
        self.requests.append(request)
        fault = self.faults.pop(0) if self.faults else "pass"
        if fault == "unsent":
            raise httpx.ConnectError("refused, as the test asked", request=request)
        return fault

    def instead(self, request: httpx.Request) -> httpx.Response | None:
        """What this request is answered in the server's place, if it is."""
        if self.replies and self.replies[0][2] == request.method:
            status, body, _ = self.replies.pop(0)
            return httpx.Response(status, content=body, request=request)
        return None


class FaultyTransport(httpx.BaseTransport):
    """The network, with faults."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fault = self._faults.next(request)
        if (instead := self._faults.instead(request)) is not None:
            return instead
        response = self._inner.handle_request(request)
        if fault == "unheard":
            response.read()
            response.close()
            raise httpx.ReadError("lost, as the test asked", request=request)
        if fault == "cut":
            response.stream = _Cut(response.stream)
        return response

    def close(self) -> None:
        self._inner.close()


class AsyncFaultyTransport(httpx.AsyncBaseTransport):
    """The network, with faults."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        fault = self._faults.next(request)
        if (instead := self._faults.instead(request)) is not None:
            return instead
        response = await self._inner.handle_async_request(request)
        if fault == "unheard":
            await response.aread()
            await response.aclose()
            raise httpx.ReadError("lost, as the test asked", request=request)
        if fault == "cut":
            response.stream = _Cut(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The first piece of a stream, and then nothing but an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield next(iter(self._stream))
        raise httpx.ReadError("cut, as the test asked")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece
            break
        raise httpx.ReadError("cut, as the test asked")

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()


class Faulty:
    """Makes clients of one colour whose transports make faults."""

    def __init__(self, server: ServerProcess, colour: str, stack: AsyncExitStack) -> None:
        self.server = server
        self._colour = colour
        self._stack = stack

    def steady(self, agent: str) -> Client:
        """A blocking client of the server that meets no faults."""
        return Client(self.server.url, self.server.dev_key, agent=agent)

    def client(self, agent: str, faults: Faults) -> Either:
        """A client of the server that meets these faults on its way."""
        url, key = self.server.url, self.server.dev_key
        if self._colour == "blocking":
            client = Client(url, key, agent=agent, transport=FaultyTransport(faults))
            return Either(self._stack.enter_context(client))
        twin = AsyncClient(url, key, agent=agent, transport=AsyncFaultyTransport(faults))
        self._stack.push_async_callback(twin.aclose)
        return Either(twin)


@pytest.fixture(params=["blocking", "async"])
async def faulty(request: pytest.FixtureRequest, server: ServerProcess) -> AsyncIterator[Faulty]:
    """Clients of each colour with faults on their way."""
    async with AsyncExitStack() as stack:
        yield Faulty(server, request.param, stack)
