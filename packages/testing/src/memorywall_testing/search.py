"""Search: each condition, the reach, pages and exact totals."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random
from typing import Any

import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import PRIORITY_RANK, Entry, Provenance, Scope, Source
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    at,
    make_entry,
    make_shared,
    newest_first,
    put,
    search,
    search_page,
    visibility,
)
from memorywall_testing.names import LOOKALIKES, case_id

_SIZES = [1, 2, 4, 5, 100]
_PREFIXES = [
    *("n", "na", "name", "name\u0301", "na%", "na_", "na*", "[", "I", "1", "zz"),
    *("\ufb01", "\u2764", "\uffee", "\U0001f44d", "\U0001f9d1", "\U00020000"),
]

_ENTRIES = {
    "plain": make_entry(),
    "session": make_entry(tier=Tier.SESSION),
    "episodic": make_entry(tier=Tier.EPISODIC, pinned=True),
    "orders": make_entry(namespace="orders"),
    "orders/eu": make_entry(namespace="orders/eu", key="last"),
    "task": make_entry(scope=Scope(task_id="task")),
    "both": make_entry(scope=Scope(task_id="task", intent_id="intent")),
    "intent": make_entry(scope=Scope(intent_id="intent")),
    "grace": make_entry(owner="grace", key="last"),
    "late": make_entry(updated_at=at(20)),
    "later": make_entry(updated_at=at(30)),
    "shared": make_shared(agent_id="grace"),
    "tagged": make_entry(tags=("a", "b")),
}
_CONDITIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, set(_ENTRIES)),
    ({"tiers": (Tier.SESSION,)}, {"session"}),
    ({"tiers": (Tier.SESSION, Tier.EPISODIC)}, {"session", "episodic"}),
    ({"tiers": tuple(Tier)}, set(_ENTRIES)),
    ({"tiers": (Tier.PROCEDURAL,)}, set()),
    ({"agent_id": "grace"}, {"grace", "shared"}),
    ({"agent_id": "Grace"}, set()),
    ({"except_owner": "grace"}, set(_ENTRIES) - {"grace"}),
    ({"except_owner": AGENT}, {"grace", "shared"}),
    ({"namespace": "orders"}, {"orders"}),
    ({"namespace_prefix": "orders"}, {"orders", "orders/eu"}),
    ({"namespace_prefix": "orders/"}, {"orders/eu"}),
    ({"namespace_prefix": "Orders"}, set()),
    ({"namespace_prefix": ""}, set(_ENTRIES)),
    ({"key": "last"}, {"orders/eu", "grace"}),
    ({"task_id": "task"}, {"task", "both"}),
    ({"intent_id": "intent"}, {"both", "intent"}),
    ({"task_id": "task", "intent_id": "intent"}, {"both"}),
    ({"pinned": True}, {"episodic"}),
    ({"pinned": False}, set(_ENTRIES) - {"episodic"}),
    ({"updated_after": at(0)}, {"late", "later"}),
    ({"updated_after": at(20)}, {"later"}),
    ({"updated_before": at(20)}, set(_ENTRIES) - {"late", "later"}),
    ({"updated_after": at(10), "updated_before": at(30)}, {"late"}),
    ({"updated_after": at(30), "updated_before": at(10)}, set()),
    ({"before": _ENTRIES["orders"].id}, {"plain", "session", "episodic"}),
    ({"before": _ENTRIES["plain"].id}, set()),
    ({"tags": ("a",), "pinned": True}, set()),
    ({"tags": ("a",), "tags_any": ("b", "c"), "pinned": False}, {"tagged"}),
    ({"namespace": "orders/eu", "namespace_prefix": "orders", "key": "last"}, {"orders/eu"}),
]


class SearchConformance(StoreCase):
    """`port.Entries.search` but for tags and expiry."""

    @pytest.mark.parametrize(("conditions", "expected"), _CONDITIONS, ids=case_id)
    async def test_condition_matches_named_entries(
        self, store: Store, conditions: dict[str, Any], expected: set[str]
    ) -> None:
        await put(store, *_ENTRIES.values())
        within = visibility("ada", "grace", namespaces=["policies"])
        found = await search(store, within, **conditions)
        assert found == newest_first(_ENTRIES[name] for name in expected)

    async def test_a_rendered_entry_shows_every_field(self, store: Store) -> None:
        """`search` compares each entry of the rendered page with the wire form of the entry."""
        odd = 'a "quoted" \\ back\\slash / \x01\t\n\x7f %s {0} \u2028 \u2764 \U0001f9d1'
        entries = [
            make_entry(
                owner=AGENT,
                agent_id=odd,
                namespace=odd,
                key=odd,
                value=b'{"a":"\\u0000%s","b":[1,2.5e3,null,true,{}],"\xc3\xbc":""}',
                tags=(odd, "b"),
                ttl="duration:P1D",
                expires_at=at(86_400),
                version=7,
                pinned=True,
                created_by=odd,
                curated_by=odd,
                provenance=Provenance(
                    principal=odd, kind="agent", derived_from=(Source(id="mem_1", version=2),)
                ),
                kind="ticket",
                kind_version=3,
                status=odd,
                subjects=(odd, "ann"),
            ),
            *(make_entry(priority=priority) for priority in PRIORITY_RANK),
            *(make_entry(sensitivity=one) for one in ("public", "internal", "confidential")),
            make_entry(sensitivity="restricted", sealing_key="dek_1", value=b"\x00sealed\xff"),
            make_entry(state="cold"),
            make_entry(value=b"", size=0),
            *(
                make_entry(scope=Scope(**dict(zip(names, (odd, "b", "c"), strict=False))))
                for names in (
                    ("task_id",),
                    ("intent_id",),
                    ("session_id",),
                    ("task_id", "session_id"),
                    ("task_id", "intent_id", "session_id"),
                )
            ),
        ]
        await put(store, *entries)
        assert await search(store, state=None) == newest_first(entries)

    async def test_pages_part_the_whole_and_each_tells_the_exact_total(self, store: Store) -> None:
        entries = [make_entry() for _ in range(23)]
        await put(store, *entries)
        newest = newest_first(entries)
        for limit in (1, 5, 22, 23, 24, 1000, None):
            for offset in (0, 1, 5, 22, 23, 24, 500):
                page, total = await search_page(
                    store, EntryFilter(tenant=TENANT, limit=limit, offset=offset)
                )
                end = None if limit is None else offset + limit
                assert page == newest[offset:end], (limit, offset)
                assert total == 23, (limit, offset)

    async def test_empty_page_contains_the_total(self, store: Store) -> None:
        await put(store, *(make_entry() for _ in range(3)))
        assert await search_page(store, EntryFilter(tenant=TENANT, limit=0)) == ([], 3)

    async def test_an_uncounted_page_tells_only_how_many_it_has(self, store: Store) -> None:
        entries = [make_entry() for _ in range(7)]
        await put(store, *entries)
        wanted = EntryFilter(tenant=TENANT, limit=3, counted=False)
        assert await search_page(store, wanted) == (newest_first(entries)[:3], 3)

    async def test_several_searches_give_the_pages_of_each(self, store: Store) -> None:
        scope, own, none = Scope(task_id="task"), visibility(AGENT), VisibilityFilter()
        await put(store, *(make_entry(key=f"k{number}", tags=("a",)) for number in range(5)))
        await put(store, *(make_entry(scope=scope, value=b'{"a":"$1"}') for _ in range(3)))
        await put(store, make_entry(tenant="globex"), make_entry(owner="eve", agent_id="eve"))
        conditions: list[dict[str, Any]] = [
            {},
            {"order": "key", "ascending": True, "offset": 1, "limit": 4},
            {"tags": ("a",), "limit": 2},
            {"task_id": "task", "tiers": (Tier.WORKING,)},
            {"key": "missing"},
            {"key": "k1", "limit": None},
        ]
        wanted = [EntryFilter(tenant=TENANT, **{"limit": 9, **one}) for one in conditions]
        searches = [(one, own) for one in wanted] + [(wanted[0], none)]

        async def script(to: Transaction) -> None:
            pages = await to.entries.search_each(searches, NOW)
            assert pages == [(await to.entries.search(*one, NOW))[0] for one in searches]
            assert [len(one) for one in pages] == [8, 4, 2, 3, 0, 1, 0]
            assert await to.entries.search_each([], NOW) == []

        await store.read(TENANT, script)
        await store.write(TENANT, script)

    async def test_pages_are_ordered_by_id(self, store: Store) -> None:
        entries = [make_entry(tags=("tag",), scope=Scope(task_id="task")) for _ in range(8)]
        shuffled = entries[:]
        random.Random(7).shuffle(shuffled)
        for entry in shuffled:
            await put(store, entry)
        newest = newest_first(entries)
        assert await search(store) == newest
        assert await search(store, tags=("tag",)) == newest
        assert await search(store, task_id="task") == newest
        page, _ = await search_page(store, EntryFilter(tenant=TENANT, before=newest[3].id, limit=2))
        assert page == newest[4:6]

    async def test_going_on_before_the_last_id_lists_each_once(self, store: Store) -> None:
        entries = [make_entry(tags=("tag",)) for _ in range(17)]
        await put(store, *entries)
        listed: list[Entry] = []
        before = None
        while True:
            page, total = await search_page(
                store, EntryFilter(tenant=TENANT, tags=("tag",), before=before, limit=5)
            )
            assert total == 17 - len(listed)
            if not page:
                break
            listed += page
            before = page[-1].id
        assert listed == newest_first(entries)

    async def test_names_in_conditions_compare_by_code_point(self, store: Store) -> None:
        by_key = [make_entry(key=name, namespace="keys") for name in LOOKALIKES]
        spaces = [make_entry(namespace=name, key="same") for name in LOOKALIKES]
        agents = [make_entry(owner=name, key="same") for name in LOOKALIKES]
        tasks = [make_entry(scope=Scope(task_id=name, intent_id=name)) for name in LOOKALIKES]
        await put(store, *by_key, *spaces, *agents, *tasks)
        everyone = visibility(AGENT, *LOOKALIKES)
        for place, name in enumerate(LOOKALIKES):
            assert await search(store, namespace="keys", key=name) == [by_key[place]]
            assert await search(store, namespace=name) == [spaces[place]]
            assert await search(store, visibility(name)) == [agents[place]]
            assert await search(store, everyone, agent_id=name) == [agents[place]]
            assert await search(store, task_id=name) == [tasks[place]]
            assert await search(store, intent_id=name) == [tasks[place]]

    @pytest.mark.parametrize("prefix", _PREFIXES)
    async def test_a_prefix_is_matched_code_point_by_code_point(
        self, store: Store, prefix: str
    ) -> None:
        names = [*LOOKALIKES, "name\U0001f44d", "name\U000e0100", "namf", "nam", "na\uffee"]
        entries = [make_entry(namespace=name) for name in names]
        shared = [make_shared(name) for name in names]
        await put(store, *entries, *shared)
        expected = [entry for entry in entries if entry.namespace.startswith(prefix)]
        assert await search(store, namespace_prefix=prefix) == newest_first(expected)
        together = [entry for entry in shared if entry.namespace.startswith(prefix)]
        within = visibility(AGENT, namespaces=names)
        found = await search(store, within, namespace_prefix=prefix)
        assert found == newest_first([*expected, *together])

    async def test_an_empty_visibility_filter_finds_nothing(self, store: Store) -> None:
        await put(store, make_entry(), make_shared())
        assert await search(store, VisibilityFilter()) == []
        assert await search_page(
            store, EntryFilter(tenant=TENANT, limit=1), VisibilityFilter()
        ) == ([], 0)

    async def test_each_wall_is_reached_only_by_its_own_kind(self, store: Store) -> None:
        mine = make_entry(namespace="policies", agent_id="ada")
        shared = make_shared("policies", agent_id="ada")
        await put(store, mine, shared)
        assert await search(store, visibility("ada")) == [mine]
        assert await search(store, visibility(namespaces=["policies"])) == [shared]
        assert await search(store, visibility("ada", namespaces=["policies"])) == [shared, mine]
        assert await search(store, visibility("grace", namespaces=["policies"])) == [shared]
        assert await search(store, visibility("ada", namespaces=["other"])) == [mine]
        assert await search(store, visibility("policies", namespaces=["ada"])) == []

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_filter_works_for_any_number_of_namespaces(
        self, store: Store, size: int
    ) -> None:
        names = [f"space-{number:03d}" for number in range(size + 3)]
        shared = [make_shared(name, tags=("tag",)) for name in names]
        owned = [make_entry(namespace=name, tags=("tag",)) for name in names]
        await put(store, *shared, *owned)
        reached = names[:size]
        inside = newest_first(shared[:size])
        for conditions in ({}, {"tags": ("tag",)}, {"tags_any": ("tag", "none")}):
            assert await search(store, visibility(namespaces=reached), **conditions) == inside
            both = await search(store, visibility(AGENT, namespaces=reached), **conditions)
            assert both == newest_first([*shared[:size], *owned])
            stranger = await search(store, visibility("nobody", namespaces=reached), **conditions)
            assert stranger == inside
        page, total = await search_page(
            store, EntryFilter(tenant=TENANT, limit=1), visibility(namespaces=reached)
        )
        assert (page, total) == (inside[:1], size)

    @pytest.mark.parametrize("size", _SIZES)
    async def test_a_filter_works_for_any_number_of_owners(self, store: Store, size: int) -> None:
        agents = [f"agent-{number:03d}" for number in range(size + 3)]
        owned = [make_entry(owner=agent, tags=("tag",)) for agent in agents]
        shared = make_shared(tags=("tag",), agent_id=agents[0])
        await put(store, *owned, shared)
        inside = newest_first(owned[:size])
        for conditions in ({}, {"tags": ("tag",)}, {"tags_any": ("tag", "none")}):
            assert await search(store, visibility(*agents[:size]), **conditions) == inside
            both = await search(
                store, visibility(*agents[:size], namespaces=["policies"]), **conditions
            )
            assert both == [shared, *inside]

    @pytest.mark.parametrize("size", [1, 4, 5])
    async def test_tiers_hold_for_any_number(self, store: Store, size: int) -> None:
        entries = [make_entry(tier=tier) for tier in Tier]
        await put(store, *entries)
        found = await search(store, tiers=tuple(Tier)[:size])
        assert found == newest_first(entries[:size])
