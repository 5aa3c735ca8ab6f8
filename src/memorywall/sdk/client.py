"""The clients: blocking and asynchronous, over the same logic."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, TypedDict

import httpx

from memorywall.records.errors import ConfigurationError
from memorywall.sdk.drivers import AsyncDriver, Driver
from memorywall.sdk.facade import (
    AsyncFacade,
    Facade,
    awaiting,
    awaiting_stream,
    blocking,
    blocking_stream,
)
from memorywall.sdk.memory import MemoryLogic
from memorywall.sdk.service import EventsLogic, ServiceLogic
from memorywall.sdk.session import Session
from memorywall.settings import DEFAULT_PORT

URL_ENVIRONMENT = "MEMORYWALL_URL"
KEY_ENVIRONMENT = "MEMORYWALL_API_KEY"
DEFAULT_TIMEOUT = 30.0


class Memory(Facade[MemoryLogic]):
    """Writes, reads, finds and deletes entries."""

    set = blocking(MemoryLogic.set)
    get = blocking(MemoryLogic.get)
    get_by_id = blocking(MemoryLogic.get_by_id)
    query = blocking(MemoryLogic.query)
    delete = blocking(MemoryLogic.delete)
    delete_by_id = blocking(MemoryLogic.delete_by_id)
    batch = blocking(MemoryLogic.batch)
    delete_matching = blocking(MemoryLogic.delete_matching)
    export = blocking_stream(MemoryLogic.export)
    namespaces = blocking(MemoryLogic.namespaces)
    namespace = blocking(MemoryLogic.namespace)
    set_permissions = blocking(MemoryLogic.set_permissions)
    summary = blocking(MemoryLogic.summary)


class AsyncMemory(AsyncFacade[MemoryLogic]):
    """Writes, reads, finds and deletes entries."""

    set = awaiting(MemoryLogic.set)
    get = awaiting(MemoryLogic.get)
    get_by_id = awaiting(MemoryLogic.get_by_id)
    query = awaiting(MemoryLogic.query)
    delete = awaiting(MemoryLogic.delete)
    delete_by_id = awaiting(MemoryLogic.delete_by_id)
    batch = awaiting(MemoryLogic.batch)
    delete_matching = awaiting(MemoryLogic.delete_matching)
    export = awaiting_stream(MemoryLogic.export)
    namespaces = awaiting(MemoryLogic.namespaces)
    namespace = awaiting(MemoryLogic.namespace)
    set_permissions = awaiting(MemoryLogic.set_permissions)
    summary = awaiting(MemoryLogic.summary)


class Events(Facade[EventsLogic]):
    """Reads and follows agents' event streams."""

    list = blocking(EventsLogic.list)
    follow = blocking_stream(EventsLogic.follow)


class AsyncEvents(AsyncFacade[EventsLogic]):
    """Reads and follows agents' event streams."""

    list = awaiting(EventsLogic.list)
    follow = awaiting_stream(EventsLogic.follow)


class Client(Facade[ServiceLogic]):
    """A client of a memorywall server, or of a store in this process (`memorywall.open`).

    server_url: where the server is; MEMORYWALL_URL, or this machine, when left out
    api_key: MEMORYWALL_API_KEY when left out
    agent: the agent to speak for (X-Agent-ID); the key's own when left out
    task_id: the task that working memory belongs to when a call does not say
    timeout: seconds to connect, and to wait for each part of a reply
    transport: an httpx transport to use instead of the network

    May be used from several threads; see `memory.set` on versions then. Close it, or use it in a
    `with` statement.
    """

    def __init__(
        self,
        server_url: str | None = None,
        api_key: str | None = None,
        *,
        agent: str | None = None,
        task_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        options = _options(server_url, api_key, agent, timeout)
        driver = Driver(httpx.Client(transport=transport, **options))
        session = Session(agent=agent, task_id=task_id)
        super().__init__(ServiceLogic(session), driver)
        self.memory = Memory(MemoryLogic(session), driver)
        self.events = Events(EventsLogic(session), driver)

    capabilities = blocking(ServiceLogic.capabilities)
    discover = blocking(ServiceLogic.discover)
    health = blocking(ServiceLogic.health)
    ready = blocking(ServiceLogic.ready)
    whoami = blocking(ServiceLogic.whoami)

    def close(self) -> None:
        """Closes its connections, or the store it has open."""
        self._driver.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(AsyncFacade[ServiceLogic]):
    """The twin of `Client` whose methods are awaited; it takes the same arguments.

    Its tasks share what it has seen as the threads of a `Client` do. Close it with `aclose()`, or
    use it in an `async with` statement.
    """

    def __init__(
        self,
        server_url: str | None = None,
        api_key: str | None = None,
        *,
        agent: str | None = None,
        task_id: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        options = _options(server_url, api_key, agent, timeout)
        driver = AsyncDriver(httpx.AsyncClient(transport=transport, **options))
        session = Session(agent=agent, task_id=task_id)
        super().__init__(ServiceLogic(session), driver)
        self.memory = AsyncMemory(MemoryLogic(session), driver)
        self.events = AsyncEvents(EventsLogic(session), driver)

    capabilities = awaiting(ServiceLogic.capabilities)
    discover = awaiting(ServiceLogic.discover)
    health = awaiting(ServiceLogic.health)
    ready = awaiting(ServiceLogic.ready)
    whoami = awaiting(ServiceLogic.whoami)

    async def aclose(self) -> None:
        """Closes its connections."""
        await self._driver.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Options(TypedDict):
    base_url: str
    headers: dict[bytes, bytes]
    timeout: float


def _options(
    server_url: str | None, api_key: str | None, agent: str | None, timeout: float
) -> _Options:
    environment: Any = os.environ
    url = server_url or environment.get(URL_ENVIRONMENT) or f"http://127.0.0.1:{DEFAULT_PORT}"
    key = (api_key if api_key is not None else environment.get(KEY_ENVIRONMENT) or "").strip()
    if not key.isprintable() or not key.isascii():
        raise ConfigurationError("the API key holds characters that no key has")
    headers = {b"User-Agent": b"memorywall-sdk"}
    if key:
        headers[b"X-API-Key"] = key.encode()
    if agent:
        headers[b"X-Agent-ID"] = agent.encode()
    return {"base_url": url, "headers": headers, "timeout": timeout}
