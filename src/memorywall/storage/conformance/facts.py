"""Facts that scripts read again and again: a backend may remember them, but never too long."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import pytest

from memorywall.records.idempotency import DataKey, KeptReply
from memorywall.records.intent import DefaultPolicy, IntentStatus
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.task import TaskStatus
from memorywall.records.usage import AgentLimits
from memorywall.storage.conformance.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    at,
    make_event,
)
from memorywall.storage.conformance.work import (
    INTENT,
    make_attachment,
    make_coordinator,
    make_grant,
    make_intent,
    make_lease,
    make_task,
)
from memorywall.storage.port import Script, Store, Transaction

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
_REPLY = KeptReply(
    tenant=TENANT,
    principal=AGENT,
    key="key",
    fingerprint=b"f",
    status=201,
    reply=b"r",
    sealing_key="dek_1",
    entry_ids=(),
    created_at=NOW,
)

_Look = Script[list[object]]
_Change = Callable[[Transaction], Awaitable[object]]


@dataclass(frozen=True)
class _Fact:
    """What is looked at, and a change after which each answer is another."""

    look: _Look
    change: _Change
    before: tuple[_Change, ...] = ()
    """What is committed before."""


async def _limits(to: Transaction) -> list[object]:
    return [await to.identities.limits(TENANT, AGENT)]


async def _namespaces(to: Transaction) -> list[object]:
    return [
        await to.namespaces.get(TENANT, "policies"),
        await to.namespaces.list_for(TENANT, AGENT),
    ]


async def _replies(to: Transaction) -> list[object]:
    return [await to.replies.get(TENANT, AGENT, "key")]


async def _data_keys(to: Transaction) -> list[object]:
    return [await to.data_keys.get(TENANT, "dek_9"), await to.data_keys.current(TENANT)]


async def _leases(to: Transaction) -> list[object]:
    return [
        await to.leases.current(TENANT, _CLAIM, _PLACE, "fact"),
        await to.leases.get(TENANT, _LEASE.id),
        await to.leases.list(TENANT, _CLAIM, _PLACE, at(5)),
        await to.leases.held_by(TENANT, _CLAIM, AGENT, at(5)),
        await to.leases.lapsed(TENANT, at(99), 9),
    ]


async def _leases_held(to: Transaction) -> list[object]:
    known = await to.leases.get(TENANT, _LEASE.id)
    return [
        await to.leases.held(TENANT, 0 if known is None else known.token, AGENT, NOW),
        await to.leases.count_held_by(TENANT, _CLAIM, AGENT, NOW),
    ]


async def _intents(to: Transaction) -> list[object]:
    return [
        await to.intents.get(TENANT, _INTENT.id),
        await to.intents.list(TENANT, AGENT, (), None, 9, 0),
        await to.intents.list(TENANT, "nobody", (_INTENT.id,), None, 9, 0),
        await to.intents.children(TENANT, "int_0"),
        await to.intents.dependents(TENANT, "int_0"),
    ]


async def _grants(to: Transaction) -> list[object]:
    return [
        await to.intents.grants(TENANT, INTENT),
        await to.intents.grants_to(TENANT, "grace", NOW),
    ]


async def _tasks(to: Transaction) -> list[object]:
    return [
        await to.tasks.get(TENANT, _TASK.id),
        await to.tasks.list(TENANT, INTENT, None, 9, 0),
        await to.tasks.list(TENANT, INTENT, TaskStatus.READY, 9, 0),
        await to.tasks.assigned(TENANT, AGENT, None, 9, 0),
        await to.tasks.open_of(TENANT, AGENT),
    ]


async def _work_of_agent(to: Transaction) -> list[object]:
    return [
        *await _tasks(to),
        await to.tasks.intents_of(TENANT, AGENT),
        await to.tasks.works_in(TENANT, AGENT, INTENT),
    ]


async def _count(to: Transaction) -> list[object]:
    return [await to.tasks.count(TENANT, INTENT)]


async def _coordinators(to: Transaction) -> list[object]:
    return [
        await to.coordinators.get(TENANT, _COORDINATOR.id),
        await to.coordinators.list(TENANT, INTENT),
    ]


async def _attachments(to: Transaction) -> list[object]:
    return [
        await to.attachments.get(TENANT, _ATTACHMENT.id),
        await to.attachments.list(TENANT, INTENT),
    ]


async def _content(to: Transaction) -> list[object]:
    return [list(await to.attachments.pieces(TENANT, _ATTACHMENT.id))]


async def _log(to: Transaction) -> list[object]:
    return [
        await to.events.latest(TENANT),
        await to.events.list(TENANT, AGENT, 0, 9),
        await to.events.list_of_intent(TENANT, INTENT, 0, 9),
    ]


async def _known_lease(to: Transaction) -> Lease:
    known = await to.leases.get(TENANT, _LEASE.id)
    assert known is not None
    return known


async def _extend(to: Transaction) -> None:
    token = (await _known_lease(to)).token
    assert await to.leases.extend(TENANT, token, AGENT, at(20), at(1)) is not None


async def _end(to: Transaction) -> None:
    assert await to.leases.end(TENANT, (await _known_lease(to)).token)


def _take(to: Transaction) -> Awaitable[object]:
    return to.leases.take(_LEASE, NOW)


def _make_data_key(number: int) -> _Change:
    name = f"dek_{number}"
    key = DataKey(tenant=TENANT, id=name, wrapped=b"w", wrapped_by="kek", created_at=NOW)
    return lambda to: to.data_keys.add(key)


def _set_capacity(capacity: int | None) -> _Change:
    limits = AgentLimits(episodic_capacity=capacity)
    return lambda to: to.identities.set_limits(TENANT, AGENT, limits)


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
_FACTS = {
    "limits": _Fact(_limits, _set_capacity(5)),
    "other limits": _Fact(_limits, _set_capacity(None), (_set_capacity(5),)),
    "namespace": _Fact(_namespaces, lambda to: to.namespaces.save(_NAMESPACE)),
    "other grants": _Fact(
        _namespaces,
        lambda to: to.namespaces.save(msgspec.structs.replace(_NAMESPACE, grants=(), version=2)),
        (lambda to: to.namespaces.save(_NAMESPACE),),
    ),
    "reply": _Fact(_replies, lambda to: to.replies.put(_REPLY)),
    "forgotten reply": _Fact(
        _replies, lambda to: to.replies.prune(TENANT, at(9)), (lambda to: to.replies.put(_REPLY),)
    ),
    "data key": _Fact(_data_keys, _make_data_key(9)),
    "newer data key": _Fact(_data_keys, _make_data_key(9), (_make_data_key(8),)),
    "lease": _Fact(_leases, _take),
    "extended lease": _Fact(_leases, _extend, (_take,)),
    "ended lease": _Fact(_leases, _end, (_take,)),
    "held lease": _Fact(_leases_held, _take),
    "held lease that is ended": _Fact(_leases_held, _end, (_take,)),
    "intent": _Fact(_intents, lambda to: to.intents.insert(_INTENT)),
    "other intent": _Fact(
        _intents,
        lambda to: to.intents.replace(_EMPTIED),
        (lambda to: to.intents.insert(_INTENT),),
    ),
    "grant": _Fact(_grants, lambda to: to.intents.add_grant(_GRANT)),
    "grant taken away": _Fact(
        _grants,
        lambda to: to.intents.remove_grant(TENANT, INTENT, _GRANT.id),
        (lambda to: to.intents.add_grant(_GRANT),),
    ),
    "task": _Fact(_work_of_agent, lambda to: to.tasks.insert(_TASK)),
    "other task": _Fact(
        _work_of_agent,
        lambda to: to.tasks.replace(_FREED),
        (lambda to: to.tasks.insert(_TASK),),
    ),
    "how many tasks": _Fact(_count, lambda to: to.tasks.insert(make_task())),
    "coordinator": _Fact(_coordinators, lambda to: to.coordinators.insert(_COORDINATOR)),
    "other coordinator": _Fact(
        _coordinators,
        lambda to: to.coordinators.replace(
            msgspec.structs.replace(_COORDINATOR, resigned_at=NOW, version=2)
        ),
        (lambda to: to.coordinators.insert(_COORDINATOR),),
    ),
    "attachment": _Fact(_attachments, lambda to: to.attachments.insert(_ATTACHMENT)),
    "other attachment": _Fact(
        _attachments,
        lambda to: to.attachments.replace(msgspec.structs.replace(_ATTACHMENT, size=9)),
        (lambda to: to.attachments.insert(_ATTACHMENT),),
    ),
    "no attachment": _Fact(
        _attachments,
        lambda to: to.attachments.remove(TENANT, _ATTACHMENT.id),
        (lambda to: to.attachments.insert(_ATTACHMENT),),
    ),
    "content": _Fact(
        _content,
        lambda to: to.attachments.put_piece(TENANT, _ATTACHMENT.id, 1, b"2"),
        (
            lambda to: to.attachments.insert(_ATTACHMENT),
            lambda to: to.attachments.put_piece(TENANT, _ATTACHMENT.id, 0, b"1"),
        ),
    ),
    "log": _Fact(_log, lambda to: to.events.append(make_event(intent_id=INTENT))),
    "longer log": _Fact(
        _log,
        lambda to: to.events.append(make_event(intent_id=INTENT)),
        (lambda to: to.events.append(make_event(intent_id=INTENT)),),
    ),
}


async def _prepare(store: Store, fact: _Fact) -> None:
    async def script(to: Transaction) -> None:
        for change in fact.before:
            await change(to)

    await store.write(TENANT, script)


class FactsConformance(StoreCase):
    """What a script reads, changes and reads again."""

    @pytest.mark.parametrize("name", _FACTS)
    async def test_a_fact_is_read_anew_after_a_change(self, store: Store, name: str) -> None:
        fact = _FACTS[name]
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

    @pytest.mark.parametrize("name", _FACTS)
    async def test_a_change_that_is_undone_is_seen_by_nobody(self, store: Store, name: str) -> None:
        """Those who look are before, between and after those who are undone."""
        fact = _FACTS[name]
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
            taken = await to.leases.take(_LEASE, NOW)
            assert taken is not None
            await to.intents.add_grant(grant)
            return [await answers(to, taken.token, at(second)) for second in (9.999, 10, 0)]

        async def answers(to: Transaction, token: int, now: str) -> list[object]:
            return [
                await to.leases.held(TENANT, token, AGENT, now),
                *await to.leases.held_by(TENANT, _CLAIM, AGENT, now),
                *await to.leases.list(TENANT, _CLAIM, _PLACE, now),
                *await to.leases.lapsed(TENANT, now, 9),
                await to.leases.count_held_by(TENANT, _CLAIM, AGENT, now),
                *await to.intents.grants_to(TENANT, "grace", now),
            ]

        before, after, again = await store.write(TENANT, script)
        lease = before[0]
        assert before == again == [lease, lease, lease, 1, grant]
        assert after == [None, lease, 0]
