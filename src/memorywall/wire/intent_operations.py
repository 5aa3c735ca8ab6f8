"""Operations on intents: state, log, leases and access lists."""

from __future__ import annotations

from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.wire.access import AccessRequest, AccessResponse, GrantRequest, GrantResponse
from memorywall.wire.agents import EventPageResponse, EventResponse
from memorywall.wire.leases import (
    LeaseListResponse,
    LeaseRenewalRequest,
    LeaseRequest,
    LeaseResponse,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup
from memorywall.wire.work import (
    EventRequest,
    IntentEventQuery,
    IntentListResponse,
    IntentQuery,
    IntentRequest,
    IntentResponse,
    StateRequest,
    StatusRequest,
    SubscribeQuery,
)

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
