"""Coordinators: one at a time per intent, under a lease, with guardrails (RFC-0013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from memorywall.coordination.access import check_writer, load_authorized_intent
from memorywall.coordination.leases import acquire_lease, expiry_after, record_lease, renew
from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.records.event import WorkEventType
from memorywall.records.lease import LeaseKind
from memorywall.service.access.known_names import known_agent
from memorywall.service.entries.record_writes import replace_record
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name, encode_value

MISSED_HEARTBEATS = 3
"""The number of missed heartbeats that ends the lease of a coordinator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCoordinator:
    """A new coordinator of an intent; see `Coordinator`."""

    intent_id: str
    agent_id: str
    guardrails: Guardrails | None
    heartbeat_interval_seconds: int
    ends_at: str | None
    role: str
    coordinator_type: str
    supervisor_id: str | None
    metadata: dict[str, Any]


async def appoint(context: OperationContext, wanted: NewCoordinator) -> Coordinator:
    """Appoints a coordinator; the caller must administer the intent.

    The guardrails remain in force after the coordinator's lease has ended, until another
    coordinator replaces them: the death of a process must not remove a limit.

    Raises ValidationError, ResourceNotFoundError, MemoryAccessError, LeaseHeldError while the
    intent has another coordinator.
    """
    wanted = replace(wanted, agent_id=await known_agent(context, "agent_id", wanted.agent_id))
    for name in ("role", "coordinator_type"):
        check_name(name, getattr(wanted, name), longest=64)
    encode_value(wanted.metadata)
    if wanted.guardrails is not None:
        encode_value(wanted.guardrails.others)
    if wanted.ends_at is not None and wanted.ends_at <= context.now:
        raise ValidationError("`expires_at` is in the past")
    intent, _ = await load_authorized_intent(context, Verb.ADMINISTER, wanted.intent_id)
    until = _until(context.now, wanted.heartbeat_interval_seconds, wanted.ends_at)
    lease = await acquire_lease(
        context, wanted.agent_id, LeaseKind.COORDINATOR, intent.id, "", until=until
    )
    coordinator = Coordinator(
        tenant=context.tenant,
        id=lease.id,
        intent_id=intent.id,
        agent_id=wanted.agent_id,
        token=lease.token,
        role=wanted.role,
        coordinator_type=wanted.coordinator_type,
        supervisor_id=wanted.supervisor_id,
        guardrails=wanted.guardrails,
        heartbeat_interval_seconds=wanted.heartbeat_interval_seconds,
        last_heartbeat=context.now,
        granted_at=context.now,
        expires_at=until,
        ends_at=wanted.ends_at,
        is_accepted=wanted.agent_id == context.principal.id,
        metadata=wanted.metadata,
    )
    await context.transaction.coordinators.insert(coordinator)
    await record_lease(context, WorkEventType.LEASE_ACQUIRED, lease)
    if wanted.guardrails is not None:
        await _set_guardrails(context, coordinator)
    return coordinator


async def get(context: OperationContext, coordinator_id: str) -> Coordinator:
    """A coordinator, present or former, of an intent that the caller may read."""
    coordinator = await _known(context, coordinator_id)
    await load_authorized_intent(context, Verb.READ, coordinator.intent_id)
    return coordinator


async def list_of_intent(context: OperationContext, intent_id: str) -> list[Coordinator]:
    """All coordinators of an intent, present and former, oldest first."""
    await load_authorized_intent(context, Verb.READ, intent_id)
    return await context.transaction.coordinators.list(intent_id)


async def heartbeat(context: OperationContext, coordinator_id: str) -> Coordinator:
    """Renews the lease of a coordinator.

    Raises ResourceNotFoundError, MemoryAccessError, FencedError if the lease is not live.
    """
    coordinator = await _own(context, coordinator_id)
    until = _until(context.now, coordinator.heartbeat_interval_seconds, coordinator.ends_at)
    await renew(context, coordinator.token, until=until)
    living = msgspec.structs.replace(
        coordinator,
        last_heartbeat=context.now,
        expires_at=until,
        is_accepted=True,
        version=coordinator.version + 1,
    )
    await context.transaction.coordinators.replace(living)
    return living


async def resign(context: OperationContext, coordinator_id: str) -> None:
    """Ends the lease of a coordinator. Raises like `heartbeat`."""
    coordinator = await _own(context, coordinator_id)
    lease = await context.transaction.leases.find_held(
        coordinator.token, context.principal.id, context.now
    )
    if lease is None:
        raise FencedError("the lease of this coordinator has ended")
    await context.transaction.leases.end(lease.token)
    await context.transaction.coordinators.replace(
        msgspec.structs.replace(
            coordinator,
            resigned_at=context.now,
            expires_at=context.now,
            version=coordinator.version + 1,
        )
    )
    await record_lease(context, WorkEventType.LEASE_RELEASED, lease)


async def _set_guardrails(context: OperationContext, coordinator: Coordinator) -> None:
    intent = await context.transaction.intents.get(coordinator.intent_id)
    if intent is None:
        raise ResourceNotFoundError("there is no such intent")
    await replace_record(
        context, msgspec.structs.replace(intent, guardrails=coordinator.guardrails)
    )
    await append_work_event(
        context,
        WorkEventType.GUARDRAILS_UPDATED,
        intent_id=intent.id,
        data={"coordinator_id": coordinator.id},
    )


async def _known(context: OperationContext, coordinator_id: str) -> Coordinator:
    coordinator = await context.transaction.coordinators.get(coordinator_id)
    if coordinator is None:
        raise ResourceNotFoundError("coordinator not found")
    return coordinator


async def _own(context: OperationContext, coordinator_id: str) -> Coordinator:
    await check_writer(context)
    coordinator = await _known(context, coordinator_id)
    if coordinator.agent_id != context.principal.id:
        raise MemoryAccessError("only the coordinator itself can do this")
    return coordinator


def _until(now: str, interval: int, ends_at: str | None) -> str:
    until = expiry_after(now, interval * MISSED_HEARTBEATS)
    return until if ends_at is None else min(until, ends_at)
