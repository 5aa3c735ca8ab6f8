"""Reads slices from the store and keeps them current."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from memorywall.recall.document import Fields, is_searchable, read
from memorywall.recall.slice import Slice
from memorywall.recall.terms import Terms
from memorywall.records.entry import Entry
from memorywall.records.event import EntryChange
from memorywall.records.tier import Isolation, Tier
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS
from memorywall.wall.door import Door

_PAGE = 250
"""Entries read at once: a few milliseconds, in which nobody else is served."""
_CHANGES = 500
_MOST_LOOKED_FOR = 2_000
"""Vectors that one search waits for."""
_SHARED = tuple(tier for tier in Tier if TIERS[tier].isolation is Isolation.NAMESPACE)
_OWNED = tuple(tier for tier in Tier if tier not in _SHARED)


class _Page(NamedTuple):
    entries: list[Entry]
    vectors: dict[str, bytes]
    uses: dict[str, int]


class _News(NamedTuple):
    changes: list[EntryChange]
    entries: list[Entry]
    vectors: dict[str, bytes]
    uses: dict[str, int]
    position: int


def owner_of(change: EntryChange) -> str:
    """The owner of the entry that a change is about."""
    return "" if change.tier in _SHARED else change.agent_id


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
        slice_ = self._make(owner, await self.latest(tenant))
        for tier in _OWNED if owner else _SHARED:
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

    async def follow(
        self, tenant: str, slices: Mapping[str, Slice], position: int, now: str
    ) -> int:
        """Brings slices of a tenant, which show what happened up to a position, up to what is
        committed; returns the new position."""
        while True:
            news = await self._news(tenant, position, slices, now)
            there = {entry.id: entry for entry in news.entries}
            for change in news.changes:
                slice_ = slices.get(owner_of(change))
                # One that was read later shows some of this already.
                if slice_ is None or change.seq <= slice_.position:
                    continue
                entry = there.get(change.entry_id)
                if entry is None or not is_searchable(entry):
                    slice_.drop(change.entry_id)
                elif slice_.version(entry.id) != entry.version:
                    self._put(slice_, (entry,), news.vectors, news.uses)
            position = news.position
            if len(news.changes) < _CHANGES:
                return position

    async def uses(self, tenant: str, entry_ids: Collection[str]) -> dict[str, int]:
        """How often entries were used."""

        async def script(transaction: Transaction) -> dict[str, int]:
            return await transaction.recall.uses(tenant, list(entry_ids))

        return await self._door.store.read(tenant, script)

    async def behind(self, tenant: str, position: int) -> int:
        """How much has been logged since a position."""
        return await self.latest(tenant) - position

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

    async def latest(self, tenant: str) -> int:
        async def script(transaction: Transaction) -> int:
            event = await transaction.events.latest(tenant)
            return 0 if event is None else event.seq

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
            position = changes[-1].seq if changes else low
            if len(changes) < _CHANGES:
                latest = await transaction.events.latest(tenant)
                position = low if latest is None else latest.seq
            marks = await self._marks(transaction, tenant, entries)
            return _News(changes, entries, *marks, position)

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
