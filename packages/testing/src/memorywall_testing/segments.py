"""Index segments, which are removed with the first change of their entries."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.recall import StoredSegment
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    make_entry,
    make_shared,
    put,
    remove,
    replace,
)

_FORM = "1"
_CONTENT = b"\x00content\xff" * 300


def _segment(
    entries: Sequence[Entry], form: str = _FORM, content: bytes = _CONTENT
) -> StoredSegment:
    return StoredSegment(entries[0].id, entries[-1].id, form, content)


async def _put(
    store: Store, entries: Sequence[Entry], form: str = _FORM, content: bytes = _CONTENT
) -> bool:
    one, segment = entries[0], _segment(entries, form, content)
    versions = {entry.id: entry.version for entry in entries}
    return await store.write(
        one.tenant, lambda to: to.recall.put_segment(one.tier, one.owner, segment, versions)
    )


async def _segments(
    store: Store,
    owner: str = AGENT,
    tier: Tier = Tier.WORKING,
    form: str = _FORM,
    tenant: str = TENANT,
) -> list[StoredSegment]:
    found: list[StoredSegment] = []

    async def following(to: Transaction) -> StoredSegment | None:
        return await to.recall.next_segment(tier, owner, form, found[-1].last if found else "")

    while one := await store.read(tenant, following):
        found.append(one)
    return found


async def _three_segments(store: Store) -> list[Entry]:
    """Nine entries in three segments."""
    entries = [make_entry() for _ in range(9)]
    await put(store, *entries)
    for start in (0, 3, 6):
        assert await _put(store, entries[start : start + 3])
    return entries


_CHANGES: dict[str, dict[str, Any]] = {
    "value": {"value": b"[2]", "size": 3},
    "sealed": {"sensitivity": "restricted", "sealing_key": "dek_1", "value": b"sealed"},
    "tags": {"tags": ("other",)},
    "nothing": {},
}


class SegmentsConformance(StoreCase):
    """The obligations of `RecallRepository` about index segments."""

    async def test_segments_are_read_in_the_order_of_their_ids(self, store: Store) -> None:
        entries = await _three_segments(store)
        expected = [_segment(entries[start : start + 3]) for start in (0, 3, 6)]
        assert await _segments(store) == expected
        assert await _segments(store, owner="grace") == []
        assert await _segments(store, tier=Tier.EPISODIC) == []
        assert await _segments(store, form="2") == []
        assert await _segments(store, tenant="globex") == []

    @pytest.mark.parametrize("place", [0, 4, 8])
    @pytest.mark.parametrize("change", _CHANGES)
    async def test_a_changed_entry_takes_its_segment_along(
        self, store: Store, change: str, place: int
    ) -> None:
        entries = await _three_segments(store)
        before, old = await _segments(store), entries[place]
        new = msgspec.structs.replace(old, version=2, **_CHANGES[change])
        await replace(store, old, new)
        del before[place // 3]
        assert await _segments(store) == before

    @pytest.mark.parametrize("place", [0, 4, 8])
    async def test_a_removed_entry_takes_its_segment_along(self, store: Store, place: int) -> None:
        entries = await _three_segments(store)
        before = await _segments(store)
        await remove(store, entries[place])
        del before[place // 3]
        assert await _segments(store) == before

    async def test_other_entries_leave_segments_alone(self, store: Store) -> None:
        others = [make_entry(id="mem_!", owner="grace"), make_entry(tier=Tier.EPISODIC)]
        shared = make_shared(id="mem_\x7e")
        await put(store, *others)
        entries = await _three_segments(store)
        later = make_entry()
        await put(store, later, shared)
        before = await _segments(store)
        await replace(store, others[0], msgspec.structs.replace(others[0], version=2))
        await remove(store, others[1], later, shared)
        assert await _segments(store) == before
        assert len(before) == len(entries) / 3

    async def test_a_change_that_is_undone_leaves_the_segment(self, store: Store) -> None:
        entries = await _three_segments(store)

        async def script(to: Transaction) -> None:
            await to.entries.remove(entries[1])
            left = await to.recall.next_segment(Tier.WORKING, AGENT, _FORM, "")
            assert left == _segment(entries[3:6])
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, script)
        assert len(await _segments(store)) == 3

    async def test_a_segment_of_other_entries_than_those_in_its_range_is_refused(
        self, store: Store
    ) -> None:
        entries = [make_entry() for _ in range(4)]
        await put(store, *entries)
        changed = msgspec.structs.replace(entries[1], version=2)
        assert not await _put(store, [entries[0], entries[2]])
        assert not await _put(store, [entries[0], changed, entries[2]])
        assert not await _put(store, [*entries[:2], make_entry(id=entries[2].id + "!"), entries[3]])
        assert not await _put(store, [msgspec.structs.replace(one, owner="eve") for one in entries])
        assert await _segments(store) == []
        await replace(store, entries[1], changed)
        assert await _put(store, [entries[0], changed, entries[2]])

    async def test_a_segment_in_whose_range_an_entry_is_added_is_omitted(
        self, store: Store
    ) -> None:
        entries = await _three_segments(store)
        before = await _segments(store)
        added = make_entry(id=entries[3].id + "!")
        await put(store, added)
        assert await _segments(store) == [before[0], before[2]]
        assert await _put(store, [entries[3], added, *entries[4:6]])
        assert len(await _segments(store)) == 3

    async def test_a_new_segment_takes_the_place_of_those_it_overlaps(self, store: Store) -> None:
        entries = await _three_segments(store)
        assert await _put(store, entries[1:7], "2", b"other")
        assert await _segments(store) == []
        assert await _segments(store, form="2") == [_segment(entries[1:7], "2", b"other")]
        assert await _put(store, entries)
        assert await _segments(store, form="2") == []

    async def test_owners_with_entries_outside_of_segments_are_listed(self, store: Store) -> None:
        async def without(
            least: int, form: str = _FORM, after: tuple[str, str] = ("", "")
        ) -> tuple[str, Tier] | None:
            return await store.read(
                TENANT, lambda to: to.recall.without_segment(form, least, after)
            )

        assert await without(1) is None
        entries = await _three_segments(store)
        shared = [make_shared(), make_shared(listed=False)]
        await put(store, *shared, make_entry(tenant="globex"))
        assert await without(1) == ("", shared[0].tier)
        assert await without(2) is None
        assert await without(1, after=("", shared[0].tier.value)) is None
        assert await without(9, form="2") == (AGENT, Tier.WORKING)
        await remove(store, entries[0])
        assert await without(2) == (AGENT, Tier.WORKING)
        assert await without(3) is None
        assert await store.read(TENANT, lambda to: to.entries.get(entries[1].id, NOW)) == entries[1]

    async def test_entries_of_an_owner_are_read_up_to_an_id(self, store: Store) -> None:
        entries = [make_entry() for _ in range(5)]
        await put(store, *entries)
        found = await store.read(
            TENANT,
            lambda to: to.entries.of_owner(
                Tier.WORKING, AGENT, 9, entries[0].id, before=entries[3].id
            ),
        )
        assert found == entries[1:3]
