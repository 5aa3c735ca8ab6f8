"""The log: dense, in order, one stream at a time."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import msgspec
import pytest

from memorywall.records.event import Event, EventType
from memorywall.records.tier import Tier
from memorywall.storage.conformance.base import TENANT, StoreCase, make_event
from memorywall.storage.conformance.names import LOOKALIKES
from memorywall.storage.port import Store, Transaction


class _UndoError(Exception):
    """Raised by a script to be undone."""


async def _append(store: Store, *events: Event) -> list[Event]:
    async def script(transaction: Transaction) -> list[Event]:
        return [await transaction.events.append(event) for event in events]

    return await store.write(script)


async def _list(store: Store, stream: str, after: int = 0, limit: int = 1_000) -> list[Event]:
    return await store.read(lambda to: to.events.list(TENANT, stream, after, limit))


class EventsConformance(StoreCase):
    """`port.Events`."""

    async def test_an_empty_log(self, store: Store) -> None:
        assert await _list(store, "ada") == []
        assert await store.read(lambda to: to.events.latest(TENANT)) is None

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
        )
        (appended,) = await _append(store, event)
        assert appended == msgspec.structs.replace(event, seq=1)
        assert await _list(store, "ada") == [appended]
        assert await store.read(lambda to: to.events.latest(TENANT)) == appended

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

    async def test_what_is_undone_leaves_no_gap(self, store: Store) -> None:
        async def undone(transaction: Transaction) -> None:
            await transaction.events.append(make_event())
            await transaction.events.append(make_event())
            raise _UndoError

        await _append(store, make_event())
        with pytest.raises(_UndoError):
            await store.write(undone)
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

    async def test_the_latest_is_the_end_of_the_whole_log(self, store: Store) -> None:
        appended = await _append(
            store, make_event(), make_event(stream="grace"), make_event(tenant="globex")
        )
        assert await store.read(lambda to: to.events.latest(TENANT)) == appended[1]
        assert await store.read(lambda to: to.events.latest("globex")) == appended[2]
