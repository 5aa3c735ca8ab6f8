"""Coordinators: one at a time for an intent, by lease, with guardrails (RFC-0013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from memorywall.coordination.access import check_writer, enter_intent
from memorywall.coordination.leases import end_of, record_lease, renew, take
from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    FencedError,
    MemoryAccessError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.records.event import WorkEvent
from memorywall.records.lease import LeaseKind
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door
from memorywall.wall.limits import check_agent, check_name, encode_value
from memorywall.wall.log import record_work

MISSED_HEARTBEATS = 3
"""After so many intervals without a sign of life a coordinator has no authority any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCoordinator:
    """A coordinator to be put in authority over an intent; see `Coordinator`."""

    intent_id: str
    agent_id: str
    guardrails: Guardrails | None
    heartbeat_interval_seconds: int
    ends_at: str | None
    role: str
    coordinator_type: str
    supervisor_id: str | None
    metadata: dict[str, Any]


async def appoint(door: Door, principal: Principal, wanted: NewCoordinator) -> Script[Coordinator]:
    """A script by which who administers an intent puts a coordinator in authority over it.

    Its guardrails hold from now on, also after its authority has ended, until another coordinator
    sets others: a bound must not go away because a process has died.

    Raises, here or when run: ValidationError, ResourceNotFoundError, MemoryAccessError, HeldError
    while another one is in authority.
    """
    check_agent("agent_id", wanted.agent_id)
    for name in ("role", "coordinator_type"):
        check_name(name, getattr(wanted, name), longest=64)
    encode_value(wanted.metadata)
    if wanted.guardrails is not None:
        encode_value(wanted.guardrails.others)
    now = door.now()
    if wanted.ends_at is not None and wanted.ends_at <= now:
        raise ValidationError("`expires_at` lies in the past")

    async def script(transaction: Transaction) -> Coordinator:
        intent, _ = await enter_intent(
            transaction, principal, Verb.ADMINISTER, wanted.intent_id, now
        )
        until = _until(now, wanted.heartbeat_interval_seconds, wanted.ends_at)
        lease = await take(
            door,
            transaction,
            principal.tenant,
            wanted.agent_id,
            LeaseKind.COORDINATOR,
            intent.id,
            "",
            until=until,
            now=now,
        )
        coordinator = Coordinator(
            tenant=principal.tenant,
            id=lease.id,
            intent_id=intent.id,
            agent_id=wanted.agent_id,
            token=lease.token,
            role=wanted.role,
            coordinator_type=wanted.coordinator_type,
            supervisor_id=wanted.supervisor_id,
            guardrails=wanted.guardrails,
            heartbeat_interval_seconds=wanted.heartbeat_interval_seconds,
            last_heartbeat=now,
            granted_at=now,
            expires_at=until,
            ends_at=wanted.ends_at,
            is_accepted=wanted.agent_id == principal.id,
            metadata=wanted.metadata,
        )
        await transaction.coordinators.insert(coordinator)
        await record_lease(transaction, WorkEvent.LEASE_ACQUIRED, lease, by=principal, at=now)
        if wanted.guardrails is not None:
            await _set_guardrails(transaction, principal, coordinator, now)
        return coordinator

    return script


async def get(door: Door, principal: Principal, coordinator_id: str) -> Coordinator:
    """A coordinator of an intent the caller may read, past or present."""
    now = door.now()

    async def script(transaction: Transaction) -> Coordinator:
        coordinator = await _known(transaction, principal, coordinator_id)
        await enter_intent(transaction, principal, Verb.READ, coordinator.intent_id, now)
        return coordinator

    return await door.store.read(principal.tenant, script)


async def list_of_intent(door: Door, principal: Principal, intent_id: str) -> list[Coordinator]:
    """All coordinators an intent has had, oldest first."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Coordinator]:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await transaction.coordinators.list(principal.tenant, intent_id)

    return await door.store.read(principal.tenant, script)


async def heartbeat(door: Door, principal: Principal, coordinator_id: str) -> Script[Coordinator]:
    """A script by which a coordinator gives a sign of life, and keeps its authority.

    Raises when run: ResourceNotFoundError, MemoryAccessError, FencedError when its authority is
    over, however lately.
    """
    now = door.now()

    async def script(transaction: Transaction) -> Coordinator:
        coordinator = await _own(transaction, principal, coordinator_id, now)
        until = _until(now, coordinator.heartbeat_interval_seconds, coordinator.ends_at)
        await renew(transaction, principal, coordinator.token, until=until, now=now)
        living = msgspec.structs.replace(
            coordinator,
            last_heartbeat=now,
            expires_at=until,
            is_accepted=True,
            version=coordinator.version + 1,
        )
        await transaction.coordinators.replace(living)
        return living

    return script


async def resign(door: Door, principal: Principal, coordinator_id: str) -> Script[None]:
    """A script by which a coordinator gives its authority back. Raises like `heartbeat`."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        coordinator = await _own(transaction, principal, coordinator_id, now)
        lease = await transaction.leases.held(
            principal.tenant, coordinator.token, principal.id, now
        )
        if lease is None:
            raise FencedError("this coordinator is in authority no more")
        await transaction.leases.end(principal.tenant, lease.token)
        await transaction.coordinators.replace(
            msgspec.structs.replace(
                coordinator, resigned_at=now, expires_at=now, version=coordinator.version + 1
            )
        )
        await record_lease(transaction, WorkEvent.LEASE_RELEASED, lease, by=principal, at=now)

    return script


async def _set_guardrails(
    transaction: Transaction, principal: Principal, coordinator: Coordinator, now: str
) -> None:
    intent = await transaction.intents.get(principal.tenant, coordinator.intent_id)
    if intent is None:
        raise ResourceNotFoundError("there is no such intent")
    await transaction.intents.replace(
        msgspec.structs.replace(intent, guardrails=coordinator.guardrails)
    )
    await record_work(
        transaction,
        WorkEvent.GUARDRAILS_UPDATED,
        tenant=principal.tenant,
        by=principal,
        at=now,
        intent_id=intent.id,
        data={"coordinator_id": coordinator.id},
    )


async def _known(
    transaction: Transaction, principal: Principal, coordinator_id: str
) -> Coordinator:
    coordinator = await transaction.coordinators.get(principal.tenant, coordinator_id)
    if coordinator is None:
        raise ResourceNotFoundError("there is no such coordinator")
    return coordinator


async def _own(
    transaction: Transaction, principal: Principal, coordinator_id: str, now: str
) -> Coordinator:
    await check_writer(transaction, principal, now)
    coordinator = await _known(transaction, principal, coordinator_id)
    if coordinator.agent_id != principal.id:
        raise MemoryAccessError("only the coordinator itself can do this")
    return coordinator


def _until(now: str, interval: int, ends_at: str | None) -> str:
    until = end_of(now, interval * MISSED_HEARTBEATS)
    return until if ends_at is None else min(until, ends_at)
