"""`client.events`, and what a client asks of the server itself, in no colour."""

from __future__ import annotations

from typing import Any, TypeVar

from memorywall.records.errors import RequestError
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState, agent_or_own, whoami
from memorywall.sdk.effects import OPERATIONS_BY_NAME, Request, RequestGenerator, StreamGenerator
from memorywall.sdk.errors import decode, raise_for
from memorywall.sdk.filters import without_absent
from memorywall.sdk.models import EventPage, Identity, read_event
from memorywall.sdk.retry import call
from memorywall.sdk.streams import follow_events
from memorywall.wire.agents import EventPageResponse as WireEventPage
from memorywall.wire.agents import EventResponse
from memorywall.wire.kinds import (
    EvictResponse,
    ForgetResponse,
    KindView,
    SchemaListResponse,
    SchemaResponse,
    TierListResponse,
    TierView,
)
from memorywall.wire.parameters import parameters_of
from memorywall.wire.service import (
    CapabilitiesResponse,
    DiscoveryResponse,
    ReadinessResponse,
    StatusResponse,
)

Shape = TypeVar("Shape")


class EventsCore:
    """The operations on an agent's event stream, as scripts for a driver."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def list(
        self, after: int = 0, limit: int = 100, *, agent_id: str | None = None
    ) -> RequestGenerator[EventPage]:
        """Events of an agent's stream after a sequence number, by default of the client's own."""
        agent = yield from agent_or_own(self._state, agent_id)
        query = {"after": after, "limit": limit}
        page = yield from call("list_events", WireEventPage, agent_id=agent, query=query)
        return EventPage(map(read_event, page.events), next=page.next)

    def follow(
        self, after: int = 0, *, agent_id: str | None = None, patience: float = 30.0
    ) -> StreamGenerator[EventResponse]:
        """Events of an agent's stream as they happen, each once and in order, without end.

        A connection that is cut is taken up again after the last event received, for up to
        `patience` seconds of pauses between attempts; then MemoryTransportError is raised. To end
        it, stop iterating and `close()` (or `aclose()`) the iterator.
        """
        agent = yield from agent_or_own(self._state, agent_id)
        yield from follow_events("list_events", {"agent_id": agent}, after, patience)


class ServiceCore:
    """What a client asks of the server itself, as scripts for a driver."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def capabilities(self) -> RequestGenerator[CapabilitiesResponse]:
        """What the server can do, and its limits."""
        return call("get_capabilities", CapabilitiesResponse)

    def discover(self) -> RequestGenerator[DiscoveryResponse]:
        """The OpenIntent discovery document."""
        return call("discover", DiscoveryResponse)

    def health(self) -> RequestGenerator[StatusResponse]:
        """Whether the server is alive."""
        return call("health", StatusResponse)

    def ready(self) -> RequestGenerator[ReadinessResponse]:
        """Whether the server can read its store and open what is sealed, and how far embedding
        is."""
        return call("ready", ReadinessResponse)

    def metrics(self) -> RequestGenerator[str]:
        """What can be measured of the server, in the text format of Prometheus."""
        response = yield from retry.again(Request(operation="metrics"))
        raise_for(response)
        return response.body.decode()

    def tiers(self) -> RequestGenerator[list[TierView]]:
        """The tiers and what holds in each for the tenant."""
        return (yield from call("list_tiers", TierListResponse)).tiers

    def narrow_tier(
        self,
        memory_type: str,
        *,
        capacity: int | None = None,
        default_ttl: str | None = None,
        eviction: str | None = None,
    ) -> RequestGenerator[TierView]:
        """Narrows a tier for the tenant, for its administrators; what is left out goes back to the
        value of the server. Returns the tier as it is from now on.

        capacity: entries, at most the server's capacity of the tier
        default_ttl: the `ttl` of entries without one: "duration:" with an ISO 8601 duration
        eviction: "refuse", "lru", "lfu", "oldest" or "utility"
        Raises MemoryAccessError, ValidationError, MemoryNotFoundError.
        """
        limits = {"capacity": capacity, "default_ttl": default_ttl, "eviction": eviction}
        return call("narrow_tier", TierView, memory_type=memory_type, body=limits)

    def evict(
        self,
        memory_type: str,
        target: int,
        *,
        agent_id: str | None = None,
        namespace: str | None = None,
        policy: str | None = None,
        dry_run: bool = False,
    ) -> RequestGenerator[EvictResponse]:
        """Evicts entries of a tier until `target` are left, for administrators of the tenant.

        agent_id: whose entries, in a tier isolated by agent
        namespace: where they lie, in a tier isolated by namespace
        policy: what goes first: "lru", "lfu", "oldest" or "utility"; by default the tier's own
        dry_run: tell what would go, and remove nothing
        Raises MemoryAccessError, ValidationError.
        """
        asked = {
            "target": target,
            "agent_id": agent_id,
            "namespace": namespace,
            "policy": policy,
            "dry_run": dry_run,
        }
        return call(
            "evict_entries", EvictResponse, memory_type=memory_type, body=without_absent(asked)
        )

    def schemas(self) -> RequestGenerator[list[KindView]]:
        """The kinds of values that the server knows."""
        return (yield from call("list_schemas", SchemaListResponse)).schemas

    def schema(self, kind: str) -> RequestGenerator[SchemaResponse]:
        """A kind and the JSON Schema of its value. Raises MemoryNotFoundError."""
        return call("get_schema", SchemaResponse, kind=kind)

    def forget(self, *, subject: str) -> RequestGenerator[ForgetResponse]:
        """Erases everything about a person, with what was derived from it, for administrators of
        the tenant. It may be called again, to finish what was interrupted.

        Raises MemoryAccessError, ValidationError.
        """
        return call("forget_subject", ForgetResponse, subject=subject)

    def call(self, operation: str, /, **parameters: Any) -> RequestGenerator[Any]:
        """The result of any operation of the server that takes and answers JSON, as dicts, lists
        and scalars; for those that no method offers in this form.

        operation: its name in the reference
        parameters: those of its path, query and body by name, `if_match` and `fencing_token`; use
            `**{"scope.task_id": ...}` for a name with a dot
        Raises RequestError for a name that is no such operation, and what the operation raises.
        """
        record = OPERATIONS_BY_NAME.get(operation)
        if record is None or not record.is_json:
            raise RequestError("there is no operation of this name that takes and answers JSON")
        given = parameters_of(record, parameters)
        request = Request(
            operation=operation,
            path=given.path,
            query=retry.texts(given.query),
            body=given.body,
            if_match=None if given.if_match is None else int(given.if_match),
            fencing_token=None if given.fencing_token is None else int(given.fencing_token),
        )
        response = yield from retry.send(request)
        return None if response.status == 204 else decode(response, object)

    def whoami(self) -> RequestGenerator[Identity]:
        """Who the server takes this client for."""
        return whoami(self._state)
