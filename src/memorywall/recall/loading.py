"""Reads slices from the store and keeps them current."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memorywall.recall.document import Fields, is_searchable, read
from memorywall.recall.gate import Gate
from memorywall.recall.slice import Slice
from memorywall.recall.terms import Terms
from memorywall.records.entry import Entry
from memorywall.records.event import EntryChange
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from memorywall.tiers import NAMESPACE_TIERS
from memorywall.wall.door import Door
from memorywall.wall.log import end_of_log

_PAGE = 250
"""Entries read at once: a few milliseconds, in which nobody else is served."""
_CHANGES = 500
_TOO_FAR = 20_000
"""So many changes behind, a slice is sooner read anew."""
_MOST_LOOKED_FOR = 2_000
"""Vectors that one search waits for."""
_OWNED = tuple(tier for tier in Tier if tier not in NAMESPACE_TIERS)


@dataclass(slots=True)
class Held:
    """What is held of a tenant.

    position: up to which `seq` of the log the slices show what happened
    """

    position: int = 0
    gate: Gate = field(default_factory=Gate)
    slices: dict[str, Slice] = field(default_factory=dict)


class _Page(NamedTuple):
    entries: list[Entry]
    vectors: dict[str, bytes]
    uses: dict[str, int]


class _News(NamedTuple):
    """What was logged since a position, up to a page of it, and where the log ends."""

    changes: list[EntryChange]
    entries: list[Entry]
    vectors: dict[str, bytes]
    uses: dict[str, int]
    end: int


def owner_of(change: EntryChange) -> str:
    """The owner of the entry that a change is about."""
    return "" if change.tier in NAMESPACE_TIERS else change.agent_id


class Loader:
    """Over one door. `make` gives a new slice, empty, of an owner from a position on; vectors are
    those of `model`."""

    def __init__(
        self,
        door: Door,
        make: Callable[[str, int], Slice],
        terms: Terms,
        fields: Fields,
        model: str | None,
    ) -> None:
        self._door = door
        self._make = make
        self._terms = terms
        self._fields = fields
        self._model = model

    async def load(self, tenant: str, owner: str) -> Slice:
        """A new slice with everything of an owner. What is committed while it is read may be
        missing or not: the log has it after the slice's position."""
        slice_ = self._make(owner, await self._end(tenant))
        for tier in _OWNED if owner else NAMESPACE_TIERS:
            after = ""
            while True:
                page = await self._page(tenant, tier, owner, after)
                self._put(slice_, page.entries, page.vectors, page.uses)
                if len(page.entries) < _PAGE:
                    break
                after = page.entries[-1].id
                # Others have waited since the page began.
                await asyncio.sleep(0)
        return slice_

    async def follow(self, tenant: str, held: Held, now: str) -> bool:
        """Brings what is held of a tenant up to what is committed. False, and it is of no use any
        more, when so much has happened that it is sooner read anew."""
        while held.slices:
            news = await self._news(tenant, held.position, held.slices, now)
            if news.end - held.position > _TOO_FAR:
                return False
            there = {entry.id: entry for entry in news.entries}
            for change in news.changes:
                slice_ = held.slices.get(owner_of(change))
                # One that was read later shows some of this already.
                if slice_ is None or change.seq <= slice_.position:
                    continue
                entry = there.get(change.entry_id)
                if entry is None or not is_searchable(entry):
                    slice_.drop(change.entry_id)
                elif slice_.version(entry.id) != entry.version:
                    self._put(slice_, (entry,), news.vectors, news.uses)
            if len(news.changes) < _CHANGES:
                held.position = news.end
                break
            held.position = news.changes[-1].seq
        return True

    async def uses(self, tenant: str, entry_ids: Collection[str]) -> dict[str, int]:
        """How often entries were used."""

        async def script(transaction: Transaction) -> dict[str, int]:
            return await transaction.recall.uses(tenant, list(entry_ids))

        return await self._door.store.read(tenant, script)

    async def find_vectors(self, tenant: str, slice_: Slice, logged: int) -> None:
        """Looks for the vectors that a slice does not have, where embedding has gone on.

        logged: how far the slice shows the log
        """
        model = self._model
        if model is None or slice_.vectors is None or not slice_.missing:
            return

        async def look(transaction: Transaction) -> int:
            return await transaction.recall.position(tenant, model)

        position = await self._door.store.read(tenant, look)
        if position == slice_.looked:
            return
        missing = list(slice_.missing)
        for start in range(0, len(missing), _PAGE):
            if start >= _MOST_LOOKED_FOR:
                # The next search goes on; this one has waited long enough.
                return
            found = await self._vectors(tenant, model, missing[start : start + _PAGE])
            for entry_id, vector in found.items():
                slice_.put_vector(entry_id, vector)
            if not found and position < logged:
                # Embedding goes in the order of the log, so it has not come further than this.
                break
        slice_.looked = position

    async def _vectors(self, tenant: str, model: str, entry_ids: list[str]) -> dict[str, bytes]:
        async def script(transaction: Transaction) -> dict[str, bytes]:
            return await transaction.recall.vectors(tenant, model, entry_ids)

        return await self._door.store.read(tenant, script)

    async def _end(self, tenant: str) -> int:
        async def script(transaction: Transaction) -> int:
            return await end_of_log(transaction, tenant)

        return await self._door.store.read(tenant, script)

    async def _page(self, tenant: str, tier: Tier, owner: str, after: str) -> _Page:
        async def script(transaction: Transaction) -> _Page:
            entries = await transaction.entries.of_owner(tenant, tier, owner, _PAGE, after)
            return _Page(entries, *await self._marks(transaction, tenant, entries))

        return await self._door.store.read(tenant, script)

    async def _news(self, tenant: str, low: int, slices: Mapping[str, Slice], now: str) -> _News:
        async def script(transaction: Transaction) -> _News:
            changes = await transaction.events.list_of_entries(tenant, low, _CHANGES)
            ids = {
                change.entry_id
                for change in changes
                if not change.ended and owner_of(change) in slices
            }
            entries = await transaction.entries.get_many(tenant, ids, now) if ids else []
            marks = await self._marks(transaction, tenant, entries)
            return _News(changes, entries, *marks, await end_of_log(transaction, tenant))

        return await self._door.store.read(tenant, script)

    async def _marks(
        self, transaction: Transaction, tenant: str, entries: Iterable[Entry]
    ) -> tuple[dict[str, bytes], dict[str, int]]:
        """The vectors and the uses of entries."""
        ids = [entry.id for entry in entries]
        vectors: dict[str, bytes] = {}
        if ids and self._model is not None:
            vectors = await transaction.recall.vectors(tenant, self._model, ids)
        return vectors, await transaction.recall.uses(tenant, ids) if ids else {}

    def _put(
        self,
        slice_: Slice,
        entries: Iterable[Entry],
        vectors: Mapping[str, bytes],
        uses: Mapping[str, int],
    ) -> None:
        for entry in entries:
            if not is_searchable(entry):
                continue
            document, text = read(entry, self._fields)
            slice_.put(document, text, self._terms)
            if (vector := vectors.get(entry.id)) is not None:
                slice_.put_vector(entry.id, vector)
            if (used := uses.get(entry.id)) is not None:
                slice_.set_uses({entry.id: used})
