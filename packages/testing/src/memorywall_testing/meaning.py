"""Kinds, states, subjects, edges, due instants and versions of entries."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as with_fields

from memorywall.records.entry import Entry, Provenance, Scope, Source
from memorywall.records.recall import EntryVector
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    at,
    find,
    first_to_evict,
    get,
    insert,
    make_entry,
    make_shared,
    newest_first,
    put,
    remove,
    search,
    usage_of,
    visibility,
)

_OTHER = "globex"


async def _replace(store: Store, old: Entry, *, keep_old: bool = False, **fields: Any) -> Entry:
    """Replaces fields of an entry; returns what it becomes."""
    changes = {"version": old.version + 1, "updated_at": at(old.version), **fields}
    new = msgspec.structs.replace(old, **changes)
    await store.write(old.tenant, lambda to: to.entries.replace(old, new, keep_old=keep_old))
    return new


async def _targets(store: Store, entry: Entry) -> list[tuple[str, str]]:
    return await store.read(entry.tenant, lambda to: to.edges.targets(entry.id))


async def _sources(
    store: Store, relation: str, *targets: str, limit: int = 99, after: str = "", of: str = TENANT
) -> list[str]:
    return await store.read(of, lambda to: to.edges.sources(relation, targets, limit, after))


async def _versions(store: Store, entry: Entry) -> list[Entry]:
    return await store.read(entry.tenant, lambda to: to.history.versions(entry.id))


class MeaningConformance(StoreCase):
    """Kinds, states and subjects as conditions of a search."""

    async def test_kind_and_all_that_is_derived_come_back(self, store: Store) -> None:
        entry = make_entry(
            kind="ticket",
            kind_version=3,
            status="open",
            state="cold",
            listed=False,
            subjects=("ann", "b\u00f6b"),
            edges=(("about", "ann"), ("about", "b\u00f6b"), ("blocks", "mem_9")),
            due_at=at(5),
            provenance=Provenance(
                principal=AGENT,
                kind="agent",
                origin="tool",
                source="https://example.org/a?b=c",
                session="s",
                task="t",
                context="c",
                source_tier=Tier.EPISODIC,
                score=0.5,
                evidence=(Source(id="mem_1", version=2),),
            ),
        )
        plain = make_entry()
        await put(store, entry, plain)
        assert await get(store, entry) == await find(store, entry) == entry
        assert await get(store, plain) == plain
        changed = await _replace(
            store,
            entry,
            kind="note",
            kind_version=1,
            status=None,
            state="live",
            listed=True,
            subjects=("cy",),
            edges=(("about", "cy"),),
            due_at=None,
        )
        assert await get(store, entry) == changed

    async def test_search_shows_live_and_listed_entries_unless_asked(self, store: Store) -> None:
        live = make_entry()
        ticket = make_entry(kind="ticket", kind_version=1, status="open")
        done = make_entry(kind="ticket", kind_version=1, status="done")
        cold = make_entry(state="cold")
        hidden = make_entry(kind="head", kind_version=1, listed=False)
        await put(store, live, ticket, done, cold, hidden)
        assert await search(store) == newest_first([live, ticket, done])
        assert await search(store, kind="ticket") == newest_first([ticket, done])
        assert await search(store, kind="ticket", statuses=("open",)) == [ticket]
        assert await search(store, statuses=("done", "late")) == [done]
        assert await search(store, statuses=("open", "done")) == await search(store, kind="ticket")
        assert await search(store, state="cold") == [cold]
        assert await search(store, kind="head") == [hidden]
        assert await search(store, listed_only=False, state=None) == newest_first(
            [live, ticket, done, cold, hidden]
        )

    async def test_search_finds_entries_about_a_subject(self, store: Store) -> None:
        ann = make_entry(subjects=("ann",), edges=(("about", "ann"),))
        both = make_entry(subjects=("ann", "bob"), edges=(("about", "ann"), ("about", "bob")))
        bob = make_shared(subjects=("bob",), edges=(("about", "bob"),))
        nobody = make_entry(edges=(("likes", "ann"),))
        elsewhere = make_entry(tenant=_OTHER, subjects=("ann",), edges=(("about", "ann"),))
        await put(store, ann, both, bob, nobody, elsewhere)
        within = visibility(AGENT, namespaces=["policies"])
        assert await search(store, within, about=("ann",)) == newest_first([ann, both])
        assert await search(store, within, about=("bob", "digest")) == newest_first([both, bob])
        assert await search(store, within, about=("cy",)) == []
        assert await search(store, within, about=("ann",), tags=("x",)) == []

    async def test_search_bound_to_subjects_omits_entries_about_others(self, store: Store) -> None:
        ann = make_entry(subjects=("ann",), edges=(("about", "ann"),), tags=("red",))
        both = make_entry(subjects=("ann", "bob"), edges=(("about", "ann"), ("about", "bob")))
        bob = make_entry(scope=Scope(task_id="task"), subjects=("bob",), edges=(("about", "bob"),))
        nobody = make_entry(tags=("red",))
        await put(store, ann, both, bob, nobody)
        for subjects, shown in (
            (("ann",), [ann, nobody]),
            (("ann", "bob"), [ann, both, bob, nobody]),
            (("cy",), [nobody]),
            ((), [nobody]),
        ):
            bound = with_fields(visibility(AGENT), subjects=subjects)
            assert await search(store, bound) == newest_first(shown)
            assert await search(store, bound, tags=("red",)) == newest_first(
                [one for one in shown if one.tags]
            )
            opened = with_fields(bound, owners=(), tasks=("task",))
            assert await search(store, opened) == [one for one in shown if one is bob]

    async def test_search_by_session_and_by_origin(self, store: Store) -> None:
        told = Provenance(principal=AGENT, kind="agent", origin="document", source="file:a")
        one = make_entry(scope=Scope(session_id="one"), provenance=told)
        two = make_entry(scope=Scope(session_id="two"))
        await put(store, one, two)
        assert await search(store, session_id="one") == [one]
        assert await search(store, origin="document") == [one]
        assert await search(store, origin="user") == []
        assert await search(store, source="file:a") == [one]

    async def test_name_is_unique_within_a_session(self, store: Store) -> None:
        plain = make_entry(key="plan")
        one = make_entry(key="plan", scope=Scope(session_id="one"))
        two = make_entry(key="plan", scope=Scope(session_id="two"))
        again = make_entry(key="plan", scope=Scope(session_id="two"))
        assert [await insert(store, entry) for entry in (plain, one, two, again)] == [
            True,
            True,
            True,
            False,
        ]
        for entry in (plain, one, two):
            assert await find(store, entry) == entry
        assert await search(store, key="plan", namespace="invoices") == newest_first(
            [plain, one, two]
        )

    async def test_unlisted_entries_count_toward_nothing(self, store: Store) -> None:
        listed = make_entry(tier=Tier.EPISODIC, scope=Scope(task_id="task"))
        hidden = make_entry(
            tier=Tier.EPISODIC, scope=Scope(task_id="task"), kind="head", listed=False
        )
        shared = make_entry(tier=Tier.SHARED, owner="", namespace="shared/global", listed=False)
        await put(store, listed, hidden, shared)
        expected = Usage(entries=1, bytes=listed.size)

        async def look(to: Transaction) -> None:
            assert await to.entries.usage(Tier.EPISODIC, AGENT, NOW) == expected
            assert await to.entries.task_usage(Tier.EPISODIC, "task", NOW) == expected
            assert await to.entries.namespace_usage(Tier.SHARED, "shared/global", NOW) == Usage()
            assert await first_to_evict(to, Tier.EPISODIC, AGENT) == listed

        await store.read(TENANT, look)
        shown = await _replace(store, hidden, listed=True)
        assert (await usage_of(store, tier=Tier.EPISODIC)).entries == 2
        await remove(store, shown, listed)
        assert await usage_of(store, tier=Tier.EPISODIC) == Usage()


class EdgesConformance(StoreCase):
    """`port.Edges`."""

    async def test_edges_are_walked_both_ways(self, store: Store) -> None:
        one = make_entry(edges=(("likes", "tea"), ("about", "ann")))
        two = make_entry(edges=(("likes", "tea"), ("likes", "jam")))
        other = make_entry(tenant=_OTHER, edges=(("likes", "tea"),))
        await put(store, one, two, other)
        assert await _targets(store, one) == [("about", "ann"), ("likes", "tea")]
        assert await _sources(store, "likes", "tea") == [one.id, two.id]
        assert await _sources(store, "likes", "tea", "jam") == [one.id, two.id]
        assert await _sources(store, "likes", "tea", limit=1) == [one.id]
        assert await _sources(store, "likes", "tea", after=one.id) == [two.id]
        assert await _sources(store, "loves", "tea") == []
        assert await _sources(store, "likes") == []
        assert await _sources(store, "likes", "tea", of=_OTHER) == [other.id]

    async def test_edges_in_ranges_of_targets_come_in_order(self, store: Store) -> None:
        one = make_entry(edges=(("from", "a 2025"), ("from", "b 2024"), ("to", "a 2025")))
        two = make_entry(edges=(("from", "a 2024"), ("from", "a 2025"), ("from", "a B")))
        other = make_entry(tenant=_OTHER, edges=(("from", "a 2024"),))
        await put(store, one, two, other)

        async def between(
            *ranges: tuple[str, str], limit: int = 99, of: str = TENANT
        ) -> list[tuple[str, str]]:
            return await store.read(of, lambda to: to.edges.between("from", ranges, limit))

        assert await between(("a ", "a~")) == [
            ("a 2024", two.id),
            ("a 2025", one.id),
            ("a 2025", two.id),
            ("a B", two.id),
        ]
        assert await between(("a 2024", "a 2025")) == [("a 2024", two.id)]
        assert await between(("b ", "b~"), ("a ", "a~"), limit=1) == [
            ("b 2024", one.id),
            ("a 2024", two.id),
        ]
        assert await between(("c", "d")) == await between() == []
        assert await between(("a ", "a~"), of=_OTHER) == [("a 2024", other.id)]

    async def test_edges_change_and_go_with_their_entry(self, store: Store) -> None:
        entry = make_entry(edges=(("likes", "tea"), ("likes", "jam")))
        await put(store, entry)
        changed = await _replace(store, entry, edges=(("likes", "jam"), ("likes", "milk")))
        assert await _targets(store, entry) == [("likes", "jam"), ("likes", "milk")]
        assert await _sources(store, "likes", "tea") == []
        await remove(store, changed)
        assert await _targets(store, entry) == []
        assert await _sources(store, "likes", "jam", "milk") == []

    async def test_edges_of_a_refused_script_are_not_there(self, store: Store) -> None:
        entry = make_entry(edges=(("likes", "tea"),))

        async def script(to: Transaction) -> None:
            await to.entries.insert(entry, NOW)
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, script)
        assert await _sources(store, "likes", "tea") == []

    async def test_edges_are_seen_by_the_script_that_wrote_them(self, store: Store) -> None:
        entry = make_entry(edges=(("likes", "tea"),), due_at=at(1))

        async def script(to: Transaction) -> None:
            await to.entries.insert(entry, NOW)
            assert await to.edges.targets(entry.id) == [("likes", "tea")]
            assert await to.edges.due(at(1), 9) == [entry]

        await store.write(TENANT, script)

    async def test_due_entries_come_in_the_order_of_their_instants(self, store: Store) -> None:
        late = make_entry(due_at=at(9))
        soon = make_entry(due_at=at(2))
        later = make_entry(due_at=at(3))
        never = make_entry()
        elsewhere = make_entry(tenant=_OTHER, due_at=at(1))
        await put(store, late, soon, later, never, elsewhere)

        async def due(now: str, limit: int = 9) -> list[Entry]:
            return await store.read(TENANT, lambda to: to.edges.due(now, limit))

        assert await due(at(1)) == []
        assert await due(at(3)) == [soon, later]
        assert await due(at(9), 1) == [soon]
        await _replace(store, soon, due_at=at(20))
        await remove(store, later)
        assert await due(at(19)) == [late]


class HistoryConformance(StoreCase):
    """`port.History`."""

    async def test_earlier_versions_are_kept_where_asked(self, store: Store) -> None:
        first = make_shared(value=b'{"n":1}', sealing_key="dek_1", tags=("a",))
        await put(store, first)
        second = await _replace(store, first, keep_old=True, value=b'{"n":22}', size=8, tags=())
        third = await _replace(store, second, keep_old=False, value=b"{}")
        fourth = await _replace(store, third, keep_old=True, value=b'{"n":4}')
        assert await get(store, first) == fourth
        assert await _versions(store, first) == [first, third]

        async def look(to: Transaction) -> None:
            assert await to.history.get(first.id, 1) == first
            assert await to.history.get(first.id, 2) is None
            assert await to.history.get(first.id, 4) is None
            assert await to.history.get("mem_none", 1) is None

        await store.read(TENANT, look)

    async def test_earlier_versions_are_found_by_subject_and_removed(self, store: Store) -> None:
        first = make_shared(subjects=("ann", "b\u00f6b"))
        other = make_shared(tags=("ann",), namespace="ann")
        foreign = make_shared(tenant=_OTHER, subjects=("ann",))
        await put(store, first, other, foreign)
        second = await _replace(store, first, keep_old=True, subjects=("b\u00f6b",))
        third = await _replace(store, second, keep_old=True, subjects=("~1",))
        last = await _replace(store, third, keep_old=True, subjects=("ann",))
        for one in (other, foreign):
            await _replace(store, one, keep_old=True, subjects=())

        async def about(*subjects: str, limit: int = 9) -> list[Entry]:
            return await store.read(TENANT, lambda to: to.history.about(subjects, limit))

        assert await about("ann") == [first]
        assert await about("b\u00f6b") == [first, second]
        assert await about("ann", "~1") == [first, third]
        assert await about("ann", "b\u00f6b", "~1", limit=2) == [first, second]
        assert await about("an") == await about() == []
        await store.write(TENANT, lambda to: to.history.remove(first.id, (1, 3, 9)))
        assert await _versions(store, first) == [second]
        assert await get(store, first) == last
        assert len(await _versions(store, other)) == len(await _versions(store, foreign)) == 1

    async def test_entries_and_their_versions_are_sealed_anew(self, store: Store) -> None:
        first = make_shared(value=b"one", sealing_key="dek_1", tags=("a",))
        foreign = msgspec.structs.replace(first, tenant=_OTHER)
        await put(store, first, foreign)
        second = await _replace(store, first, keep_old=True, value=b"two")
        fresh = [
            msgspec.structs.replace(one, value=b"fresh", sealing_key="dek_2")
            for one in (first, second)
        ]

        async def script(to: Transaction) -> None:
            await to.entries.reseal(fresh[0], earlier=True)
            await to.entries.reseal(fresh[1])

        await store.write(TENANT, script)
        assert await get(store, first) == fresh[1]
        assert await _versions(store, first) == fresh[:1]
        assert await get(store, foreign) == foreign
        for absent, earlier in ((fresh[0], False), (fresh[1], True)):
            with pytest.raises(LookupError):
                await store.write(
                    TENANT,
                    lambda to, one=absent, was=earlier: to.entries.reseal(one, earlier=was),  # type: ignore[misc]
                )

    async def test_an_entry_is_renamed_and_its_earlier_version_is_not(self, store: Store) -> None:
        old = make_shared(tags=("a",))
        await put(store, old)
        new = msgspec.structs.replace(
            old, namespace="other", key="another", version=2, updated_at=at(1), tags=("b",)
        )

        async def rename(to: Transaction) -> None:
            await to.entries.rename(old, new)
            await to.entries.replace(old, new, keep_old=True)

        await store.write(TENANT, rename)
        assert await get(store, old) == new
        assert await _versions(store, old) == [old]
        for one, found in ((old, None), (new, new)):
            place = (one.tier, one.owner, one.namespace, one.key)
            assert await store.read(TENANT, lambda to, at=place: to.entries.find(*at)) == found  # type: ignore[misc]
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.entries.rename(old, new))

    async def test_entries_are_found_as_they_were_at_an_instant(self, store: Store) -> None:
        entry, same, later = make_shared(), make_shared(), make_shared(created_at=at(9))
        later = msgspec.structs.replace(later, updated_at=at(9))
        await put(store, entry, same, later)
        second = await _replace(store, entry, keep_old=True, updated_at=at(5))
        third = await _replace(store, second, keep_old=True, updated_at=at(7))
        await _replace(store, later, keep_old=True, updated_at=at(11))
        ids = [entry.id, same.id, later.id, "mem_none"]

        async def as_of(instant: str) -> dict[str, Entry]:
            return await store.read(TENANT, lambda to: to.history.as_of(ids, instant))

        assert await as_of(at(-1)) == {}
        assert await as_of(NOW) == {entry.id: entry}
        assert await as_of(at(4)) == {entry.id: entry}
        assert await as_of(at(5)) == {entry.id: second}
        assert await as_of(at(7)) == {}
        assert await as_of(at(10)) == {later.id: later}
        assert await get(store, entry) == third

    async def test_earlier_versions_go_with_their_entry(self, store: Store) -> None:
        entry, other = make_shared(), make_shared(tenant=_OTHER)
        await put(store, entry, other)
        second = await _replace(store, entry, keep_old=True)
        await _replace(store, other, keep_old=True)
        await remove(store, second)
        assert await _versions(store, entry) == []
        assert len(await _versions(store, other)) == 1

    async def test_earlier_versions_of_a_refused_script_are_not_there(self, store: Store) -> None:
        entry = make_shared()
        await put(store, entry)
        new = msgspec.structs.replace(entry, version=2)

        async def script(to: Transaction) -> None:
            await to.entries.replace(entry, new, keep_old=True)
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, script)
        assert await _versions(store, entry) == []

    async def test_vectors_of_earlier_versions_are_not_there(self, store: Store) -> None:
        entry = make_shared()
        await put(store, entry)
        vector = EntryVector(entry.id, 1, bytes(4))
        await store.write(TENANT, lambda to: to.recall.put_vectors("m", [vector]))
        await _replace(store, entry, keep_old=True, value=b'{"other":1}')
        assert await store.read(TENANT, lambda to: to.recall.vectors("m", [entry.id])) == {}
