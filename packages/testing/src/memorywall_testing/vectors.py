"""Vectors of entries, each kept under its model."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.recall import UseCounts
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    NOW,
    TENANT,
    StoreCase,
    UndoError,
    at,
    make_entry,
    put,
    remove,
    replace,
    undone,
)
from memorywall_testing.embedding import (
    MODEL,
    OTHER,
    add_uses,
    position_of,
    put_some,
    put_vectors,
    remove_others,
    uses_of,
    vector_of,
    vectors_of,
)
from memorywall_testing.names import LOOKALIKES


def _changed(entry: Entry, **fields: Any) -> Entry:
    return msgspec.structs.replace(entry, version=entry.version + 1, **fields)


def _by_id(entries: Iterable[Entry], content: bytes) -> dict[str, bytes]:
    return {entry.id: content for entry in entries}


_OTHER_CONTENT: dict[str, dict[str, Any]] = {
    "value": {"value": b"[2]", "size": 3},
    "value of the same size": {"value": b'{"number":-}'},
    "to public": {"sensitivity": "public"},
    "to confidential": {"sensitivity": "confidential"},
    "sealed": {"sensitivity": "restricted", "sealing_key": "dek_1", "value": b"sealed"},
}
_SAME_CONTENT: dict[str, dict[str, Any]] = {
    "tags": {"tags": ("other",)},
    "lifetime": {"ttl": "duration:PT1M", "expires_at": at(60)},
    "pinned": {"pinned": True, "priority": "high"},
    "nothing": {},
}


class VectorsConformance(StoreCase):
    """The obligations of `RecallRepository` about vectors."""

    async def test_nothing_is_kept_at_first(self, store: Store) -> None:
        (entry,) = await put_some(store, 1)
        assert await vectors_of(store, entry) == {}
        assert await vectors_of(store) == {}
        assert await uses_of(store, entry) == await uses_of(store) == {}
        assert await position_of(store) == 0
        assert await remove_others(store, 9) == 0
        await put_vectors(store)
        await add_uses(store, {})

    # Vectors

    async def test_a_vector_comes_back_byte_for_byte(self, store: Store) -> None:
        entries = await put_some(store, 5)
        contents = [b"", b"\0", bytes(range(256)), b"\xff" * 2_048, b"x" * 70_000]
        pairs = list(zip(entries, contents, strict=True))
        await put_vectors(store, *(vector_of(entry, content) for entry, content in pairs))
        kept = {entry.id: content for entry, content in pairs}
        assert await vectors_of(store, *entries) == kept
        assert {type(content) for content in kept.values()} == {bytes}
        assert await vectors_of(store, entries[2]) == {entries[2].id: contents[2]}
        assert await vectors_of(store, make_entry(), entries[1], entries[1]) == {
            entries[1].id: contents[1]
        }
        assert await vectors_of(store) == {}

    async def test_vector_replaces_the_previous_one(self, store: Store) -> None:
        one, two = await put_some(store, 2)
        await put_vectors(store, vector_of(one, b"before"), vector_of(two, b"kept"))
        await put_vectors(store, vector_of(one, b"first"), vector_of(one, b"after"))
        assert await vectors_of(store, one, two) == {one.id: b"after", two.id: b"kept"}

    async def test_many_are_put_and_read_at_once(self, store: Store) -> None:
        entries = await put_some(store, 1_500)
        await put_vectors(store, *(vector_of(one, one.id.encode()) for one in entries[:-1]))
        assert await vectors_of(store, *entries) == {
            one.id: one.id.encode() for one in entries[:-1]
        }

    async def test_removed_or_changed_entry_is_ignored(self, store: Store) -> None:
        there, gone, changed, ahead = await put_some(store, 4)
        await remove(store, gone)
        await replace(store, changed, _changed(changed, value=b"2", size=1))
        await put_vectors(
            store,
            vector_of(gone),
            vector_of(make_entry()),
            vector_of(changed, b"of what it was"),
            vector_of(ahead, version=2),
            vector_of(there, b"kept"),
        )
        everything = (there, gone, changed, ahead)
        assert await vectors_of(store, *everything) == {there.id: b"kept"}
        await put_vectors(
            store, vector_of(changed, b"of what it is", 2), vector_of(changed, b"was", 1)
        )
        assert (await vectors_of(store, *everything))[changed.id] == b"of what it is"

    async def test_sealed_entry_is_ignored(self, store: Store) -> None:
        shown = [make_entry(sensitivity=level) for level in ("public", "internal")]
        hidden = [
            *(make_entry(sensitivity=level) for level in ("confidential", "restricted")),
            make_entry(sealing_key="dek_1"),
        ]
        await put(store, *shown, *hidden)
        await put_vectors(store, *(vector_of(one, b"v") for one in (*shown, *hidden)))
        assert await vectors_of(store, *shown, *hidden) == _by_id(shown, b"v")

    async def test_models_never_mix(self, store: Store) -> None:
        entries = await put_some(store, len(LOOKALIKES))
        for model in LOOKALIKES:
            await put_vectors(
                store, *(vector_of(one, model.encode()) for one in entries[:2]), model=model
            )
        for model in LOOKALIKES:
            found = await vectors_of(store, *entries, model=model)
            assert found == _by_id(entries[:2], model.encode())
        assert await vectors_of(store, *entries) == {}

    async def test_vectors_of_tenants_never_meet(self, store: Store) -> None:
        mine, theirs = make_entry(id="mem_1"), make_entry(id="mem_1", tenant="globex")
        only = make_entry(id="mem_2", tenant="globex")
        await put(store, mine, theirs, only)
        # Of what another tenant has there is nothing to be kept here.
        await put_vectors(store, vector_of(mine, b"mine"), vector_of(only))
        assert await vectors_of(store, mine, only) == {mine.id: b"mine"}
        assert await vectors_of(store, mine, tenant="globex") == {}
        await put_vectors(store, vector_of(theirs, b"theirs"), tenant="globex")
        assert await vectors_of(store, mine) == {mine.id: b"mine"}
        await remove(store, theirs)
        assert await vectors_of(store, mine) == {mine.id: b"mine"}
        assert await vectors_of(store, theirs, tenant="globex") == {}

    async def test_vectors_and_uses_go_with_their_entry(self, store: Store) -> None:
        gone, there = await put_some(store, 2)
        for model in (MODEL, OTHER):
            await put_vectors(store, vector_of(gone), vector_of(there, b"kept"), model=model)
        await add_uses(store, {gone.id: 3, there.id: 4})

        async def given_up(to: Transaction) -> None:
            await to.entries.remove(gone)
            assert await to.recall.vectors(MODEL, [gone.id]) == {}
            assert await to.recall.uses([gone.id]) == {}
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, given_up)
        assert set(await vectors_of(store, gone, there)) == {gone.id, there.id}
        await remove(store, gone)
        # Another with the same id finds nothing of it either.
        await put(store, gone)
        for model in (MODEL, OTHER):
            assert await vectors_of(store, gone, there, model=model) == {there.id: b"kept"}
        assert await uses_of(store, gone, there) == {there.id: 4}

    @pytest.mark.parametrize("change", _OTHER_CONTENT)
    async def test_vectors_are_removed_with_their_entries(self, store: Store, change: str) -> None:
        entry, other = await put_some(store, 2, value=b'{"number":0}')
        for model in (MODEL, OTHER):
            await put_vectors(store, vector_of(entry), vector_of(other, b"kept"), model=model)
        await add_uses(store, {entry.id: 3})
        await replace(store, entry, _changed(entry, **_OTHER_CONTENT[change]))
        for model in (MODEL, OTHER):
            assert await vectors_of(store, entry, other, model=model) == {other.id: b"kept"}
        assert await uses_of(store, entry) == {entry.id: 3}

    @pytest.mark.parametrize("change", _SAME_CONTENT)
    async def test_vectors_stay_when_something_else_changes(
        self, store: Store, change: str
    ) -> None:
        (entry,) = await put_some(store, 1)
        await put_vectors(store, vector_of(entry, b"kept"))
        changed = _changed(entry, **_SAME_CONTENT[change])
        await replace(store, entry, changed)
        assert await vectors_of(store, entry) == {entry.id: b"kept"}
        await put_vectors(store, vector_of(changed, b"again"))
        assert await vectors_of(store, entry) == {entry.id: b"again"}

    async def test_a_change_that_a_neighbour_undoes_costs_no_vector(self, store: Store) -> None:
        """Scripts that share a commit, some of which are undone after what they changed."""
        entries = await put_some(store, 12)
        await put_vectors(store, *(vector_of(one, b"kept") for one in entries))

        async def change(to: Transaction, place: int) -> None:
            entry = entries[place]
            assert await to.entries.get(entry.id, NOW) == entry
            await to.entries.replace(entry, _changed(entry, value=b"2", size=1))
            if place % 3:
                raise UndoError

        writes = (
            store.write(TENANT, lambda to, place=place: change(to, place))  # type: ignore[misc]
            for place in range(len(entries))
        )
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert undone(outcomes) == [place % 3 > 0 for place in range(len(entries))]
        there = [one for place, one in enumerate(entries) if place % 3]
        assert await vectors_of(store, *entries) == _by_id(there, b"kept")

    async def test_transaction_reads_its_own_changes(self, store: Store) -> None:
        entry, changed = make_entry(), make_entry()
        await put(store, changed)
        await put_vectors(store, vector_of(changed))
        ids = [entry.id, changed.id]

        async def script(to: Transaction) -> None:
            assert await to.entries.insert(entry, NOW)
            await to.recall.put_vectors(MODEL, [vector_of(entry, b"new")])
            await to.recall.add_uses({entry.id: 1})
            assert len(await to.recall.vectors(MODEL, ids)) == 2
            await to.entries.replace(changed, _changed(changed, value=b"2", size=1))
            assert await to.recall.vectors(MODEL, ids) == {entry.id: b"new"}
            await to.recall.put_vectors(MODEL, [vector_of(changed, b"again", 2)])
            await to.recall.add_uses({entry.id: 1, changed.id: 5})
            assert await to.recall.uses(ids) == {entry.id: UseCounts(2), changed.id: UseCounts(5)}
            await to.entries.remove(entry)
            assert await to.recall.uses(ids) == {changed.id: UseCounts(5)}

        await store.write(TENANT, script)
        assert await vectors_of(store, entry, changed) == {changed.id: b"again"}
