"""Coordinators of intents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.records.copier import copier
from memorywall.records.errors import (
    FencedError,
    LeaseHeldError,
    ResourceNotFoundError,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class CoordinatorRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new coordinator of an intent."""

    agent_id: str
    intent_id: str
    guardrails: dict[str, Any] | None = None
    heartbeat_interval_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60
    expires_at: str | None = None
    role: str = "coordinator"
    coordinator_type: str = "llm"
    scope: Literal["intent"] = "intent"
    supervisor_id: str | None = None
    metadata: dict[str, Any] = {}


class CoordinatorResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A coordinator. `status` is `active`, `unresponsive` (without heartbeats) or `completed`."""

    id: str
    intent_id: str
    agent_id: str
    role: str
    coordinator_type: str
    scope: str
    status: str
    guardrails: dict[str, Any] | None = None
    heartbeat_interval_seconds: int
    last_heartbeat: str
    granted_at: str
    expires_at: str
    fencing_token: int
    supervisor_id: str | None = None
    version: int
    metadata: dict[str, Any]


def guardrails_from(given: dict[str, Any]) -> Guardrails:
    """The guardrails of a request. Guardrails of memory are validated; others are kept unchanged.

    Raises msgspec.ValidationError.
    """
    own = {name for name in Guardrails.__struct_fields__ if name != "others"}
    known = {name: value for name, value in given.items() if name in own}
    others = {name: value for name, value in given.items() if name not in own}
    return msgspec.convert({**known, "others": others}, Guardrails)


_coordinator = copier(
    Coordinator,
    CoordinatorResponse,
    given=["scope", "status", "guardrails"],
    fencing_token=lambda coordinator: coordinator.token,
)


def coordinator_view(coordinator: Coordinator, now: str) -> CoordinatorResponse:
    """The wire form of a coordinator at an instant."""
    status = "active" if now < coordinator.expires_at else "unresponsive"
    if coordinator.resigned_at is not None:
        status = "completed"
    guardrails = None
    if coordinator.guardrails is not None:
        guardrails = msgspec.to_builtins(coordinator.guardrails)
        guardrails["memory_archive_required"] = coordinator.guardrails.memory_archive_required
        guardrails.update(guardrails.pop("others", {}))
    return _coordinator(coordinator, scope="intent", status=status, guardrails=guardrails)


_COORDINATORS = OperationGroup(name="Coordinators", source="RFC-0013")

COORDINATOR_OPERATIONS: tuple[Operation, ...] = (
    _COORDINATORS(
        "list_coordinators",
        "GET /intents/{intent_id}/coordinators",
        "List the coordinators of an intent, former ones too, oldest first.",
        reply=list[CoordinatorResponse],
    ),
    _COORDINATORS(
        "appoint_coordinator",
        "POST /coordinators",
        "Appoint a coordinator for an intent.",
        source="RFC-0013, RFC-0015 section 6.6",
        body=CoordinatorRequest,
        reply=CoordinatorResponse,
        status=201,
        raises=(ResourceNotFoundError, LeaseHeldError),
    ),
    _COORDINATORS(
        "get_coordinator",
        "GET /coordinators/{coordinator_id}",
        "Get a coordinator.",
        reply=CoordinatorResponse,
    ),
    _COORDINATORS(
        "send_heartbeat",
        "POST /coordinators/{coordinator_id}/heartbeat",
        "Send a heartbeat, which renews the coordinator's lease.",
        reply=CoordinatorResponse,
        raises=(FencedError,),
    ),
    _COORDINATORS(
        "resign_coordinator",
        "DELETE /coordinators/{coordinator_id}",
        "Resign as coordinator.",
        raises=(FencedError,),
    ),
)
