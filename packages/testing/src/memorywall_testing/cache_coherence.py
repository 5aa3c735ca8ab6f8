"""Facts that scripts read again and again: a backend may remember them, but never too long."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import pytest

from memorywall.records.idempotency import DataKey
from memorywall.records.intent import DefaultPolicy, IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.task import TaskStatus
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import Store, Transaction, TransactionFunction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    at,
    log_event,
    make_event,
    make_reply,
)
from memorywall_testing.work import (
    INTENT,
    make_attachment,
    make_coordinator,
    make_grant,
    make_intent,
    make_lease,
    make_task,
)

_CLAIM, _PLACE = LeaseKind.CLAIM, "shared/global"
_LEASE = make_lease(name="fact")
_INTENT = make_intent(parent_intent_id="int_0", depends_on=("int_0",))
_GRANT = make_grant()
_TASK = make_task(assigned_agent=AGENT)
_COORDINATOR = make_coordinator()
_ATTACHMENT = make_attachment()
_NAMESPACE = Namespace(
    tenant=TENANT,
    name="policies",
    default=Access.READ,
    grants=(Grant(agent=AGENT, access=Access.READ),),
    created_at=NOW,
    updated_at=NOW,
)
_REPLY = make_reply()

_Look = TransactionFunction[list[object]]
_Change = Callable[[Transaction], Awaitable[object]]


@dataclass(frozen=True)
class _CachedRead:
    """Reads, and a change after which each read has another result."""

    look: _Look
    change: _Change
    before: tuple[_Change, ...] = ()
    """The content that is committed before."""


async def _limits(to: Transaction) -> list[object]:
    return [await to.identities.limits(AGENT)]


async def _namespaces(to: Transaction) -> list[object]:
    return [
        await to.namespaces.get("policies"),
        await to.namespaces.list_for(AGENT),
    ]


async def _replies(to: Transaction) -> list[object]:
    return [await to.replies.get(AGENT, "key")]


async def _data_keys(to: Transaction) -> list[object]:
    return [await to.data_keys.get("dek_9"), await to.data_keys.current()]


async def _leases(to: Transaction) -> list[object]:
    return [
        await to.leases.current(_CLAIM, _PLACE, "fact"),
        await to.leases.get(_LEASE.id),
        await to.leases.list(_CLAIM, _PLACE, at(5)),
        await to.leases.held_by(_CLAIM, AGENT, at(5)),
        await to.leases.expired(at(99), 9),
    ]


async def _leases_held(to: Transaction) -> list[object]:
    known = await to.leases.get(_LEASE.id)
    return [
        await to.leases.find_held(0 if known is None else known.token, AGENT, NOW),
        await to.leases.count_held_by(_CLAIM, AGENT, NOW),
    ]


async def _intents(to: Transaction) -> list[object]:
    return [
        await to.intents.get(_INTENT.id),
        await to.intents.list(AGENT, (), None, 9, 0),
        await to.intents.list("nobody", (_INTENT.id,), None, 9, 0),
        await to.intents.children("int_0"),
        await to.intents.dependents("int_0"),
    ]


async def _grants(to: Transaction) -> list[object]:
    return [
        await to.intents.grants(INTENT),
        await to.intents.grants_to("grace", NOW),
    ]


async def _tasks(to: Transaction) -> list[object]:
    return [
        await to.tasks.get(_TASK.id),
        await to.tasks.list(INTENT, None, 9, 0),
        await to.tasks.list(INTENT, TaskStatus.READY, 9, 0),
        await to.tasks.assigned(AGENT, None, 9, 0),
        await to.tasks.open_of(AGENT),
    ]


async def _work_of_agent(to: Transaction) -> list[object]:
    return [
        *await _tasks(to),
        await to.tasks.intents_of(AGENT),
        await to.tasks.works_in(AGENT, INTENT),
    ]


async def _count(to: Transaction) -> list[object]:
    return [await to.tasks.count(INTENT)]


async def _coordinators(to: Transaction) -> list[object]:
    return [
        await to.coordinators.get(_COORDINATOR.id),
        await to.coordinators.list(INTENT),
    ]


async def _attachments(to: Transaction) -> list[object]:
    return [
        await to.attachments.get(_ATTACHMENT.id),
        await to.attachments.list(INTENT),
    ]


async def _content(to: Transaction) -> list[object]:
    return [list(await to.attachments.chunks(_ATTACHMENT.id))]


async def _log(to: Transaction) -> list[object]:
    return [
        await to.events.latest(),
        await to.events.list(AGENT, 0, 9),
        await to.events.list_of_intent(INTENT, 0, 9),
    ]


async def _known_lease(to: Transaction) -> Lease:
    known = await to.leases.get(_LEASE.id)
    assert known is not None
    return known


async def _extend(to: Transaction) -> None:
    token = (await _known_lease(to)).token
    assert await to.leases.extend(token, AGENT, at(20), at(1)) is not None


async def _end(to: Transaction) -> None:
    assert await to.leases.end((await _known_lease(to)).token)


def _acquire(to: Transaction) -> Awaitable[object]:
    return to.leases.acquire(_LEASE, NOW)


def _make_data_key(number: int) -> _Change:
    name = f"dek_{number}"
    key = DataKey(tenant=TENANT, id=name, wrapped=b"w", wrapped_by="kek", created_at=NOW)
    return lambda to: to.data_keys.add(key)


def _set_capacity(capacity: int | None) -> _Change:
    limits = AgentLimits(episodic_capacity=capacity)
    return lambda to: to.identities.set_limits(AGENT, limits)


_EMPTIED = msgspec.structs.replace(
    _INTENT,
    status=IntentStatus.ABANDONED,
    default_policy=DefaultPolicy.OPEN,
    parent_intent_id=None,
    depends_on=(),
    version=2,
)
_FREED = msgspec.structs.replace(
    _TASK, status=TaskStatus.RUNNING, assigned_agent="grace", version=2
)
_CACHED_READS = {
    "limits": _CachedRead(_limits, _set_capacity(5)),
    "other limits": _CachedRead(_limits, _set_capacity(None), (_set_capacity(5),)),
    "namespace": _CachedRead(_namespaces, lambda to: to.namespaces.save(_NAMESPACE)),
    "other grants": _CachedRead(
        _namespaces,
        lambda to: to.namespaces.save(msgspec.structs.replace(_NAMESPACE, grants=(), version=2)),
        (lambda to: to.namespaces.save(_NAMESPACE),),
    ),
    "reply": _CachedRead(_replies, lambda to: to.replies.put(_REPLY)),
    "forgotten reply": _CachedRead(
        _replies, lambda to: to.replies.prune(at(9)), (lambda to: to.replies.put(_REPLY),)
    ),
    "data key": _CachedRead(_data_keys, _make_data_key(9)),
    "newer data key": _CachedRead(_data_keys, _make_data_key(9), (_make_data_key(8),)),
    "lease": _CachedRead(_leases, _acquire),
    "extended lease": _CachedRead(_leases, _extend, (_acquire,)),
    "ended lease": _CachedRead(_leases, _end, (_acquire,)),
    "held lease": _CachedRead(_leases_held, _acquire),
    "held lease that is ended": _CachedRead(_leases_held, _end, (_acquire,)),
    "intent": _CachedRead(_intents, lambda to: to.intents.insert(_INTENT)),
    "other intent": _CachedRead(
        _intents,
        lambda to: to.intents.replace(_EMPTIED),
        (lambda to: to.intents.insert(_INTENT),),
    ),
    "grant": _CachedRead(_grants, lambda to: to.intents.add_grant(_GRANT)),
    "grant taken away": _CachedRead(
        _grants,
        lambda to: to.intents.remove_grant(INTENT, _GRANT.id),
        (lambda to: to.intents.add_grant(_GRANT),),
    ),
    "task": _CachedRead(_work_of_agent, lambda to: to.tasks.insert(_TASK)),
    "other task": _CachedRead(
        _work_of_agent,
        lambda to: to.tasks.replace(_FREED),
        (lambda to: to.tasks.insert(_TASK),),
    ),
    "how many tasks": _CachedRead(_count, lambda to: to.tasks.insert(make_task())),
    "coordinator": _CachedRead(_coordinators, lambda to: to.coordinators.insert(_COORDINATOR)),
    "other coordinator": _CachedRead(
        _coordinators,
        lambda to: to.coordinators.replace(
            msgspec.structs.replace(_COORDINATOR, resigned_at=NOW, version=2)
        ),
        (lambda to: to.coordinators.insert(_COORDINATOR),),
    ),
    "attachment": _CachedRead(_attachments, lambda to: to.attachments.insert(_ATTACHMENT)),
    "other attachment": _CachedRead(
        _attachments,
        lambda to: to.attachments.replace(msgspec.structs.replace(_ATTACHMENT, size=9)),
        (lambda to: to.attachments.insert(_ATTACHMENT),),
    ),
    "no attachment": _CachedRead(
        _attachments,
        lambda to: to.attachments.remove(_ATTACHMENT.id),
        (lambda to: to.attachments.insert(_ATTACHMENT),),
    ),
    "content": _CachedRead(
        _content,
        lambda to: to.attachments.put_chunk(_ATTACHMENT.id, 1, b"2"),
        (
            lambda to: to.attachments.insert(_ATTACHMENT),
            lambda to: to.attachments.put_chunk(_ATTACHMENT.id, 0, b"1"),
        ),
    ),
    "log": _CachedRead(_log, lambda to: log_event(to, make_event(intent_id=INTENT))),
    "longer log": _CachedRead(
        _log,
        lambda to: log_event(to, make_event(intent_id=INTENT)),
        (lambda to: log_event(to, make_event(intent_id=INTENT)),),
    ),
}


async def _prepare(store: Store, fact: _CachedRead) -> None:
    async def script(to: Transaction) -> None:
        for change in fact.before:
            await change(to)

    await store.write(TENANT, script)


class CacheCoherenceConformance(StoreCase):
    """The reads of a transaction before and after a change."""

    @pytest.mark.parametrize("name", _CACHED_READS)
    async def test_cached_fact_is_read_again_after_a_change(self, store: Store, name: str) -> None:
        fact = _CACHED_READS[name]
        await _prepare(store, fact)

        async def script(to: Transaction) -> tuple[list[object], list[object]]:
            before = await fact.look(to)
            assert await fact.look(to) == before
            await fact.change(to)
            return before, await fact.look(to)

        before, after = await store.write(TENANT, script)
        assert [place for place, one in enumerate(before) if one == after[place]] == []
        assert await store.read(TENANT, fact.look) == after
        assert await store.write(TENANT, fact.look) == after

    @pytest.mark.parametrize("name", _CACHED_READS)
    async def test_rolled_back_change_is_visible_to_no_caller(
        self, store: Store, name: str
    ) -> None:
        """Readers run before, between and after functions that are rolled back."""
        fact = _CACHED_READS[name]
        await _prepare(store, fact)
        before = await store.read(TENANT, fact.look)

        async def undone(to: Transaction) -> None:
            assert await fact.look(to) == before
            await fact.change(to)
            assert await fact.look(to) != before
            raise UndoError

        async def undone_unseen(to: Transaction) -> None:
            await fact.change(to)
            raise UndoError

        async def look_on(to: Transaction) -> None:
            assert await fact.look(to) == before

        scripts = [look_on, undone, look_on, undone_unseen, undone, look_on] * 3
        outcomes = await asyncio.gather(
            *(store.write(TENANT, script) for script in scripts), return_exceptions=True
        )
        for script, outcome in zip(scripts, outcomes, strict=True):
            if script is look_on:
                assert outcome is None
            else:
                assert isinstance(outcome, UndoError)
        assert await store.read(TENANT, fact.look) == before

    async def test_one_script_may_ask_at_several_instants(self, store: Store) -> None:
        grant = make_grant(expires_at=at(10))

        async def script(to: Transaction) -> list[list[object]]:
            taken = await to.leases.acquire(_LEASE, NOW)
            assert taken is not None
            await to.intents.add_grant(grant)
            return [await answers(to, taken.token, at(second)) for second in (9.999, 10, 0)]

        async def answers(to: Transaction, token: int, now: str) -> list[object]:
            return [
                await to.leases.find_held(token, AGENT, now),
                *await to.leases.held_by(_CLAIM, AGENT, now),
                *await to.leases.list(_CLAIM, _PLACE, now),
                *await to.leases.expired(now, 9),
                await to.leases.count_held_by(_CLAIM, AGENT, now),
                *await to.intents.grants_to("grace", now),
            ]

        before, after, again = await store.write(TENANT, script)
        lease = before[0]
        assert before == again == [lease, lease, lease, 1, grant]
        assert after == [None, lease, 0]
