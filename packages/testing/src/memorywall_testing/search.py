"""Search: every field of a rendered page, and several searches at once."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from typing import Any

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import PRIORITY_RANK, Provenance, Scope, Source
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
    newest_first,
    put,
    search,
    visibility,
)


class SearchConformance(StoreCase):
    """`port.Entries.search_rendered` and `search_each`; `filters.py` has the conditions."""

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
