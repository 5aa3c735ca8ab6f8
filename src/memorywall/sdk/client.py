"""The clients, sync and async, over the same logic."""

from __future__ import annotations

import os
import ssl
from abc import abstractmethod
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypedDict, TypeVar

import httpx

from memorywall.records.errors import ConfigurationError
from memorywall.sdk.attachments import (
    AsyncAttachmentsClient,
    AttachmentsClient,
    AttachmentsCore,
)
from memorywall.sdk.claims import AsyncClaimsClient, ClaimsClient, ClaimsCore
from memorywall.sdk.client_state import ClientState, said_at_header, subject_header
from memorywall.sdk.connections import Connections, can_connect
from memorywall.sdk.contexts import AsyncContextsClient, ContextsClient, ContextsCore
from memorywall.sdk.coordinators import (
    AsyncCoordinatorsClient,
    CoordinatorsClient,
    CoordinatorsCore,
)
from memorywall.sdk.events import AsyncEventsClient, EventsClient, EventsCore
from memorywall.sdk.executors import AwaitingDriver, BlockingDriver, RequestDriver
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.facts import AsyncFactsClient, FactsClient, FactsCore
from memorywall.sdk.groups import AsyncGroupsClient, GroupsClient, GroupsCore
from memorywall.sdk.http import AsyncDriver, Driver, tls_context
from memorywall.sdk.intents import AsyncIntentsClient, IntentsClient, IntentsCore
from memorywall.sdk.jobs import AsyncJobsClient, JobsClient, JobsCore
from memorywall.sdk.keys import AsyncKeysClient, KeysClient, KeysCore
from memorywall.sdk.memory import AsyncMemoryClient, MemoryClient, MemoryCore
from memorywall.sdk.openwop import AsyncOpenWopClient, OpenWopClient, OpenWopCore
from memorywall.sdk.promotions import AsyncPromotionsClient, PromotionsClient, PromotionsCore
from memorywall.sdk.service import ServiceCore
from memorywall.sdk.sessions import AsyncSessionsClient, SessionsClient, SessionsCore
from memorywall.sdk.shared import AsyncSharedClient, SharedClient, SharedCore
from memorywall.sdk.tasks import AsyncTasksClient, TasksClient, TasksCore
from memorywall.sdk.value_schemas import (
    AsyncValueSchemasClient,
    ValueSchemasClient,
    ValueSchemasCore,
)
from memorywall.sdk.working_memory import (
    AsyncWorkingMemoryClient,
    WorkingMemoryClient,
    WorkingMemoryCore,
)
from memorywall.settings import DEFAULT_PORT

URL_ENVIRONMENT = "MEMORYWALL_URL"
KEY_ENVIRONMENT = "MEMORYWALL_API_KEY"
DEFAULT_TIMEOUT = 30.0
AnyDriver = TypeVar("AnyDriver", bound=RequestDriver)


class _ServiceMethods:
    remember = method(ServiceCore.remember)
    recall = method(ServiceCore.recall)
    correct = method(ServiceCore.correct)
    retract = method(ServiceCore.retract)
    undo = method(ServiceCore.undo)
    recall_episodes = method(ServiceCore.recall_episodes)
    profile = method(ServiceCore.profile)
    capabilities = method(ServiceCore.capabilities)
    discover = method(ServiceCore.discover)
    health = method(ServiceCore.health)
    ready = method(ServiceCore.ready)
    status = method(ServiceCore.status)
    metrics = method(ServiceCore.metrics)
    whoami = method(ServiceCore.whoami)
    call = method(ServiceCore.call)
    forget = method(ServiceCore.forget)
    forget_agent = method(ServiceCore.forget_agent)
    tiers = method(ServiceCore.tiers)
    narrow_tier = method(ServiceCore.narrow_tier)
    quota = method(ServiceCore.quota)
    set_quota = method(ServiceCore.set_quota)
    worthiness = method(ServiceCore.worthiness)
    set_worthiness = method(ServiceCore.set_worthiness)
    evict = method(ServiceCore.evict)
    schemas = method(ServiceCore.schemas)
    schema = method(ServiceCore.schema)


class _Scopes(Generic[AnyDriver]):
    """What makes clients over the connections of another client, or over a driver."""

    driver: AnyDriver
    _state: ClientState
    _is_scoped = False

    @classmethod
    def over(
        cls, driver: AnyDriver, *, agent: str | None = None, task_id: str | None = None
    ) -> Self:
        """Creates a client that sends its requests with the given driver."""
        client = cls.__new__(cls)
        client._assemble(ClientState(agent=agent, task_id=task_id), driver)
        return client

    def scoped(self, *, task_id: str | None = None, fencing_token: int | None = None) -> Self:
        """Returns a client for one task, over the connections of this client.

        task_id: the task of its working memory
        fencing_token: the token of its writes, usually of the lease of that task; after the lease
            is over its writes raise FencedError

        The new client has seen no versions. Closing it closes no connections.
        """
        own = self._state
        state = own.derived(
            task_id=task_id, fencing_token=fencing_token, subject=own.versions.subject
        )
        return self._over_same_connections(state, self.driver)

    def for_user(self, *users: str, said_at: datetime | str | None = None) -> Self:
        """Returns a client for one person, or for some people who talk together, over the
        connections of this client.

        users: the ids of at most 16 people, sent as `X-Subject`
        said_at: when what the client stores was said, such as a turn that waited in a file, as RFC
            3339 text or a datetime with a time zone; sent as `X-Said-At`. What it stores raises
            SubjectForgottenError if one of these people was forgotten since. Default: as this
            client

        The client finds entries about these people only and entries without a subject. Its writes
        are about all of them; for one person, in namespaces that begin with `user/` and the id. It
        offers only `memory`, `sessions`, `context`, `claims`, `remember`, `recall`,
        `recall_episodes` and `profile`; other requests raise MemoryAccessError. Closing it closes
        no connections. Raises ValidationError for no person, an id that cannot be sent, or an
        instant without an offset.
        """
        header = subject_header(users)
        state = self._state.derived(task_id=self._state.task_id, subject=header)
        driver = self.driver.for_subject(header, said_at_header(said_at))
        return self._over_same_connections(state, driver)

    def in_session(self, session_id: str) -> Self:
        """Returns a client for requests inside one session, over the connections of this client.

        session_id: the id of a session of this agent, or of one that it takes part in; sent as
            `X-Session-ID`

        The client finds session and working memory of this session only, other memory of no other
        session, and nothing about other people than the subject of the session. What it writes
        belongs to the session. It offers what a client of `for_user` offers. For a session with a
        subject, begin with `for_user`, so that versions are known by name. Requests raise
        ResourceNotFoundError without access to the session and SessionClosedError after its end.
        Closing the client closes no connections.
        """
        own = self._state
        state = own.derived(
            task_id=own.task_id,
            fencing_token=own.fencing_token,
            subject=own.versions.subject,
            session=session_id,
        )
        return self._over_same_connections(state, self.driver.in_session(session_id))

    def _over_same_connections(self, state: ClientState, driver: AnyDriver) -> Self:
        """Returns a client that closes no connections."""
        client = type(self).__new__(type(self))
        client._assemble(state, driver)
        client._is_scoped = True
        return client

    @abstractmethod
    def _assemble(self, state: ClientState, driver: AnyDriver) -> None:
        """Sets the attributes of a client."""


class Client(_ServiceMethods, _Scopes[BlockingDriver], Facade[ServiceCore]):
    """A client of a memorywall server, or of a store in this process (`memorywall.open`).

    server_url: the URL of the server; default: MEMORYWALL_URL, or this machine
    api_key: default: MEMORYWALL_API_KEY
    agent: the agent to act for (X-Agent-ID); default: the key's own
    task_id: the default task of working memory
    timeout: seconds to connect, and to wait for each part of a response
    transport: an httpx transport to use instead of the network. It is used as it is in forked
        processes too; one that keeps connections needs another client in each process

    May be used from several threads; see `memory.set` about versions in that case. A forked process
    may use the client too: it opens connections of its own, and continues a `watch` or an export
    after the last received item. A client of a store in this process raises StoreLockedError there.
    Closing the client closes connections of the calling process only. Close the client, or use it
    in a `with` statement.
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
        is_direct = transport is None and can_connect(**options)
        driver = Driver(
            lambda: httpx.Client(transport=transport, **options),
            connect_directly=(lambda: Connections(**options)) if is_direct else None,
        )
        self._assemble(ClientState(agent=agent, task_id=task_id), driver)

    def _assemble(self, state: ClientState, driver: BlockingDriver) -> None:
        super().__init__(ServiceCore(state), driver)
        self._state = state
        self.memory = MemoryClient(MemoryCore(state), driver)
        self.events = EventsClient(EventsCore(state), driver)
        self.intents = IntentsClient(IntentsCore(state), driver)
        self.tasks = TasksClient(TasksCore(state), driver)
        self.coordinators = CoordinatorsClient(CoordinatorsCore(state), driver)
        self.attachments = AttachmentsClient(AttachmentsCore(state, "intent"), driver)
        self.claims = ClaimsClient(ClaimsCore(state), driver)
        self.jobs = JobsClient(JobsCore(), driver)
        self.facts = FactsClient(FactsCore(state), driver)
        self.groups = GroupsClient(GroupsCore(), driver)
        self.promotions = PromotionsClient(PromotionsCore(), driver)
        self.keys = KeysClient(KeysCore(), driver)
        self.sessions = SessionsClient(SessionsCore(), driver)
        self.context = ContextsClient(ContextsCore(), driver)
        self.shared = SharedClient(SharedCore(state), driver)
        self.value_schemas = ValueSchemasClient(ValueSchemasCore(), driver)
        self.working = WorkingMemoryClient(WorkingMemoryCore(state), driver)
        self.openwop = OpenWopClient(OpenWopCore(), driver)

    def close(self) -> None:
        """Closes the connections, or the client's store."""
        if not self._is_scoped:
            self.driver.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_ServiceMethods, _Scopes[AwaitingDriver], AsyncFacade[ServiceCore]):
    """The async variant of `Client`, with the same arguments.

    Its tasks share the versions that it has seen, like the threads of a `Client`. Each event loop
    has connections of its own, which are closed when the loop ends, and with them a `transport`; so
    one client may be used in several calls of `asyncio.run` and in several threads. A client of
    `memorywall.open_async` raises RuntimeError on another event loop than its own. Close it with
    `close()`, or use it in an `async with` statement.
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
        driver = AsyncDriver(lambda: httpx.AsyncClient(transport=transport, **options))
        self._assemble(ClientState(agent=agent, task_id=task_id), driver)

    def _assemble(self, state: ClientState, driver: AwaitingDriver) -> None:
        super().__init__(ServiceCore(state), driver)
        self._state = state
        self.memory = AsyncMemoryClient(MemoryCore(state), driver)
        self.events = AsyncEventsClient(EventsCore(state), driver)
        self.intents = AsyncIntentsClient(IntentsCore(state), driver)
        self.tasks = AsyncTasksClient(TasksCore(state), driver)
        self.coordinators = AsyncCoordinatorsClient(CoordinatorsCore(state), driver)
        self.attachments = AsyncAttachmentsClient(AttachmentsCore(state, "intent"), driver)
        self.claims = AsyncClaimsClient(ClaimsCore(state), driver)
        self.jobs = AsyncJobsClient(JobsCore(), driver)
        self.facts = AsyncFactsClient(FactsCore(state), driver)
        self.groups = AsyncGroupsClient(GroupsCore(), driver)
        self.promotions = AsyncPromotionsClient(PromotionsCore(), driver)
        self.keys = AsyncKeysClient(KeysCore(), driver)
        self.sessions = AsyncSessionsClient(SessionsCore(), driver)
        self.context = AsyncContextsClient(ContextsCore(), driver)
        self.shared = AsyncSharedClient(SharedCore(state), driver)
        self.value_schemas = AsyncValueSchemasClient(ValueSchemasCore(), driver)
        self.working = AsyncWorkingMemoryClient(WorkingMemoryCore(state), driver)
        self.openwop = AsyncOpenWopClient(OpenWopCore(), driver)

    async def aclose(self) -> None:
        """Closes the connections, or the client's store."""
        if not self._is_scoped:
            await self.driver.close()

    close = aclose

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
    verify: ssl.SSLContext


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
    return {"base_url": url, "headers": headers, "timeout": timeout, "verify": tls_context(url)}
