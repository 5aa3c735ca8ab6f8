"""Search inside a session: the condition of `VisibilityFilter.session` and `session_owners`."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import EntryFilter
from memorywall.records.session import SESSION_TIERS
from memorywall.records.tier import Tier
from memorywall.storage.port import Store
from memorywall_testing.base import (
    TENANT,
    StoreCase,
    make_entry,
    make_shared,
    newest_first,
    put,
    search,
    search_page,
)
from memorywall_testing.names import LOOKALIKES

_OWN = (Tier.WORKING, Tier.SESSION, Tier.EPISODIC)
_SESSIONS = (None, "s1", "s2")
_CONDITIONS: list[dict[str, Any]] = [
    {},
    {"tiers": (Tier.SESSION,)},
    {"tiers": (Tier.WORKING, Tier.EPISODIC)},
    {"agent_id": "ada"},
    {"agent_id": "grace"},
    {"namespace": "invoices"},
    {"tags": ("a",)},
    {"tags": ("a", "b")},
    {"tags_any": ("b", "none")},
    {"session_id": "s1"},
    {"session_id": "s2"},
    {"task_id": "task"},
    {"tags": ("a",), "task_id": "task"},
]


def _entries() -> list[Entry]:
    """Memory of two agents and of a namespace, in every tier, outside and inside two sessions."""
    made: list[Entry] = []
    for session in _SESSIONS:
        for task in (None, "task"):
            tags = ("a",) if task is None else ("a", "b")
            scope = Scope(session_id=session, task_id=task)
            made.extend(
                make_entry(owner=owner, tier=tier, scope=scope, tags=tags)
                for owner in ("ada", "grace")
                for tier in _OWN
            )
            made.append(make_shared(scope=scope, tags=tags))
    return made


def _is_inside(entry: Entry, session: str, within: VisibilityFilter) -> bool:
    """Whether a search inside a session finds an entry; the access is written out here anew."""
    belongs = entry.scope.session_id == session
    if entry.scope.session_id is None:
        belongs = entry.tier not in SESSION_TIERS
    opened = (
        entry.owner in within.owners
        or (entry.owner == "" and entry.namespace in within.namespaces)
        or (entry.tier is Tier.SESSION and entry.owner in within.session_owners)
        or (entry.tier is Tier.WORKING and entry.scope.task_id in within.tasks)
        or (entry.tier is Tier.EPISODIC and entry.owner in within.episodic)
    )
    return belongs and opened


def _meets(entry: Entry, wanted: dict[str, Any]) -> bool:
    """Whether an entry meets those of the conditions that stand above."""
    return (
        entry.tier in wanted.get("tiers", tuple(Tier))
        and wanted.get("agent_id", entry.agent_id) == entry.agent_id
        and wanted.get("namespace", entry.namespace) == entry.namespace
        and wanted.get("session_id", entry.scope.session_id) == entry.scope.session_id
        and wanted.get("task_id", entry.scope.task_id) == entry.scope.task_id
        and set(entry.tags).issuperset(wanted.get("tags", ()))
        and ("tags_any" not in wanted or not set(entry.tags).isdisjoint(wanted["tags_any"]))
    )


class SessionVisibilityConformance(StoreCase):
    """`port.Entries.search` and `count` with `session` in the visibility filter."""

    @pytest.mark.parametrize(
        "opened",
        [
            {"owners": ("ada",)},
            {"owners": ("ada",), "namespaces": ("policies",)},
            {"owners": ("ada",), "session_owners": ("grace",)},
            {"session_owners": ("grace",)},
            {
                "owners": ("ada",),
                "namespaces": ("policies",),
                "session_owners": ("grace",),
                "tasks": ("task",),
                "episodic": ("grace",),
            },
        ],
        ids=["own", "shared", "participant", "only hers", "everything"],
    )
    async def test_search_inside_a_session_finds_what_belongs_to_it(
        self, store: Store, opened: dict[str, Any]
    ) -> None:
        entries = _entries()
        await put(store, *entries)
        for session in ("s1", "s2", "S1", ""):
            within = VisibilityFilter(session=session, **opened)
            inside = [entry for entry in entries if _is_inside(entry, session, within)]
            for conditions in _CONDITIONS:
                found = newest_first(entry for entry in inside if _meets(entry, conditions))
                assert await search(store, within, **conditions) == found, (session, conditions)
            wanted = EntryFilter(tenant=TENANT, limit=2, offset=1)
            page = await search_page(store, wanted, within)
            assert page == (newest_first(inside)[1:3], len(inside))

    async def test_session_ids_compare_by_code_point(self, store: Store) -> None:
        entries = [
            make_entry(tier=Tier.SESSION, scope=Scope(session_id=name), tags=("a",))
            for name in LOOKALIKES
        ]
        await put(store, *entries)
        for entry, name in zip(entries, LOOKALIKES, strict=True):
            within = VisibilityFilter(owners=("ada",), session=name)
            assert await search(store, within) == [entry]
            assert await search(store, within, tags=("a",)) == [entry]
