"""The log: dense, in order, one stream at a time."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memorywall.records.event import Event, EventType, WorkEventType
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    at,
    log_event,
    make_event,
    write_each,
)
from memorywall_testing.names import LOOKALIKES


async def _append(store: Store, *events: Event) -> list[Event]:
    return await write_each(store, events, lambda to, event: log_event(to, event))


async def _list(store: Store, stream: str, after: int = 0, limit: int = 1_000) -> list[Event]:
    return await store.read(TENANT, lambda to: to.events.list(stream, after, limit))


async def _list_from(store: Store, seq: int, limit: int) -> list[Event]:
    return await store.read(TENANT, lambda to: to.events.list_from(seq, limit))


async def _of_intent(
    store: Store, intent_id: str = "int_1", after: int = 0, limit: int = 1_000, **conditions: Any
) -> list[Event]:
    return await store.read(
        TENANT, lambda to: to.events.list_of_intent(intent_id, after, limit, **conditions)
    )


def _of_work(kind: str = WorkEventType.TASK_CREATED, **fields: Any) -> Event:
    """An event of an intent that is about no entry."""
    return Event(
        **{
            "tenant": TENANT,
            "type": kind,
            "stream": "",
            "agent_id": AGENT,
            "actor": AGENT,
            "intent_id": "int_1",
            "timestamp": NOW,
            **fields,
        }
    )


class EventsConformance(StoreCase):
    """`port.Events`."""

    async def test_an_empty_log(self, store: Store) -> None:
        assert await _list(store, "ada") == []
        assert await store.read(TENANT, lambda to: to.events.latest()) is None

    @pytest.mark.parametrize("kind", list(EventType))
    async def test_every_field_of_an_event_comes_back(self, store: Store, kind: EventType) -> None:
        event = make_event(
            kind,
            actor="system",
            agent_id="grace",
            tier=Tier.EPISODIC,
            version=8,
            previous_version=7,
            tags=("z", "a", "\U0001f44d"),
            task_id="task",
            intent_id="intent",
            subjects=("digest:1", "digest:2"),
        )
        event = msgspec.structs.replace(event, kind="correction")
        (appended,) = await _append(store, event)
        assert appended == msgspec.structs.replace(event, seq=1)
        assert await _list(store, "ada") == [appended]
        assert await store.read(TENANT, lambda to: to.events.latest()) == appended

    @pytest.mark.parametrize("kind", [*WorkEventType, "note", "", "Task.Created", "\U0001f44d"])
    async def test_every_field_of_an_event_of_work_comes_back(
        self, store: Store, kind: str
    ) -> None:
        data = '{"note": "\u2764\ufe0f", "n": [1, null]}'.encode()
        events = [_of_work(kind), _of_work(kind, task_id="task_1", data=data, stream=AGENT)]
        appended = await _append(store, *events)
        assert appended == [
            msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, start=1)
        ]
        listed = await _of_intent(store)
        assert listed == appended
        # Whoever asks `event.type is WorkEventType.TASK_FAILED` gets the member, not a word like
        # it.
        assert [type(event.type) for event in listed] == [type(kind)] * 2
        assert await _list(store, AGENT) == appended[1:]
        assert await store.read(TENANT, lambda to: to.events.latest()) == appended[1]

    async def test_an_intents_log_is_listed_in_order_after_a_place(self, store: Store) -> None:
        intents = ["int_1", None, "int_2", "int_1", "", "INT_1", "int_1"]
        events = [
            make_event(intent_id=intent, stream=stream)
            for intent in intents
            for stream in ("", "x")
        ]
        appended = await _append(store, *events, make_event(tenant="globex", intent_id="int_1"))
        expected = [event for event in appended[:-1] if event.intent_id == "int_1"]
        assert len(expected) == 6
        for after in range(len(events) + 1):
            rest = [event for event in expected if event.seq > after]
            assert await _of_intent(store, after=after) == rest
            assert await _of_intent(store, after=after, limit=2) == rest[:2]
        assert await _of_intent(store, "nothing") == []

    async def test_an_intents_log_can_be_asked_for_a_type_and_from_an_instant_on(
        self, store: Store
    ) -> None:
        kinds = [WorkEventType.TASK_CREATED, "note", EventType.CREATED, "Note"]
        appended = await _append(
            store,
            *(_of_work(kinds[number % 4], timestamp=at(number // 2)) for number in range(16)),
        )
        for kind in (None, *kinds, "other"):
            for since in (None, at(-1), at(3), at(3.001), at(7), at(8)):
                expected = [
                    event
                    for event in appended
                    if kind in (None, event.type) and (since is None or event.timestamp >= since)
                ]
                assert await _of_intent(store, kind=kind, since=since) == expected
                rest = [event for event in expected if event.seq > 5]
                found = await _of_intent(store, after=5, limit=2, kind=kind, since=since)
                assert found == rest[:2]

    async def test_intents_logs_are_told_apart_by_code_point(self, store: Store) -> None:
        appended = await _append(store, *(_of_work(intent_id=name) for name in LOOKALIKES))
        for name, event in zip(LOOKALIKES, appended, strict=True):
            assert await _of_intent(store, name) == [event]

    async def test_seq_is_dense_from_one_in_each_tenant(self, store: Store) -> None:
        for round_number in range(5):
            appended = await _append(
                store,
                make_event(),
                make_event(tenant="globex"),
                make_event(stream="grace"),
                make_event(stream=""),
            )
            first = 3 * round_number + 1
            assert [event.seq for event in appended] == [
                first, round_number + 1, first + 1, first + 2,
            ]  # fmt: skip

    async def test_rollback_leaves_no_gap(self, store: Store) -> None:
        async def undone(transaction: Transaction) -> None:
            await log_event(transaction, make_event())
            await log_event(transaction, make_event())
            raise UndoError

        await _append(store, make_event())
        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        (appended,) = await _append(store, make_event())
        assert appended.seq == 2
        assert [event.seq for event in await _list(store, "ada")] == [1, 2]

    async def test_a_stream_is_listed_in_order_after_a_place(self, store: Store) -> None:
        streams = ["ada", "grace", "ada", "", "Ada", "ada", "ada"]
        appended = await _append(store, *(make_event(stream=name) for name in streams))
        expected = [event for event in appended if event.stream == "ada"]
        assert await _list(store, "ada") == expected
        for after in range(9):
            rest = [event for event in expected if event.seq > after]
            assert await _list(store, "ada", after) == rest
            assert await _list(store, "ada", after, 2) == rest[:2]
        assert await _list(store, "nobody") == []

    async def test_streams_are_told_apart_by_code_point(self, store: Store) -> None:
        appended = await _append(store, *(make_event(stream=name) for name in LOOKALIKES))
        for event in appended:
            assert await _list(store, event.stream) == [event]

    async def test_the_whole_log_is_listed_in_order_from_a_place(self, store: Store) -> None:
        events = [
            make_event(stream="ada", subjects=()),
            _of_work(),
            make_event(stream="", intent_id="int_1"),
            make_event(stream="grace"),
        ]
        appended = await _append(store, *events, make_event(tenant="globex"))
        assert [event.subjects for event in appended[:2]] == [(), None]
        for place in range(7):
            rest = [event for event in appended[:4] if event.seq >= place]
            for limit in (1, 2, 9):
                listed = await _list_from(store, place, limit)
                assert listed == rest[:limit]

    async def test_the_latest_is_the_end_of_the_whole_log(self, store: Store) -> None:
        appended = await _append(
            store, make_event(), make_event(stream="grace"), make_event(tenant="globex")
        )
        assert await store.read(TENANT, lambda to: to.events.latest()) == appended[1]
        assert await store.read("globex", lambda to: to.events.latest()) == appended[2]
