"""Intents, their state and their append-only log (RFC-0001)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from memorywall.coordination.access import anywhere, check_writer, enter_intent
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    MemoryAccessError,
    ResourceConflictError,
    ValidationError,
)
from memorywall.records.event import Event, WorkEvent
from memorywall.records.intent import Intent, IntentStatus
from memorywall.records.lease import LeaseKind
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door, authorize
from memorywall.wall.limits import check_name, encode_value
from memorywall.wall.log import record_work
from memorywall.wall.streams import PAGE, follow

LONGEST_DESCRIPTION = 65_536
MOST_DEPENDENCIES = 256
_OWN_WORDS = re.compile(r"(memory|task|claim|coordinator)\.|(intent|lease|access)_")
"""What the words of the server's own events begin with, whether it uses them yet or not."""
_EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
_OWN_TYPES = frozenset(kind.value for kind in WorkEvent)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewIntent:
    """An intent to be made."""

    title: str
    description: str = ""
    state: dict[str, Any]
    constraints: dict[str, Any]
    parent_intent_id: str | None = None
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """One step of a change of state: a name at its top, set or taken away."""

    op: Literal["set", "remove"]
    path: str
    value: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentPage:
    """One page of intents and how many there are on all pages."""

    intents: list[Intent]
    total: int


async def create(door: Door, principal: Principal, wanted: NewIntent) -> Script[Intent]:
    """A script that makes an intent, administered by its maker.

    Raises ValidationError, ValueTooLargeError, MemoryAccessError; when run ResourceNotFoundError
    for a parent or dependency that is not there to read.
    """
    check_name("title", wanted.title, longest=512)
    if len(wanted.description) > LONGEST_DESCRIPTION:
        raise ValidationError(f"`description` may have at most {LONGEST_DESCRIPTION} characters")
    if len(wanted.depends_on) > MOST_DEPENDENCIES:
        raise ValidationError(f"`depends_on` may have at most {MOST_DEPENDENCIES} intents")
    encode_value(wanted.state)
    encode_value(wanted.constraints)
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        await check_writer(transaction, principal, now)
        if wanted.parent_intent_id is not None:
            await enter_intent(transaction, principal, Verb.CREATE, wanted.parent_intent_id, now)
        for other in wanted.depends_on:
            await enter_intent(transaction, principal, Verb.READ, other, now)
        intent = Intent(
            tenant=principal.tenant,
            id=door.ids.next("int"),
            title=wanted.title,
            description=wanted.description,
            state=wanted.state,
            constraints=wanted.constraints,
            parent_intent_id=wanted.parent_intent_id,
            depends_on=tuple(dict.fromkeys(wanted.depends_on)),
            created_by=principal.id,
            created_at=now,
            updated_at=now,
        )
        await transaction.intents.insert(intent)
        await _record(
            transaction, WorkEvent.INTENT_CREATED, intent, principal, now, {"title": intent.title}
        )
        return intent

    return script


async def get(door: Door, principal: Principal, intent_id: str) -> Intent:
    """An intent. Raises ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        intent, _ = await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return intent

    return await door.store.read(principal.tenant, script)


async def list_intents(
    door: Door, principal: Principal, status: IntentStatus | None, limit: int, offset: int
) -> IntentPage:
    """The intents the caller may read, newest first."""
    now = door.now()
    authorize(principal, Verb.READ, anywhere(principal))

    async def script(transaction: Transaction) -> IntentPage:
        ids = await part_in(transaction, principal, now)
        intents, total = await transaction.intents.list(
            principal.tenant, principal.id, ids, status, limit, offset
        )
        return IntentPage(intents=intents, total=total)

    return await door.store.read(principal.tenant, script)


async def part_in(transaction: Transaction, principal: Principal, now: str) -> set[str]:
    """The intents a principal has a part in for another reason than having made them."""
    tenant, agent = principal.tenant, principal.id
    grants = await transaction.intents.grants_to(tenant, agent, now)
    held = await transaction.leases.held_by(tenant, LeaseKind.COORDINATOR, agent, now)
    return {
        *(one.intent_id for one in grants),
        *(one.place for one in held),
        *await transaction.tasks.intents_of(tenant, agent),
    }


async def patch_state(
    door: Door, principal: Principal, intent_id: str, version: int, patches: Sequence[Patch]
) -> Script[Intent]:
    """A script that changes members of an intent's state, all or none, at `version`.

    Raises when run: ResourceNotFoundError, MemoryAccessError, ResourceConflictError,
    ValueTooLargeError.
    """
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        intent = await at_version(transaction, principal, intent_id, version, now)
        state = dict(intent.state)
        for patch in patches:
            if patch.op == "set":
                state[patch.path] = patch.value
            else:
                state.pop(patch.path, None)
        encode_value(state)
        changed = await _save(transaction, intent, now, state=state)
        names = sorted({patch.path for patch in patches})
        await _record(
            transaction, WorkEvent.STATE_PATCHED, changed, principal, now, {"paths": names}
        )
        return changed

    return script


async def set_status(
    door: Door,
    principal: Principal,
    intent_id: str,
    version: int,
    status: IntentStatus,
    reason: str | None,
) -> Script[Intent]:
    """A script that sets an intent's status at `version`. Raises like `patch_state`."""
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        intent = await at_version(transaction, principal, intent_id, version, now)
        changed = await _save(transaction, intent, now, status=status)
        data: dict[str, Any] = {"from": intent.status, "to": status}
        if reason is not None:
            data["reason"] = reason
        await _record(transaction, WorkEvent.STATUS_CHANGED, changed, principal, now, data)
        return changed

    return script


async def log_event(
    door: Door,
    principal: Principal,
    intent_id: str,
    kind: str,
    payload: dict[str, Any],
    actor: str | None,
) -> Script[Event]:
    """A script that appends what a client has to tell to an intent's log.

    actor: may be left out; when given it must be the caller
    Raises ValidationError for a type that only the server uses, MemoryAccessError.
    """
    if actor is not None and actor != principal.id:
        raise MemoryAccessError("`actor` must be the agent this request speaks for")
    if len(kind) > 64 or not _EVENT_TYPE.fullmatch(kind):
        raise ValidationError("`event_type` must be words of a-z, 0-9 and _, joined by dots")
    if kind in _OWN_TYPES or _OWN_WORDS.match(kind):
        raise ValidationError("`event_type` is one that only the server writes")
    encode_value(payload)
    now = door.now()

    async def script(transaction: Transaction) -> Event:
        await enter_intent(transaction, principal, Verb.CREATE, intent_id, now)
        return await record_work(
            transaction,
            kind,
            tenant=principal.tenant,
            by=principal,
            at=now,
            intent_id=intent_id,
            data=payload,
        )

    return script


async def list_events(
    door: Door,
    principal: Principal,
    intent_id: str,
    after: int,
    limit: int,
    *,
    kind: str | None = None,
    since: str | None = None,
) -> list[Event]:
    """Events of an intent's log, for who may read the intent."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Event]:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await transaction.events.list_of_intent(
            principal.tenant, intent_id, after, limit, kind=kind, since=since
        )

    return await door.store.read(principal.tenant, script)


async def last_event(door: Door, principal: Principal, intent_id: str) -> int:
    """After which place of the log lies what happens from now on, for who may read the intent."""
    now = door.now()

    async def script(transaction: Transaction) -> int:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        latest = await transaction.events.latest(principal.tenant)
        return 0 if latest is None else latest.seq

    return await door.store.read(principal.tenant, script)


def follow_events(
    door: Door, principal: Principal, intent_id: str, after: int
) -> AsyncGenerator[list[Event], None]:
    """The same without end, each event once and in order; an empty list is a sign of life. Whether
    the caller may still read the intent is looked at every time."""
    return follow(
        door,
        principal.tenant,
        lambda seen: list_events(door, principal, intent_id, seen, PAGE),
        after,
    )


async def at_version(
    transaction: Transaction, principal: Principal, intent_id: str, version: int, now: str
) -> Intent:
    """An intent the principal may change. Raises ResourceConflictError at another version."""
    intent, _ = await enter_intent(transaction, principal, Verb.UPDATE, intent_id, now)
    if intent.version != version:
        raise ResourceConflictError(
            "the intent has another version now; read it and send the current one",
            current_version=intent.version,
        )
    return intent


async def _save(transaction: Transaction, intent: Intent, now: str, **fields: Any) -> Intent:
    changed = msgspec.structs.replace(intent, version=intent.version + 1, updated_at=now, **fields)
    await transaction.intents.replace(changed)
    return changed


async def _record(
    transaction: Transaction,
    kind: WorkEvent,
    intent: Intent,
    by: Principal,
    at: str,
    data: dict[str, Any],
) -> None:
    await record_work(
        transaction, kind, tenant=intent.tenant, by=by, at=at, intent_id=intent.id, data=data
    )
