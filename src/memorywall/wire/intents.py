"""Intents, their logs, leases and access."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant, IntentStatus
from memorywall.records.namespace import Access
from memorywall.wire.events import EventPageResponse, EventResponse
from memorywall.wire.leases import (
    LeaseListResponse,
    LeaseRenewalRequest,
    LeaseRequest,
    LeaseResponse,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

PageLimit = Annotated[int, Meta(ge=1, le=1_000)]
Offset = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class IntentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new intent. `created_by` is optional and must be the caller."""

    title: str
    description: str = ""
    constraints: dict[str, Any] | list[Any] = {}
    state: dict[str, Any] = {}
    created_by: str | None = None
    parent_intent_id: str | None = None
    depends_on: list[str] = []


class IntentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An intent."""

    id: str
    title: str
    description: str
    version: int
    status: IntentStatus
    state: dict[str, Any]
    constraints: dict[str, Any]
    parent_intent_id: str | None
    depends_on: tuple[str, ...]
    created_by: str
    created_at: str
    updated_at: str
    confidence: int = 0


_intent = copier(Intent, IntentResponse, defaults=["confidence"])


def intent_view(intent: Intent) -> IntentResponse:
    """The wire form of an intent."""
    if intent.sealed is not None:
        raise ValueError("the state of this intent is sealed; open it first")
    return _intent(intent)


class IntentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects intents."""

    status: IntentStatus | None = None
    limit: PageLimit = 50
    offset: Offset = 0


class IntentListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One page of intents, newest first."""

    intents: list[IntentResponse]
    total: int
    limit: int
    offset: int


class StatePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of an intent's state. `path` is the name of a top-level member."""

    op: Literal["set", "remove"]
    path: Annotated[str, Meta(min_length=1, max_length=256)]
    value: Any = None


class StateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes of an intent's state, all or none."""

    patches: Annotated[list[StatePatch], Meta(min_length=1, max_length=1_000)]


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An intent's new status, with an optional reason."""

    status: IntentStatus
    reason: Annotated[str, Meta(max_length=4_096)] | None = None


class EventRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client event for an intent's log."""

    event_type: str
    payload: dict[str, Any] = {}
    actor: str | None = None
    trace_id: Annotated[str, Meta(max_length=256)] | None = None
    parent_event_id: Annotated[str, Meta(max_length=256)] | None = None


class IntentEventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects events of an intent's log.

    since: an RFC 3339 instant; only events at or after it
    after: the `seq` of the last event that the client has
    """

    event_type: str | None = None
    since: str | None = None
    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: PageLimit = 100


class SubscribeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a stream: events after the `seq` in `after`, by default new events only."""

    after: Annotated[int, Meta(ge=0, le=2**62)] | None = None


Level = Literal["read", "write", "admin"]


class GrantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new entry of an access list. The server ignores `id`, `granted_by` and `granted_at`.

    expires_at: an RFC 3339 instant, null for no expiry
    """

    principal_id: str
    principal_type: str = "agent"
    permission: Level = "read"
    reason: Annotated[str, Meta(max_length=4_096)] | None = None
    expires_at: str | None = None
    id: str | None = None
    granted_by: str | None = None
    granted_at: str | None = None


class GrantResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of an access list."""

    id: str
    principal_id: str
    principal_type: str
    permission: Access
    granted_by: str
    granted_at: str
    expires_at: str | None = None
    reason: str | None = None


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole access list."""

    default_policy: DefaultPolicy = DefaultPolicy.CLOSED
    entries: list[GrantRequest] = []
    intent_id: str | None = None


class AccessResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A whole access list."""

    intent_id: str
    default_policy: DefaultPolicy
    entries: list[GrantResponse]


grant_view = copier(IntentGrant, GrantResponse, permission="access")
"""The wire form of an entry of an access list."""

_INTENTS = OperationGroup(name="Intents", source="RFC-0001")

# Paths with fixed segments come before paths with ids.
INTENT_OPERATIONS: tuple[Operation, ...] = (
    _INTENTS(
        "create_intent",
        "POST /intents",
        "Create an intent; the creator administers it.",
        body=IntentRequest,
        reply=IntentResponse,
        status=201,
        accepts_idempotency_key=True,
        etag=True,
        raises=(ResourceNotFoundError,),
    ),
    _INTENTS(
        "list_intents",
        "GET /intents",
        "List the intents that the caller may read, newest first.",
        query=IntentQuery,
        reply=IntentListResponse,
    ),
    _INTENTS(
        "get_intent", "GET /intents/{intent_id}", "Get an intent.", reply=IntentResponse, etag=True
    ),
    _INTENTS(
        "patch_intent_state",
        "POST /intents/{intent_id}/state",
        "Set or remove members of an intent's state.",
        body=StateRequest,
        reply=IntentResponse,
        if_match="required",
        etag=True,
        raises=(ResourceConflictError,),
    ),
    _INTENTS(
        "set_intent_status",
        "POST /intents/{intent_id}/status",
        "Set an intent's status.",
        body=StatusRequest,
        reply=IntentResponse,
        if_match="required",
        etag=True,
        raises=(ResourceConflictError,),
    ),
    _INTENTS(
        "log_intent_event",
        "POST /intents/{intent_id}/events",
        "Append a client event to an intent's log.",
        body=EventRequest,
        reply=EventResponse,
        status=201,
        accepts_idempotency_key=True,
    ),
    _INTENTS(
        "list_intent_events",
        "GET /intents/{intent_id}/events",
        "Read an intent's log as a JSON page or as endless Server-Sent Events.",
        source="RFC-0001, RFC-0015 section 5",
        query=IntentEventQuery,
        reply=EventPageResponse,
        media="events",
    ),
    _INTENTS(
        "subscribe_intent",
        "GET /intents/{intent_id}/subscribe",
        "Follow an intent's log as Server-Sent Events.",
        source="OpenIntent client",
        query=SubscribeQuery,
        reply=None,
        media="events",
    ),
    _INTENTS(
        "acquire_lease",
        "POST /intents/{intent_id}/leases",
        "Acquire a lease on a scope of an intent.",
        source="RFC-0003",
        body=LeaseRequest,
        reply=LeaseResponse,
        status=201,
        raises=(LeaseHeldError,),
    ),
    _INTENTS(
        "list_leases",
        "GET /intents/{intent_id}/leases",
        "List the live leases of an intent.",
        source="RFC-0003",
        reply=LeaseListResponse,
    ),
    _INTENTS(
        "renew_lease",
        "PATCH /intents/{intent_id}/leases/{lease_id}",
        "Renew a lease on a scope.",
        source="RFC-0003",
        body=LeaseRenewalRequest,
        reply=LeaseResponse,
        raises=(FencedError,),
    ),
    _INTENTS(
        "release_lease",
        "DELETE /intents/{intent_id}/leases/{lease_id}",
        "Release a lease on a scope.",
        source="RFC-0003",
    ),
    _INTENTS(
        "get_access",
        "GET /intents/{intent_id}/acl",
        "Get an intent's access list.",
        source="RFC-0011",
        reply=AccessResponse,
    ),
    _INTENTS(
        "set_access",
        "PUT /intents/{intent_id}/acl",
        "Replace an intent's access list.",
        source="RFC-0011",
        body=AccessRequest,
        reply=AccessResponse,
    ),
    _INTENTS(
        "grant_access",
        "POST /intents/{intent_id}/acl/entries",
        "Add an entry to an intent's access list.",
        source="RFC-0011",
        body=GrantRequest,
        reply=GrantResponse,
        status=201,
    ),
    _INTENTS(
        "revoke_access",
        "DELETE /intents/{intent_id}/acl/entries/{grant_id}",
        "Remove an entry from an intent's access list.",
        source="RFC-0011",
    ),
)
