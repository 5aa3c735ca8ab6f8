"""Search of other agents' memory as far as work opens it."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.storage.port import Store
from memorywall_testing.base import (
    TENANT,
    StoreCase,
    at,
    make_entry,
    make_shared,
    newest_first,
    put,
    search,
    search_page,
)
from memorywall_testing.names import LOOKALIKES, case_id

_SIZES = [1, 4, 5, 100]

# What work opens: the name of an entry says whose it is and what it is bound to.
_TASK, _OTHER_TASK = Scope(task_id="task"), Scope(task_id="other")
_BOUND = Scope(task_id="task", intent_id="intent")
_WORK = {
    "mine": make_entry(),
    "mine in the task": make_entry(scope=_TASK, tags=("a",)),
    "hers": make_entry(owner="grace", tags=("a",)),
    "hers in the task": make_entry(owner="grace", scope=_TASK, tags=("a", "b")),
    "hers in the other task": make_entry(owner="grace", scope=_OTHER_TASK, tags=("a",)),
    "hers of the intent": make_entry(owner="grace", scope=Scope(intent_id="intent"), tags=("a",)),
    "his in the task of the intent": make_entry(owner="linus", scope=_BOUND, tags=("a", "b")),
    "her session in the task": make_entry(
        owner="grace", tier=Tier.SESSION, scope=_BOUND, tags=("a",)
    ),
    "her episode of the task": make_entry(
        owner="grace", tier=Tier.EPISODIC, scope=_BOUND, tags=("a",)
    ),
    "his episode": make_entry(owner="linus", tier=Tier.EPISODIC, tags=("b",)),
    "shared": make_shared(scope=_BOUND, tags=("a",)),
}
_IN_TASK = {"mine in the task", "hers in the task", "his in the task of the intent"}
_OPENED: list[tuple[dict[str, Any], set[str]]] = [
    ({"tasks": ("task",)}, _IN_TASK),
    ({"tasks": ("other",)}, {"hers in the other task"}),
    ({"tasks": ("task", "other")}, _IN_TASK | {"hers in the other task"}),
    ({"tasks": ("Task", "intent", "grace", "")}, set()),
    ({"intents": ("intent",)}, {"hers of the intent", "his in the task of the intent"}),
    ({"intents": ("Intent", "task")}, set()),
    ({"coordinated": ("intent",)}, {"his in the task of the intent"}),
    ({"coordinated": ("task",)}, set()),
    ({"episodic": ("grace",)}, {"her episode of the task"}),
    ({"episodic": ("grace", "linus")}, {"her episode of the task", "his episode"}),
    ({"episodic": ("Grace", "", "ada")}, set()),
    (
        {"by_group": (("invoices", "linus"), ("none", "grace"), ("Invoices", "grace"))},
        {"his episode"},
    ),
    (
        {"by_group": (("invoices", "grace"),), "episodic": ("grace", "linus")},
        {"her episode of the task", "his episode"},
    ),
    (
        {"tasks": ("other",), "coordinated": ("intent",), "episodic": ("linus",)},
        {"hers in the other task", "his in the task of the intent", "his episode"},
    ),
    (
        {"tasks": ("task",), "intents": ("intent",), "coordinated": ("intent",)},
        _IN_TASK | {"hers of the intent"},
    ),
]
_WITHIN_WORK: list[dict[str, Any]] = [
    {},
    {"tiers": (Tier.WORKING,)},
    {"tiers": (Tier.EPISODIC,)},
    {"tiers": (Tier.SESSION, Tier.SEMANTIC)},
    {"agent_id": "grace"},
    {"agent_id": "linus", "tiers": (Tier.WORKING, Tier.EPISODIC)},
    {"agent_id": "ada"},
    {"task_id": "task"},
    {"task_id": "other", "tiers": (Tier.WORKING,)},
    {"intent_id": "intent"},
    {"task_id": "task", "intent_id": "intent"},
    {"tags": ("a",)},
    {"tags": ("a", "b")},
    {"tags": ("b", "a"), "tags_any": ("a", "c"), "tiers": (Tier.WORKING,)},
    {"tags_any": ("a", "b", "c")},
    {"tags_any": ("c",)},
    {"tags": ("a",), "task_id": "task"},
    {"tags_any": ("b", "c"), "task_id": "task"},
    {"tags": ("a",), "agent_id": "grace"},
    {"namespace": "invoices"},
    {"namespace": "invoices", "key": _WORK["his episode"].key},
    {"namespace": "policies"},
    {"before": _WORK["her session in the task"].id},
]


def _matches(entry: Entry, wanted: dict[str, Any]) -> bool:
    """Whether the entry meets those of the conditions that stand above."""
    tags = set(entry.tags)
    return all(
        (
            entry.tier in wanted.get("tiers", tuple(Tier)),
            wanted.get("agent_id", entry.agent_id) == entry.agent_id,
            wanted.get("task_id", entry.scope.task_id) == entry.scope.task_id,
            wanted.get("intent_id", entry.scope.intent_id) == entry.scope.intent_id,
            wanted.get("namespace", entry.namespace) == entry.namespace,
            wanted.get("key", entry.key) == entry.key,
            entry.id < wanted.get("before", "z"),
            tags.issuperset(wanted.get("tags", ())),
            "tags_any" not in wanted or not tags.isdisjoint(wanted["tags_any"]),
        )
    )


class VisibilityConformance(StoreCase):
    """`port.Entries.search` with `tasks`, `intents`, `coordinated`, `episodic` or `by_group` in the
    visibility filter."""

    @pytest.mark.parametrize(("opened", "expected"), _OPENED, ids=case_id)
    async def test_work_opens_what_it_names_and_no_more(
        self, store: Store, opened: dict[str, Any], expected: set[str]
    ) -> None:
        """Alone and beside what is reached anyway, under every kind of condition, page by page."""
        await put(store, *_WORK.values())
        mine = {"mine", "mine in the task"}
        for owners, namespaces, own in (
            ((), (), set[str]()),
            (("ada",), (), mine),
            (("ada",), ("policies",), {*mine, "shared"}),
            ((), ("policies", "other"), {"shared"}),
        ):
            within = VisibilityFilter(owners=owners, namespaces=namespaces, **opened)
            inside = newest_first(_WORK[name] for name in {*own, *expected})
            for conditions in _WITHIN_WORK:
                found = [entry for entry in inside if _matches(entry, conditions)]
                assert await search(store, within, **conditions) == found, conditions
                for limit, offset in ((1, 0), (2, 1), (3, 50)) if namespaces else ():
                    wanted = EntryFilter(tenant=TENANT, limit=limit, offset=offset, **conditions)
                    page = await search_page(store, wanted, within)
                    assert page == (found[offset : offset + limit], len(found)), conditions

    async def test_namespaces_limit_every_part(self, store: Store) -> None:
        """`limited_to` limits the caller's own memory, shared memory and memory opened by work."""
        await put(store, *_WORK.values())
        whole = VisibilityFilter(
            owners=("ada",), namespaces=("policies",), tasks=("task",), episodic=("linus",)
        )
        own = VisibilityFilter(owners=("ada",), namespaces=("policies",))
        for within in (whole, own):
            for conditions in ({}, {"tags": ("a",)}, {"task_id": "task"}, {"agent_id": "ada"}):
                found = await search(store, within, **conditions)
                for places in (("policies",), ("invoices", "other"), ("Invoices",), LOOKALIKES):
                    limited = replace(within, limited_to=places)
                    there = [entry for entry in found if entry.namespace in places]
                    assert await search(store, limited, **conditions) == there, conditions

    async def test_access_through_work_expires_and_stays_in_its_tenant(self, store: Store) -> None:
        fields: dict[str, Any] = {"owner": "grace", "scope": _BOUND, "tags": ("a",)}
        lasting, passing = make_entry(**fields), make_entry(expires_at=at(10), **fields)
        episode = make_entry(tier=Tier.EPISODIC, expires_at=at(10), **fields)
        foreign = [make_entry(tenant="globex", tier=tier, **fields) for tier in Tier]
        await put(store, lasting, passing, episode, *foreign)
        every = VisibilityFilter(
            owners=("ada",), tasks=("task",), intents=("intent",), coordinated=("intent",),
            episodic=("grace",),
        )  # fmt: skip
        for conditions in ({}, {"tags": ("a",)}, {"tags_any": ("a", "b")}, {"task_id": "task"}):
            before = await search(store, every, at(9.999), **conditions)
            assert before == [episode, passing, lasting]
            assert await search(store, every, at(10), **conditions) == [lasting]

    @pytest.mark.parametrize("size", _SIZES)
    async def test_access_through_work_holds_for_any_number_of_tasks(
        self, store: Store, size: int
    ) -> None:
        names = [f"name-{number:03d}" for number in range(size + 3)]
        bound = [
            make_entry(owner=f"of {name}", scope=Scope(task_id=name, intent_id=name), tags=("tag",))
            for name in names
        ]
        episodes = [make_entry(owner=name, tier=Tier.EPISODIC, tags=("tag",)) for name in names]
        await put(store, *bound, *episodes)
        reached = tuple(names[:size])
        for conditions in ({}, {"tags": ("tag",)}, {"tags_any": ("tag", "none")}):
            for opened in ("tasks", "intents", "coordinated"):
                work: dict[str, Any] = {opened: reached}
                found = await search(store, VisibilityFilter(**work), **conditions)
                assert found == newest_first(bound[:size])
            pairs = tuple((episodes[0].namespace, name) for name in reached)
            for visible in (VisibilityFilter(episodic=reached), VisibilityFilter(by_group=pairs)):
                found = await search(store, visible, **conditions)
                assert found == newest_first(episodes[:size])
            everything = VisibilityFilter(tasks=reached, coordinated=tuple(names), episodic=reached)
            found = await search(store, everything, **conditions)
            assert found == newest_first([*bound, *episodes[:size]])

    async def test_names_of_work_compare_by_code_point(self, store: Store) -> None:
        bound = [
            make_entry(owner="grace", scope=Scope(task_id=name, intent_id=name), tags=(name,))
            for name in LOOKALIKES
        ]
        episodes = [make_entry(owner=name, tier=Tier.EPISODIC) for name in LOOKALIKES]
        await put(store, *bound, *episodes)
        for place, name in enumerate(LOOKALIKES):
            for opened in ("tasks", "intents", "coordinated"):
                work: dict[str, Any] = {opened: (name,)}
                within = VisibilityFilter(owners=("ada",), **work)
                assert await search(store, within) == [bound[place]]
                assert await search(store, within, tags=(name,)) == [bound[place]]
                assert await search(store, within, task_id=name, tags=(name,)) == [bound[place]]
            assert await search(store, VisibilityFilter(episodic=(name,))) == [episodes[place]]

    async def test_tags_of_opened_entries_compare_by_code_point(self, store: Store) -> None:
        entries = [make_entry(owner="grace", scope=_BOUND, tags=(name,)) for name in LOOKALIKES]
        await put(store, *entries)
        within = VisibilityFilter(owners=("ada",), tasks=("task",))
        for entry in entries:
            for conditions in ({}, {"task_id": "task"}):
                assert await search(store, within, tags=entry.tags, **conditions) == [entry]
                assert await search(store, within, tags_any=entry.tags, **conditions) == [entry]
