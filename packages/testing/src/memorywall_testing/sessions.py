"""Entries of sessions by kind and key, their owners, and the counters of sessions."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

from memorywall.records.entry import Entry, Scope
from memorywall.records.session import SessionCounters
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall.storage.sql.record_table import SESSION_COUNTERS
from memorywall_testing.base import AGENT, NOW, TENANT, StoreCase, at, make_entry, put, remove

_OTHER_TENANT = "globex"


def _member(key: str, session: str = "s1", kind: str | None = "turn", **fields: Any) -> Entry:
    made = {"tier": Tier.SESSION, "scope": Scope(session_id=session), "kind": kind, "key": key}
    return make_entry(**{**made, "kind_version": int(kind is not None), **fields})


async def _keys(store: Store, session: str = "s1", limit: int = 9, **options: Any) -> list[str]:
    found = await store.read(
        TENANT, lambda to: to.entries.of_session(session, "turn", AGENT, limit, **options)
    )
    return [one.key for one in found]


async def _owners(store: Store, session: str = "s1") -> list[str]:
    return await store.read(TENANT, lambda to: to.entries.session_owners(session, "turn"))


class SessionsConformance(StoreCase):
    """`EntryRepository.of_session`, `session_owners`, `count_of_session`, and what is removed with
    a session."""

    async def test_entries_of_a_session_come_in_the_order_of_their_keys(self, store: Store) -> None:
        turns = [_member(key) for key in ("03", "01", "10", "02")]
        elsewhere = [
            _member("04", session="s2"),
            _member("04", kind="checkpoint", namespace="checkpoints"),
            _member("04", kind=None, namespace="notes"),
            _member("04", owner="eve", agent_id="eve"),
            _member("04", tenant=_OTHER_TENANT),
        ]
        await put(store, *turns, *elsewhere)
        assert await _keys(store) == ["01", "02", "03", "10"]
        assert await _keys(store, limit=2) == ["01", "02"]
        assert await _keys(store, after="02") == ["03", "10"]
        assert await _keys(store, after="01", before="10") == ["02", "03"]
        assert await _keys(store, newest_first=True, limit=2) == ["10", "03"]
        assert await _keys(store, newest_first=True, before="10", limit=2) == ["03", "02"]
        assert await _keys(store, session="s3") == []

    async def test_the_newest_entries_of_several_kinds_are_read_at_once(self, store: Store) -> None:
        async def newest(**wanted: int) -> dict[str, list[str]]:
            found = await store.read(
                TENANT, lambda to: to.entries.newest_of_session("s1", AGENT, wanted)
            )
            return {kind: [one.key for one in page] for kind, page in found.items()}

        summaries = [_member(key, kind="summary", namespace="sums") for key in ("3", "5", "4")]
        elsewhere = [
            _member("09", session="s2"),
            _member("09", owner="eve", agent_id="eve"),
            _member("09", tenant=_OTHER_TENANT),
        ]
        expired = _member("01", expires_at=at(-1))
        await put(store, *(_member(key) for key in ("02", "03")), *summaries, *elsewhere)
        await put(store, expired, now=at(-9))
        assert await newest(turn=9) == {"turn": ["03", "02", "01"]}
        found = await newest(summary=2, turn=1, checkpoint=3)
        assert found == {"summary": ["5", "4"], "turn": ["03"], "checkpoint": []}

    async def test_expired_entries_of_a_session_are_listed(self, store: Store) -> None:
        await put(store, _member("01", expires_at=at(-1)), now=at(-9))
        assert await _keys(store) == ["01"]

    async def test_owners_of_a_session_are_its_first_and_its_last(self, store: Store) -> None:
        assert await _owners(store) == []
        await put(store, *(_member(key) for key in ("01", "02")))
        await put(store, _member("01", session="s2", owner="eve", agent_id="eve"))
        assert await _owners(store) == [AGENT]
        await put(store, _member("03", owner="zoe", agent_id="zoe"))
        await put(store, _member("03", owner="mia", agent_id="mia"))
        assert await _owners(store) == sorted([AGENT, "zoe"])

    async def test_entries_of_a_session_are_counted(self, store: Store) -> None:
        async def count(session: str) -> int:
            return await store.read(TENANT, lambda to: to.entries.count_of_session(session, "turn"))

        await put(store, _member("01", expires_at=at(-1)), now=at(-9))
        await put(store, _member("02"), _member("03", owner="eve", agent_id="eve"))
        await put(store, _member("04", session="s2"), _member("04", kind="checkpoint"))
        assert [await count("s1"), await count("s2"), await count("s3")] == [3, 1, 0]

    async def test_a_script_sees_the_entries_of_a_session_that_it_wrote(self, store: Store) -> None:
        async def script(to: Transaction) -> None:
            await to.entries.insert(_member("01"), NOW)
            found = await to.entries.of_session("s1", "turn", AGENT, 9)
            assert [one.key for one in found] == ["01"]
            assert await to.entries.session_owners("s1", "turn") == [AGENT]
            newest = await to.entries.newest_of_session("s1", AGENT, {"turn": 9})
            assert newest == {"turn": found}

        await store.write(TENANT, script)

    async def test_counters_are_removed_with_their_session(self, store: Store) -> None:
        head, other = (_member(key, session=key, kind="session") for key in ("a", "b"))
        counters = [
            SessionCounters(
                tenant=TENANT, session_id=one.id, last_activity_at=NOW, checkpointed_at=NOW
            )
            for one in (head, other)
        ]
        await put(store, head, other)

        async def script(to: Transaction) -> None:
            for one in counters:
                await to.records(SESSION_COUNTERS).insert(one)

        await store.write(TENANT, script)
        await remove(store, head)
        found = await store.read(TENANT, lambda to: to.records(SESSION_COUNTERS).page())
        assert found == counters[1:]

    async def test_due_entries_of_a_kind_are_listed(self, store: Store) -> None:
        turn, plain = _member("01", due_at=at(1)), make_entry(due_at=at(0))
        await put(store, turn, plain)

        async def due(kind: str | None) -> list[Entry]:
            return await store.read(TENANT, lambda to: to.edges.due(at(2), 9, kind))

        assert await due(None) == [plain, turn]
        assert await due("turn") == [turn]
        assert await due("session") == []
