"""The clients: blocking and asynchronous, over the same logic."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, TypedDict

import httpx

from memorywall.records.errors import ConfigurationError
from memorywall.sdk.attachments import AttachmentsLogic
from memorywall.sdk.claims import ClaimsLogic
from memorywall.sdk.coordinators import CoordinatorsLogic
from memorywall.sdk.drivers import AsyncDriver, Driver
from memorywall.sdk.facade import AsyncFacade, Facade, awaiting, blocking
from memorywall.sdk.groups import (
    AsyncAttachments,
    AsyncCoordinators,
    AsyncEvents,
    AsyncIntents,
    AsyncMemory,
    AsyncShared,
    AsyncTasks,
    Attachments,
    Coordinators,
    Events,
    Intents,
    Memory,
    Shared,
    Tasks,
)
from memorywall.sdk.holding import AsyncClaims, Claims
from memorywall.sdk.intents import IntentsLogic
from memorywall.sdk.memory import MemoryLogic
from memorywall.sdk.service import EventsLogic, ServiceLogic
from memorywall.sdk.session import Session
from memorywall.sdk.shared import SharedLogic
from memorywall.sdk.tasks import TasksLogic
from memorywall.settings import DEFAULT_PORT

URL_ENVIRONMENT = "MEMORYWALL_URL"
KEY_ENVIRONMENT = "MEMORYWALL_API_KEY"
DEFAULT_TIMEOUT = 30.0


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
        self._assemble(Session(agent=agent, task_id=task_id), driver)

    def _assemble(self, session: Session, driver: Driver) -> None:
        super().__init__(ServiceLogic(session), driver)
        self._session = session
        self._is_scoped = False
        self.memory = Memory(MemoryLogic(session), driver)
        self.events = Events(EventsLogic(session), driver)
        self.intents = Intents(IntentsLogic(session), driver)
        self.tasks = Tasks(TasksLogic(session), driver)
        self.coordinators = Coordinators(CoordinatorsLogic(session), driver)
        self.attachments = Attachments(AttachmentsLogic(session), driver)
        self.claims = Claims(ClaimsLogic(session), driver)
        self.shared = Shared(SharedLogic(session), driver)

    def scoped(self, *, task_id: str | None = None, fencing_token: int | None = None) -> Client:
        """A light client for one piece of work, over the connections of this one.

        task_id: the task that its working memory belongs to
        fencing_token: what its writes are made under, above all the lease of that task: as soon as
            it is over they raise FencedError
        It has seen nothing yet, and closing it closes nothing.
        """
        own = self._session
        client = Client.__new__(Client)
        session = Session(agent=own.agent, task_id=task_id, fencing_token=fencing_token)
        client._assemble(session, self._driver)
        client._is_scoped = True
        return client

    capabilities = blocking(ServiceLogic.capabilities)
    discover = blocking(ServiceLogic.discover)
    health = blocking(ServiceLogic.health)
    ready = blocking(ServiceLogic.ready)
    metrics = blocking(ServiceLogic.metrics)
    whoami = blocking(ServiceLogic.whoami)

    def close(self) -> None:
        """Closes its connections, or the store it has open."""
        if not self._is_scoped:
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
        self._assemble(Session(agent=agent, task_id=task_id), driver)

    def _assemble(self, session: Session, driver: AsyncDriver) -> None:
        super().__init__(ServiceLogic(session), driver)
        self._session = session
        self._is_scoped = False
        self.memory = AsyncMemory(MemoryLogic(session), driver)
        self.events = AsyncEvents(EventsLogic(session), driver)
        self.intents = AsyncIntents(IntentsLogic(session), driver)
        self.tasks = AsyncTasks(TasksLogic(session), driver)
        self.coordinators = AsyncCoordinators(CoordinatorsLogic(session), driver)
        self.attachments = AsyncAttachments(AttachmentsLogic(session), driver)
        self.claims = AsyncClaims(ClaimsLogic(session), driver)
        self.shared = AsyncShared(SharedLogic(session), driver)

    def scoped(
        self, *, task_id: str | None = None, fencing_token: int | None = None
    ) -> AsyncClient:
        """A light client for one piece of work, over the connections of this one.

        task_id: the task that its working memory belongs to
        fencing_token: what its writes are made under, above all the lease of that task: as soon as
            it is over they raise FencedError
        It has seen nothing yet, and closing it closes nothing.
        """
        own = self._session
        client = AsyncClient.__new__(AsyncClient)
        session = Session(agent=own.agent, task_id=task_id, fencing_token=fencing_token)
        client._assemble(session, self._driver)
        client._is_scoped = True
        return client

    capabilities = awaiting(ServiceLogic.capabilities)
    discover = awaiting(ServiceLogic.discover)
    health = awaiting(ServiceLogic.health)
    ready = awaiting(ServiceLogic.ready)
    metrics = awaiting(ServiceLogic.metrics)
    whoami = awaiting(ServiceLogic.whoami)

    async def aclose(self) -> None:
        """Closes its connections."""
        if not self._is_scoped:
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
