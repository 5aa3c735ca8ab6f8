"""The log as it is written: chained, byte for byte, with contents that can be erased."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import pytest

from memorywall.records.event import Event, EventType, WorkEventType
from memorywall.records.event_chain import (
    NO_HASH,
    LogHead,
    StoredEvent,
    hash_of,
    seal_event,
)
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    DIGEST_KEY,
    NOW,
    TENANT,
    StoreCase,
    Stores,
    UndoError,
    log_event,
    make_entry,
    make_event,
    put,
)

_TASK = "task_01J9ZK3V6Q0000000000000000"


async def _head(store: Store, tenant: str = TENANT) -> LogHead:
    return await store.write(tenant, lambda to: to.events.head())


async def _append(store: Store, *events: Event) -> list[StoredEvent]:
    """Appends events in one transaction; returns them as they were handed over."""

    async def script(transaction: Transaction) -> list[StoredEvent]:
        appended = []
        for event in events:
            head = await transaction.events.head()
            stored = seal_event(event, head, DIGEST_KEY)
            await transaction.events.append(stored)
            appended.append(stored)
        return appended

    return await store.write(TENANT, script)


class EventLogConformance(StoreCase):
    """`event_log.EventLog`, and `Entries.walk`, by which digests of rows are made."""

    async def test_the_head_of_an_empty_log(self, store: Store) -> None:
        assert await _head(store) == LogHead(0, NO_HASH)

    async def test_the_head_follows_what_is_appended(self, store: Store) -> None:
        for number in range(3):
            *_, last = await _append(store, make_event(), make_event(stream=""))
            assert last.envelope.seq == 2 * number + 2
            assert await _head(store) == LogHead(last.envelope.seq, hash_of(last.envelope))
        assert await _head(store, "globex") == LogHead(0, NO_HASH)

    async def test_events_of_one_transaction_and_of_several_are_chained(self, store: Store) -> None:
        stored = await _append(store, make_event(), make_event())
        stored += await _append(store, make_event(task_id="name", intent_id=_TASK))
        previous = NO_HASH
        for seq, one in enumerate(stored, 1):
            assert (one.envelope.seq, one.envelope.previous) == (seq, previous)
            previous = hash_of(one.envelope)

    async def test_the_head_is_that_of_before_when_a_script_is_undone(self, store: Store) -> None:
        await _append(store, make_event())
        before = await _head(store)

        async def undone(transaction: Transaction) -> None:
            await log_event(transaction, make_event())
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert await _head(store) == before

    async def test_the_head_follows_what_another_process_appends(self, stores: Stores) -> None:
        both = await stores.open(), await stores.open(beside=True)
        last = LogHead(0, NO_HASH)
        for turn in (0, 0, 1, 0, 1, 1, 0):
            (stored,) = await _append(both[turn], make_event())
            assert (stored.envelope.seq, stored.envelope.previous) == (last.seq + 1, last.hash)
            last = LogHead(stored.envelope.seq, hash_of(stored.envelope))

    async def test_erasure_removes_the_content_and_keeps_the_envelope(self, store: Store) -> None:
        kept, erased, other = await _append(
            store,
            make_event(intent_id=_TASK),
            make_event(EventType.UPDATED, intent_id=_TASK, task_id="a name", tags=("t",)),
            make_event(stream="grace", agent_id="grace", intent_id="a name"),
        )
        head = await _head(store)
        assert await store.write(TENANT, lambda to: to.events.erase_content([2, 3])) == 2

        async def look(to: Transaction) -> None:
            listed = await to.events.list_of_intent(_TASK, 0, 9)
            assert [event.seq for event in listed] == [1, 2]
            whole, bare = listed
            assert (whole.is_erased, bare.is_erased) == (False, True)
            assert bare == Event(
                tenant=TENANT,
                seq=2,
                type=EventType.UPDATED,
                stream="",
                agent_id="",
                actor="",
                entry_id=whole.entry_id,
                tier=whole.tier,
                version=1,
                intent_id=_TASK,
                timestamp=NOW,
            )
            assert [event.seq for event in await to.events.list(AGENT, 0, 9)] == [1]
            assert await to.events.list("grace", 0, 9) == []
            # A name that a client gave goes with the content that repeats it.
            assert await to.events.list_of_intent("a name", 0, 9) == []
            changes, _ = await to.events.list_of_entries(0, 9)
            assert [change.agent_id for change in changes] == [AGENT, "", ""]

        await store.read(TENANT, look)
        assert await _head(store) == head
        chained = [kept, erased, other, *await _append(store, make_event())]
        assert chained[-1].envelope.previous == hash_of(other.envelope)

    async def test_the_events_of_entries_are_found_in_order(self, store: Store) -> None:
        await _append(
            store,
            make_event(entry_id="mem_1"),
            make_event(entry_id="mem_2"),
            make_event(entry_id="mem_3"),
            make_event(EventType.UPDATED, entry_id="mem_1"),
        )
        for ids, expected in (
            (("mem_1", "mem_3"), [1, 3, 4]),
            (("mem_9",), []),
            ((), []),
        ):
            chosen = await store.read(
                TENANT,
                lambda to, ids=ids: to.events.seqs_of_entries(ids),  # type: ignore[misc]
            )
            assert chosen == expected
        elsewhere = await store.read("other", lambda to: to.events.seqs_of_entries(("mem_1",)))
        assert elsewhere == []

    async def test_events_are_found_by_the_bytes_of_their_content(self, store: Store) -> None:
        await _append(
            store,
            make_event(namespace="user/b\u00f6b/notes"),
            make_event(EventType.UPDATED, subjects=("~1",)),
            make_event(EventType.UPDATED, namespace="user/b", subjects=("~12",)),
            make_event(EventType.DELETED, namespace="user/b\u00f6b/notes", subjects=("~1",)),
        )

        async def found(
            *texts: str, after: int = 0, limit: int = 9, kind: str | None = None, of: str = TENANT
        ) -> list[int]:
            sought = [text.encode() for text in texts]
            return [
                event.seq
                for event in await store.read(
                    of, lambda to: to.events.containing(sought, after, limit, kind)
                )
            ]

        assert await found('"~1"') == [2, 4]
        assert await found('"user/b\u00f6b/') == [1, 4]
        assert await found('"~1"', '"user/b\u00f6b/') == [1, 2, 4]
        assert await found('"~1"', '"user/b\u00f6b/', limit=2) == [1, 2]
        assert await found('"~1"', '"user/b\u00f6b/', after=2) == [4]
        assert await found('"user/b\u00f6b/', kind=EventType.DELETED) == [4]
        assert await found('"~1"', of="other") == await found('"~9"') == await found() == []
        await store.write(TENANT, lambda to: to.events.erase_content([4]))
        assert await found('"~1"') == [2]

    async def test_the_forgotten_are_found_by_their_digest_and_instant(self, store: Store) -> None:
        forgotten = WorkEventType.SUBJECT_FORGOTTEN
        early, late = "2026-11-19T00:00:00.000Z", "2026-11-20T00:00:00.000Z"
        await _append(
            store,
            make_event(forgotten, data=b'{"subject_digest":"~1"}', timestamp=late),
            make_event(forgotten, data=b'{"subject_digest":"~1"}', timestamp=early),
            make_event(forgotten, data=b'{"subject_digest":"~12"}', timestamp=late),
            make_event(EventType.UPDATED, subjects=("~1",), timestamp=late),
        )

        async def found(since: str, *texts: bytes, of: str = TENANT) -> list[int]:
            listed = await store.read(of, lambda to: to.events.list_forgotten(texts, since))
            return [event.seq for event in listed]

        assert await found(early, b'"~1"') == [2, 1]
        assert await found("2026-11-19T00:00:00.001Z", b'"~1"') == [1]
        assert await found("2026-11-20T00:00:00.001Z", b'"~1"') == []
        assert await found(early, b'"~1"', b'"~12"') in ([2, 1, 3], [2, 3, 1])
        assert await found(early, b'"~9"') == await found(early) == []
        assert await found(early, b'"~1"', of="other") == []
        await store.write(TENANT, lambda to: to.events.erase_content([1]))
        assert await found(early, b'"~1"') == [2]

    async def test_repeated_erasure_or_missing_content_changes_nothing(self, store: Store) -> None:
        await _append(store, make_event(), make_event())
        assert await store.write(TENANT, lambda to: to.events.erase_content([1])) == 1
        assert await store.write(TENANT, lambda to: to.events.erase_content([1, 9])) == 0
        assert await store.write(TENANT, lambda to: to.events.erase_content([])) == 0

    async def test_content_can_be_erased_in_the_transaction_that_appends_it(
        self, store: Store
    ) -> None:
        async def script(to: Transaction) -> int:
            await log_event(to, make_event())
            return await to.events.erase_content([1])

        assert await store.write(TENANT, script) == 1
        latest = await store.read(TENANT, lambda to: to.events.latest())
        assert latest is not None
        assert latest.is_erased

    async def test_nothing_is_older_than_the_chain_in_a_new_store(self, store: Store) -> None:
        await _append(store, make_event())
        assert await store.read(TENANT, lambda to: to.events.legacy(9)) == []

    async def test_a_walk_goes_through_all_entries_by_id(self, store: Store) -> None:
        entries = [make_entry(owner=name, expires_at=NOW) for name in ("ada", "grace", "ada")]
        await put(store, *reversed(entries), make_entry(tenant="globex"))
        assert await store.read(TENANT, lambda to: to.entries.walk("", 9)) == entries
        assert await store.read(TENANT, lambda to: to.entries.walk("", 2)) == entries[:2]
        after = entries[0].id
        assert await store.read(TENANT, lambda to: to.entries.walk(after, 9)) == entries[1:]
