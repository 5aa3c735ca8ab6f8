"""A script sees what it has done, however it asks, before anything is committed.

A backend may hold changes back and send many at once; whoever looks must not notice.
"""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, Scope
from memorywall.records.event import Event, EventType
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    append,
    at,
    find,
    first_to_evict,
    get,
    log_event,
    make_entry,
    make_event,
    make_reply,
    newest_first,
    put,
    search,
    usage_of,
    visibility,
)

_SEQUENCES = (
    *("i", "ir", "irr", "ix", "ixi", "ixn", "irx", "irxnr", "ixnx"),
    *("i|r", "i|rr", "i|x", "i|xi", "i|xn", "i|rx", "i|rxnr", "i|xnx", "ix|i", "ir|xn|r"),
)
"""The operations on one name: i inserts, r replaces, x removes, n inserts another entry under the
name that has become free, and | commits and goes on in a transaction of its own."""

_State = tuple[Entry, bool]
"""The entry that was there last, and whether it is there."""
_Ask = Callable[[Transaction, Entry], Awaitable[object]]
_Expect = Callable[[Entry | None], object]


def _find_by(**conditions: Any) -> _Ask:
    """A search; a condition that is None is filled in from the entry."""

    async def ask(to: Transaction, entry: Entry) -> object:
        named = {
            name: getattr(entry, name) if value is None else value
            for name, value in conditions.items()
        }
        within = named.pop("within", visibility(AGENT, namespaces=[entry.namespace]))
        return await to.entries.search(EntryFilter(tenant=entry.tenant, **named), within, NOW)

    return ask


def _page(entry: Entry | None) -> object:
    return ([], 0) if entry is None else ([entry], 1)


def _one(entry: Entry | None) -> object:
    return [] if entry is None else [entry]


def _same(entry: Entry | None) -> object:
    return entry


def _use(entry: Entry | None) -> object:
    return Usage() if entry is None else Usage(entries=1, bytes=entry.size)


def _ask_use(to: Transaction, entry: Entry) -> Awaitable[object]:
    return to.entries.usage(entry.tier, entry.owner, NOW)


_LOOKS: dict[str, tuple[_Ask, _Expect]] = {
    "get": (lambda to, one: to.entries.get(one.id, NOW), _same),
    "find": (
        lambda to, one: to.entries.find(one.tier, one.owner, one.namespace, one.key),
        _same,
    ),
    "get many": (lambda to, one: to.entries.get_many([one.id], NOW), _one),
    "of owner": (lambda to, one: to.entries.of_owner(one.tier, one.owner, 9), _one),
    "search": (_find_by(), _page),
    "search by tags": (_find_by(tags=None), _page),
    "search by any tag": (_find_by(tags_any=("none", "always")), _page),
    "search by task": (_find_by(task_id="task"), _page),
    "search by name": (_find_by(namespace=None, key=None), _page),
    "search by prefix": (_find_by(namespace_prefix="inv"), _page),
    "search within work": (_find_by(within=VisibilityFilter(episodic=(AGENT,))), _page),
    "total": (_find_by(limit=0), lambda one: ([], 0 if one is None else 1)),
    "expired": (lambda to, one: to.entries.expired(at(99), 9), _one),
    "victim": (lambda to, one: first_to_evict(to, one.tier, AGENT), _same),
    "usage": (_ask_use, _use),
    "tenant usage": (
        lambda to, one: to.entries.usage_by_tier(),
        lambda one: {} if one is None else {one.tier: _use(one)},
    ),
    "task usage": (lambda to, one: to.entries.task_usage(one.tier, "task", NOW), _use),
    "of task": (lambda to, one: to.entries.of_task(one.tier, "task"), _one),
    "of task in every tier": (lambda to, one: to.entries.of_task(None, "task"), _one),
    "tasks": (
        lambda to, one: to.entries.tasks(one.tier, AGENT, NOW),
        lambda one: [] if one is None else ["task"],
    ),
    "span": (
        lambda to, one: to.entries.span(one.tier, AGENT, NOW),
        lambda one: (None, None) if one is None else (one.created_at, one.created_at),
    ),
}
_SHARED_LOOKS: dict[str, tuple[_Ask, _Expect]] = {
    **{name: _LOOKS[name] for name in ("get", "find", "search", "search by tags", "usage")},
    "namespace usage": (
        lambda to, one: to.entries.namespace_usage(one.tier, one.namespace, NOW),
        _use,
    ),
}


def _first(tenant: str, **fields: Any) -> Entry:
    return make_entry(
        **{
            "tenant": tenant,
            "tier": Tier.EPISODIC,
            "key": "name",
            "scope": Scope(task_id="task"),
            "tags": ("first", "always"),
            "expires_at": at(10),
            "value": b"12345",
            **fields,
        }
    )


async def _step(to: Transaction, state: _State, step: str) -> _State:
    """Does one step and tells what is there after it."""
    entry, _ = state
    if step == "x":
        await to.entries.remove(entry)
        return entry, False
    if step == "r":
        number = entry.version + 1
        new = msgspec.structs.replace(
            entry,
            version=number,
            tags=(f"tag-{number}", "always"),
            value=b"x" * number,
            size=number,
            expires_at=at(10 + number),
            updated_at=at(number),
        )
        await to.entries.replace(entry, new)
        return new, True
    if step == "n":
        entry = _first(entry.tenant, tier=entry.tier, owner=entry.owner, value=b"next")
    assert await to.entries.insert(entry, NOW)
    return entry, True


async def _play(
    store: Store, entry: Entry, sequence: str, look: tuple[_Ask, _Expect], *, always: bool
) -> None:
    """Goes through a sequence and looks at the end of each transaction, or after each step."""
    ask, expect = look
    state: _State = (entry, False)

    async def compare(to: Transaction, at_state: _State) -> None:
        last, is_there = at_state
        assert await ask(to, last) == expect(last if is_there else None), sequence

    for part in sequence.split("|"):

        async def script(to: Transaction, part: str = part, state: _State = state) -> _State:
            for step in part:
                if always:
                    await compare(to, state)
                state = await _step(to, state, step)
            await compare(to, state)
            return state

        state = await store.write(entry.tenant, script)
    committed = state
    await store.read(entry.tenant, lambda to: compare(to, committed))


class ReadYourWritesConformance(StoreCase):
    """`port.Transaction`, looked at from inside while it is under way."""

    @pytest.mark.parametrize("always", [True, False], ids=["at every step", "at the end"])
    @pytest.mark.parametrize("look", _LOOKS)
    async def test_transaction_reads_its_own_entry_writes(
        self, store: Store, look: str, always: bool
    ) -> None:
        await asyncio.gather(
            *(
                _play(store, _first(f"tenant-{n}"), sequence, _LOOKS[look], always=always)
                for n, sequence in enumerate(_SEQUENCES)
            )
        )

    @pytest.mark.parametrize("always", [True, False], ids=["at every step", "at the end"])
    @pytest.mark.parametrize("look", _SHARED_LOOKS)
    async def test_transaction_reads_its_own_shared_memory_writes(
        self, store: Store, look: str, always: bool
    ) -> None:
        shared = [_first(f"tenant-{n}", tier=Tier.SHARED, owner="") for n in range(len(_SEQUENCES))]
        await asyncio.gather(
            *(
                _play(store, entry, sequence, _SHARED_LOOKS[look], always=always)
                for entry, sequence in zip(shared, _SEQUENCES, strict=True)
            )
        )

    async def test_a_name_is_reserved_at_once(self, store: Store) -> None:
        first, second = make_entry(key="same"), make_entry(key="same")

        async def script(to: Transaction) -> list[bool]:
            return [await to.entries.insert(entry, NOW) for entry in (first, second)]

        assert await store.write(TENANT, script) == [True, False]
        assert await search(store) == [first]
        assert await find(store, second) == first
        assert await usage_of(store) == Usage(entries=1, bytes=first.size)

    async def test_touch_updates_an_entry_inserted_in_the_same_transaction(
        self, store: Store
    ) -> None:
        first, second = (make_entry(tier=Tier.EPISODIC) for _ in range(2))

        async def script(to: Transaction) -> Entry | None:
            await to.entries.insert(first, at(1))
            await to.entries.insert(second, at(2))
            await to.entries.touch({first.id: at(3)})
            return await first_to_evict(to, Tier.EPISODIC, AGENT)

        assert await store.write(TENANT, script) == second

    async def test_a_reply_shows_what_was_just_put_in(self, store: Store) -> None:
        first, second = make_entry(), make_entry()
        kept = make_reply(reply=b"r", entry_ids=(first.id, second.id))

        async def script(to: Transaction) -> list[set[str]]:
            assert await to.replies.get(AGENT, "key") is None
            shown = []
            await to.entries.insert(first, NOW)
            await to.entries.insert(second, NOW)
            await to.replies.put(kept)
            for entry in (None, first, second):
                if entry is not None:
                    await to.entries.remove(entry)
                read = await to.replies.get(AGENT, "key")
                assert read is not None
                assert read.reply == (b"r" if entry is None else None)
                shown.append(set(read.entry_ids))
            return shown

        assert await store.write(TENANT, script) == [{first.id, second.id}, {second.id}, set()]

    async def test_many_entries_of_one_script(self, store: Store) -> None:
        entries = [make_entry(tags=("all", f"tenth-{n % 10}"), value=b"1") for n in range(600)]

        async def script(to: Transaction) -> None:
            for entry in entries:
                assert await to.entries.insert(entry, NOW)
                await log_event(to, make_event(entry_id=entry.id))
            for entry in entries[::2]:
                await to.entries.remove(entry)
            assert await to.entries.usage(Tier.WORKING, AGENT, NOW) == Usage(entries=300, bytes=300)

        await store.write(TENANT, script)
        kept = newest_first(entries[1::2])
        assert await search(store) == await search(store, tags=("all",)) == kept
        assert await search(store, tags=("all", "tenth-4")) == []
        log = await store.read(TENANT, lambda to: to.events.list(AGENT, 0, 1_000))
        assert [event.entry_id for event in log] == [entry.id for entry in entries]

    async def test_duplicate_id_rolls_back_only_its_transaction(self, store: Store) -> None:
        """Nothing is asked after the second insert, so it may show as late as at the commit."""
        first, second = make_entry(), make_entry()
        await put(store, first)

        async def script(to: Transaction) -> None:
            await to.entries.insert(second, NOW)
            await to.entries.insert(make_entry(id=second.id), NOW)

        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await store.write(TENANT, script)
        assert await get(store, second) is None
        assert await search(store) == [first]

    async def test_unread_entry_is_neither_replaced_nor_removed(self, store: Store) -> None:
        entry = make_entry(tags=("tag",))
        await put(store, entry)
        late = msgspec.structs.replace(entry, version=7)
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.entries.replace(late, entry))
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.entries.remove(make_entry()))

        async def twice(to: Transaction) -> None:
            await to.entries.remove(entry)
            await to.entries.remove(entry)

        with pytest.raises(LookupError):
            await store.write(TENANT, twice)
        assert await search(store, tags=("tag",)) == [entry]

    async def test_an_event_is_in_the_log_at_once(self, store: Store) -> None:
        old = [await append(store, make_event(intent_id="int_1")) for _ in range(3)]

        async def script(to: Transaction) -> list[Event]:
            whole = [*old]
            for number in range(8):
                event = make_event(
                    EventType.CREATED if number % 2 else "note",
                    stream=(AGENT, AGENT, "grace")[number % 3],
                    intent_id=("int_1", None)[number % 5 == 4],
                    timestamp=at(number),
                )
                whole.append(await log_event(to, event))
                await _compare_log(to, whole)
            return whole

        whole = await store.write(TENANT, script)
        assert [event.seq for event in whole] == list(range(1, 12))
        await store.read(TENANT, lambda to: _compare_log(to, whole))


async def _compare_log(to: Transaction, whole: list[Event]) -> None:
    """Whatever is asked of the log, the answer is a part of `whole`."""
    assert await to.events.latest() == whole[-1]
    for stream in (AGENT, "grace"):
        mine = [event for event in whole if event.stream == stream]
        assert await to.events.list(stream, 0, 99) == mine
        later = [event for event in mine if event.seq > 2]
        assert await to.events.list(stream, 2, 3) == later[:3]
    of_intent = [event for event in whole if event.intent_id == "int_1"]
    for kind in (None, "note", EventType.CREATED):
        for since in (None, at(2)):
            found = await to.events.list_of_intent("int_1", 1, 6, kind=kind, since=since)
            expected = [
                event
                for event in of_intent
                if event.seq > 1
                and kind in (None, event.type)
                and (since is None or event.timestamp >= since)
            ]
            assert found == expected[:6]
