"""Loads index shards from the store and updates them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.document import AuthorDateFields, is_searchable, is_searched, read
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.read_write_lock import ReadWriteLock
from memorywall.recall.segment_columns import IndexSegment
from memorywall.recall.segments import form_of, load
from memorywall.records.entry import Entry
from memorywall.records.errors import MemorywallError
from memorywall.records.event import EntryChange
from memorywall.records.principal import Maintenance
from memorywall.records.recall import StoredSegment, UseCounts
from memorywall.records.tier import Tier
from memorywall.service.requests.event_log import last_sequence
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect, maintain
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.storage.port import LAST_KEY, Transaction
from memorywall.tiers import NAMESPACE_TIERS

Access = TypeVar("Access")

_log = logging.getLogger("memorywall.recall")
_PAGE = 250
"""Entries per read: a few milliseconds, which delay other requests."""
_CHANGES = 500
_TOO_FAR = 20_000
"""The number of changes from which a new load is faster than an update."""
_MOST_LOOKED_FOR = 2_000
"""The most vectors that one search loads."""
_FEW = 100
"""The number of missing vectors up to which a search looks for them all: those of a write that
waited for the index are stored before their turn."""
_OWNED = tuple(tier for tier in Tier if tier not in NAMESPACE_TIERS)


@dataclass(slots=True)
class TenantIndex:
    """The shards of a tenant.

    position: the `seq` of the last event that the shards contain
    """

    position: int = 0
    lock: ReadWriteLock = field(default_factory=ReadWriteLock)
    shards: dict[str, IndexShard] = field(default_factory=dict)


class _Page(NamedTuple):
    """Entries of an owner, or an index segment, with the vectors and numbers of uses of either.

    after: the position after the page, None at the end
    """

    entries: list[Entry]
    segment: IndexSegment | None
    vectors: dict[str, bytes]
    uses: dict[str, UseCounts]
    after: str | None


class _LogPage(NamedTuple):
    """A page of events after a position, and the end of the log."""

    changes: list[EntryChange]
    entries: list[Entry]
    vectors: dict[str, bytes]
    uses: dict[str, UseCounts]
    end: int


def owner_of(change: EntryChange) -> str:
    """The owner of the entry of a change; "" in a tier that is isolated by namespace."""
    return "" if change.tier in NAMESPACE_TIERS else change.agent_id


class Loader:
    """Loads the shards of one store.

    make: creates an empty shard for an owner and a position
    model: the embedding model of the vectors, None for no vectors
    read_texts: see `Index.read_texts`
    """

    def __init__(
        self,
        service: SharedServices,
        make: Callable[[str, int], IndexShard],
        terms: Analyzer,
        fields: AuthorDateFields,
        model: str | None,
        read_texts: Callable[[Iterable[Entry], Callable[[], None]], Awaitable[None]],
    ) -> None:
        self._services = service
        self._read_texts = read_texts
        self._make = make
        self._terms = terms
        self._fields = fields
        self._model = model
        # Absorbing a segment takes numpy; without it, a shard is loaded entry by entry.
        self._form = "" if find_spec("numpy") is None else form_of(fields)

    async def load(self, tenant: str, owner: str) -> IndexShard:
        """A new shard with the entries of an owner. It may lack changes that are committed during
        the load; the log contains them after the position of the shard."""
        end, size = await self._extent(tenant, owner)
        shard = self._make(owner, end)
        if shard.vectors is not None:
            shard.vectors.reserve(size)
        for tier in _OWNED if owner else NAMESPACE_TIERS:
            after: str | None = ""
            while after is not None:
                page = await self._page(tenant, tier, owner, after, len(shard.documents))
                if page.segment is None:
                    put = partial(self._put, shard, page.entries, page.vectors, page.uses)
                    await self._read_texts(page.entries, put)
                else:
                    shard.absorb(page.segment, page.vectors, page.uses)
                after = page.after
                # Lets other requests run between two pages.
                await asyncio.sleep(0)
        return shard

    async def follow(
        self,
        transactions: OperationTransactions,
        access: Callable[[OperationContext], Awaitable[Access]],
        tenant_index: TenantIndex,
        now: str,
    ) -> Access | None:
        """Updates the shards of a tenant to the committed state, and reads access on the same
        snapshot.

        access: reads the caller's access

        Returns the result of `access` on the snapshot of the shards. Returns None if there are so
        many changes that a new load is faster.
        """

        async def read_changes(context: OperationContext) -> tuple[Access, _LogPage | None]:
            found, position = await access(context), tenant_index.position
            if not tenant_index.shards:
                return found, None
            log_page = await self._read_log(context, position, tenant_index.shards, now)
            return found, log_page

        while True:
            found, log_page = await transactions.read(read_changes)
            if log_page is None:
                return found
            if log_page.end - tenant_index.position > _TOO_FAR:
                return None
            changes = log_page.changes
            if any(one.tier not in NAMESPACE_TIERS and not one.agent_id for one in changes):
                # The content of the event was erased, and with it the owner of the entry.
                return None
            apply = partial(self._apply, tenant_index.shards, log_page)
            await self._read_texts(log_page.entries, apply)
            if len(changes) < _CHANGES:
                tenant_index.position = log_page.end
                return found
            tenant_index.position = changes[-1].seq
            # Lets other requests run between two pages.
            await asyncio.sleep(0)

    def _apply(self, shards: Mapping[str, IndexShard], log_page: _LogPage) -> None:
        """Updates shards by the changes of a page."""
        there = {entry.id: entry for entry in log_page.entries}
        for change in log_page.changes:
            shard = shards.get(owner_of(change))
            # A shard that was loaded later contains some of the changes already.
            if shard is None or change.seq <= shard.position:
                continue
            entry = there.get(change.entry_id)
            if entry is None or not is_searchable(entry):
                shard.drop(change.entry_id)
            elif shard.version(entry.id) != entry.version:
                self._put(shard, (entry,), log_page.vectors, log_page.uses)

    async def uses(self, tenant: str, entry_ids: Collection[str]) -> dict[str, UseCounts]:
        """The numbers of uses of entries, by id."""

        async def script(context: OperationContext) -> dict[str, UseCounts]:
            return await context.transaction.recall.uses(list(entry_ids))

        return await inspect(self._services, tenant, Maintenance.INDEX, script)

    async def find_vectors(self, tenant: str, shard: IndexShard, logged: int) -> None:
        """Loads missing vectors of a shard, if embedding has progressed.

        logged: the `seq` of the last event that the shard contains
        """
        model = self._model
        if model is None or shard.vectors is None or not shard.missing:
            return

        async def read_position(context: OperationContext) -> int:
            return await context.transaction.recall.position(model)

        missing = list(shard.missing)
        if len(missing) <= _FEW:
            for entry_id, vector in (await self._vectors(tenant, model, missing)).items():
                shard.put_vector(entry_id, vector)
            return
        position = await inspect(self._services, tenant, Maintenance.INDEX, read_position)
        if position == shard.looked:
            return
        for start in range(0, len(missing), _PAGE):
            if start >= _MOST_LOOKED_FOR:
                # The next search continues; this one has waited long enough.
                return
            found = await self._vectors(tenant, model, missing[start : start + _PAGE])
            for entry_id, vector in found.items():
                shard.put_vector(entry_id, vector)
            if not found and position < logged:
                # Embedding follows the order of the log, so later entries have no vectors yet.
                break
            # Lets other requests run between two pages.
            await asyncio.sleep(0)
        shard.looked = position

    async def _vectors(self, tenant: str, model: str, entry_ids: list[str]) -> dict[str, bytes]:
        async def script(context: OperationContext) -> dict[str, bytes]:
            return await context.transaction.recall.vectors(model, entry_ids)

        return await inspect(self._services, tenant, Maintenance.INDEX, script)

    async def _extent(self, tenant: str, owner: str) -> tuple[int, int]:
        """Returns the `seq` of the last event, and the number of entries of an agent."""

        async def script(context: OperationContext) -> tuple[int, int]:
            entries, size = context.transaction.entries, 0
            for tier in _OWNED if owner else ():
                size += (await entries.usage(tier, owner, context.now)).entries
            return await last_sequence(context.transaction), size

        return await inspect(self._services, tenant, Maintenance.INDEX, script)

    async def _page(self, tenant: str, tier: Tier, owner: str, after: str, size: int) -> _Page:
        """The entries up to the next segment; the segment if there are none. A segment that does
        not fit is dropped, and the page has its entries instead."""
        damaged: list[StoredSegment] = []

        async def script(context: OperationContext) -> _Page:
            stored = None
            if self._form:
                recall = context.transaction.recall
                stored = await recall.next_segment(tier, owner, self._form, after)
            page = await self._entries(context, tier, owner, after, stored)
            if page.entries or stored is None:
                return page
            try:
                segment = load(stored, size)
            except ValueError:
                damaged.append(stored)
                return await self._entries(context, tier, owner, after, None)
            if segment is None:
                return _Page([], None, {}, {}, stored.last)
            marks = await self._marks(context.transaction, segment.ids)
            return _Page([], segment, *marks, stored.last)

        page = await inspect(self._services, tenant, Maintenance.INDEX, script)
        for segment in damaged:
            await self._drop(tenant, tier, owner, segment)
        return page

    async def _entries(
        self,
        context: OperationContext,
        tier: Tier,
        owner: str,
        after: str,
        stored: StoredSegment | None,
    ) -> _Page:
        """The page of entries before a segment, or before the end."""
        end = LAST_KEY if stored is None else stored.first
        page = await context.transaction.entries.of_owner(tier, owner, _PAGE, after, end)
        is_last = stored is None and len(page) < _PAGE
        ids = [entry.id for entry in page]
        marks = await self._marks(context.transaction, ids)
        return _Page(page, None, *marks, None if is_last else ids[-1] if ids else after)

    async def _drop(self, tenant: str, tier: Tier, owner: str, damaged: StoredSegment) -> None:
        """Removes a segment that does not fit, which the job writes anew. The search goes on if the
        store takes no writes."""
        _log.error(
            "an index segment of the tenant %s is damaged (%s to %s); its entries are read instead",
            tenant,
            damaged.first,
            damaged.last,
        )

        async def script(context: OperationContext) -> None:
            await context.transaction.recall.remove_segments(
                tier, owner, damaged.first, damaged.last
            )

        with suppress(MemorywallError):
            await maintain(self._services, tenant, Maintenance.INDEX, script)

    async def _read_log(
        self, context: OperationContext, low: int, shards: Mapping[str, IndexShard], now: str
    ) -> _LogPage:
        changes, end = await context.transaction.events.list_of_entries(low, _CHANGES)
        ids = {
            change.entry_id
            for change in changes
            if not change.ended and owner_of(change) in shards and is_searched(change.kind)
        }
        entries = await context.transaction.entries.get_many(ids, now) if ids else []
        marks = await self._marks(context.transaction, [entry.id for entry in entries])
        return _LogPage(changes, entries, *marks, end)

    async def _marks(
        self, transaction: Transaction, ids: Collection[str]
    ) -> tuple[dict[str, bytes], dict[str, UseCounts]]:
        """The vectors and the numbers of uses of entries."""
        vectors: dict[str, bytes] = {}
        if ids and self._model is not None:
            vectors = await transaction.recall.vectors(self._model, ids)
        return vectors, await transaction.recall.uses(ids) if ids else {}

    def _put(
        self,
        shard: IndexShard,
        entries: Iterable[Entry],
        vectors: Mapping[str, bytes],
        uses: Mapping[str, UseCounts],
    ) -> None:
        for entry in entries:
            if not is_searchable(entry):
                continue
            document, text = read(entry, self._fields)
            shard.put(document, text, self._terms)
            if (vector := vectors.get(entry.id)) is not None:
                shard.put_vector(entry.id, vector)
            if (used := uses.get(entry.id)) is not None:
                shard.set_uses({entry.id: used})
