"""Filters by tags: all of them, any of them, with several owners."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import itertools

import pytest

from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.storage.port import Store
from memorywall_testing.base import (
    TENANT,
    StoreCase,
    get,
    make_entry,
    make_shared,
    newest_first,
    put,
    remove,
    search,
    search_page,
    visibility,
)
from memorywall_testing.names import LOOKALIKES

_TAGS = ("red", "green", "blue")


def _every_combination() -> list[Entry]:
    """One entry for every subset of the tags."""
    return [
        make_entry(tags=tags)
        for size in range(len(_TAGS) + 1)
        for tags in itertools.combinations(_TAGS, size)
    ]


class TagsConformance(StoreCase):
    """The conditions `tags` and `tags_any` of a search."""

    async def test_all_of_the_tags_and_any_of_the_tags(self, store: Store) -> None:
        entries = _every_combination()
        await put(store, *entries)
        chosen = [
            subset
            for size in range(len(_TAGS) + 1)
            for subset in itertools.permutations((*_TAGS, "none"), size)
        ]
        for tags in chosen:
            all_of = [entry for entry in entries if set(tags) <= set(entry.tags)]
            assert await search(store, tags=tags) == newest_first(all_of), tags
            any_of = [entry for entry in entries if not tags or set(tags) & set(entry.tags)]
            assert await search(store, tags_any=tags) == newest_first(any_of), tags

    async def test_both_conditions_hold_together(self, store: Store) -> None:
        entries = _every_combination()
        await put(store, *entries)
        found = await search(store, tags=("red",), tags_any=("green", "blue"))
        expected = [
            entry for entry in entries if "red" in entry.tags and {"green", "blue"} & {*entry.tags}
        ]
        assert found == newest_first(expected)
        assert await search(store, tags=("none",), tags_any=("red",)) == []
        assert await search(store, tags=("red",), tags_any=("none",)) == []

    async def test_a_tag_asked_for_twice_counts_once(self, store: Store) -> None:
        entries = _every_combination()
        await put(store, *entries)
        assert await search(store, tags=("red", "red")) == await search(store, tags=("red",))
        assert await search(store, tags=("red", "blue", "red", "blue")) == await search(
            store, tags=("red", "blue")
        )
        assert await search(store, tags_any=("red", "red")) == await search(
            store, tags_any=("red",)
        )

    async def test_an_entry_with_several_of_the_tags_is_listed_once(self, store: Store) -> None:
        entry = make_entry(tags=_TAGS)
        await put(store, entry)
        assert await search_page(store, EntryFilter(tenant=TENANT, tags_any=_TAGS, limit=1)) == (
            [entry],
            1,
        )

    async def test_tags_keep_their_order(self, store: Store) -> None:
        entry = make_entry(tags=("z", "a", "m"))
        await put(store, entry)
        read = await get(store, entry)
        assert read is not None
        assert read.tags == ("z", "a", "m")

    async def test_tags_compare_by_code_point(self, store: Store) -> None:
        entries = [make_entry(tags=(name,)) for name in LOOKALIKES]
        everything = make_entry(tags=LOOKALIKES)
        await put(store, *entries, everything)
        for place, name in enumerate(LOOKALIKES):
            both = [everything, entries[place]]
            assert await search(store, tags=(name,)) == both
            assert await search(store, tags_any=(name,)) == both
        assert await search(store, tags=LOOKALIKES) == [everything]

    @pytest.mark.parametrize("size", [1, 4, 5, 64])
    async def test_any_number_of_tags(self, store: Store, size: int) -> None:
        names = tuple(f"tag-{number:02d}" for number in range(size))
        everything = make_entry(tags=names)
        single = [make_entry(tags=(name,)) for name in names]
        none = make_entry(tags=("other",))
        await put(store, everything, *single, none)
        expected = newest_first({entry.id: entry for entry in (everything, *single)}.values())
        assert await search(store, tags_any=names) == expected
        all_of = [entry for entry in expected if set(names) <= set(entry.tags)]
        assert await search(store, tags=names) == all_of

    async def test_a_tag_of_others_finds_nothing_of_theirs(self, store: Store) -> None:
        mine = make_entry(tags=("red", "blue"))
        hers = [make_entry(owner="grace", tags=("red", "blue")) for _ in range(5)]
        shared = make_shared("policies", tags=("red", "blue"))
        hidden = make_shared("secrets", tags=("red", "blue"))
        foreign = make_entry(tenant="globex", tags=("red", "blue"))
        await put(store, mine, *hers, shared, hidden, foreign)
        within = visibility("ada", namespaces=["policies"])
        for conditions in (
            {"tags": ("red",)},
            {"tags": ("blue", "red")},
            {"tags_any": ("red", "blue")},
            {"tags": ("red",), "tags_any": ("blue",)},
        ):
            assert await search(store, **conditions) == [mine]
            assert await search(store, within, **conditions) == [shared, mine]

    async def test_common_and_rare_tags_together(self, store: Store) -> None:
        entries = [
            make_entry(tags=("common", f"tenth-{number % 10}", *(["rare"] * (number == 150))))
            for number in range(400)
        ]
        await put(store, *entries)
        for tags in (
            ("common",),
            ("common", "tenth-3"),
            ("tenth-3", "common"),
            ("common", "rare"),
            ("rare", "tenth-0", "common"),
            ("rare", "tenth-1"),
            ("tenth-1", "tenth-2"),
        ):
            expected = newest_first(e for e in entries if set(tags) <= set(e.tags))
            assert await search(store, tags=tags) == expected
            page, total = await search_page(
                store, EntryFilter(tenant=TENANT, tags=tags, limit=3, offset=1)
            )
            assert (page, total) == (expected[1:4], len(expected)), tags

    async def test_a_removed_entry_leaves_its_tags_to_the_others(self, store: Store) -> None:
        first, second = make_entry(tags=("red", "blue")), make_entry(tags=("red",))
        await put(store, first, second)
        await remove(store, first)
        assert await search(store, tags=("red",)) == [second]
        assert await search(store, tags=("blue",)) == []
