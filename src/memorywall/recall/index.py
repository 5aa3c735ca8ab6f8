"""The search index in memory, and its updates.

The first search of a shard loads it from the store. Later searches read the new events of the
tenant's log, in the transaction that also reads the caller's access. A search therefore sees all
earlier commits of all processes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

from memorywall.recall.analyzer import Analyzer
from memorywall.recall.candidates import Score
from memorywall.recall.document import AuthorDateFields
from memorywall.recall.embedders.protocol import Embedder
from memorywall.recall.embedding_lag import embedding_lag
from memorywall.recall.filtering import ShardFilter
from memorywall.recall.findable import make_findable
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.loading import Loader, TenantIndex
from memorywall.recall.ranking import GiveWay, go_on
from memorywall.recall.visibility import load_shard_filters
from memorywall.recall.weights import DEFAULT_WEIGHTS, Weights
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Maintenance
from memorywall.service.administration.tenants import list_tenants
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect
from memorywall.service.runner.operation_runner import OperationTransactions

Result = TypeVar("Result")
_log = logging.getLogger("memorywall.recall")
_COUNTED_EVERY = 0.5
_PATIENCE_SECONDS = 2.0
"""Seconds for the vector of a query, after which the search uses words only."""
_REST_MILLISECONDS = 5_000
_THREADS = 2
_LARGE = 50_000
"""The bytes of entries from which their texts are read in a thread: a few milliseconds."""
_BYTES_OF_ENTRY = 500
"""The bytes of a text whose reading takes as long as the rest of an entry."""
_LOOKED_AT_EVERY = 64
"""The number of searches between two checks of the size, which grows with writes, and of shards
that each check measures."""


Readable = tuple[list[ShardFilter], list[IndexShard]]
"""The memory that a caller may read, and its shards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """The embedding lag over all tenants.

    model: the model of the embedder, None without an embedder
    changes: the number of logged changes without an embedding
    """

    model: str | None
    changes: int


class Index:
    """The index shards of all tenants of one open store."""

    def __init__(
        self,
        service: SharedServices,
        embedder: Embedder | None = None,
        weights: Weights = DEFAULT_WEIGHTS,
    ) -> None:
        self.services = service
        self.embedder = embedder
        self.weights = weights
        self.terms = Analyzer()
        self.fields = AuthorDateFields.of(service.settings)
        self._loader = Loader(
            service,
            self._make,
            self.terms,
            self.fields,
            None if embedder is None else embedder.model,
            self.read_texts,
        )
        self._tenants: dict[str, TenantIndex] = {}
        # The size of each shard when it was last measured, the least recently searched one first.
        self._recent: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._bytes = 0
        self._unmeasured: Iterator[tuple[str, str]] = iter(())
        self._searches = 0
        self._backlog = Backlog(model=None, changes=0)
        self._count_again = -math.inf
        self._rests_until = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="memorywall-recall")
        # More rankings at once than cores would only take more memory for their arrays.
        cores = os.cpu_count() or 1
        self._ranking = ThreadPoolExecutor(cores, thread_name_prefix="memorywall-ranking")
        service.indexes.append(self)

    @cached_property
    def score(self) -> Score:
        """The scoring function, with numpy if installed. It is loaded by the first search, because
        numpy takes time and memory."""
        if find_spec("numpy") is None:
            from memorywall.recall import python_scoring

            return python_scoring.score
        from memorywall.recall import numpy_scoring

        return numpy_scoring.score

    def tenant_index(self, tenant: str) -> TenantIndex:
        """The shards of a tenant."""
        return self._tenants.setdefault(tenant, TenantIndex())

    async def refresh(
        self, transactions: OperationTransactions, wanted: Sequence[EntryFilter], now: str
    ) -> list[Readable]:
        """Returns for each filter the caller's readable memory that it could match, and the shards
        of that memory, all on one snapshot. The caller holds the write lock of the tenant's
        index."""

        async def access(context: OperationContext) -> list[list[ShardFilter]]:
            return [await load_shard_filters(context, one) for one in wanted]

        if "score" not in vars(self):
            # Loading numpy takes a fifth of a second.
            await self.in_thread(lambda: self.score)
        tenant = transactions.principal.tenant
        tenant_index = self.tenant_index(tenant)
        is_loaded = False
        while True:
            readable = await self._loader.follow(transactions, access, tenant_index, now)
            if readable is None:
                for owner in list(tenant_index.shards):
                    self._drop(tenant, owner)
                continue
            owners = list(dict.fromkeys(part.owner for parts in readable for part in parts))
            if not await self._load(tenant, owners):
                break
            # Reads the events and access changes that were committed during the load.
            is_loaded = True
        for owner in owners:
            shard = tenant_index.shards[owner]
            shard.expire(now)
            await self._loader.find_vectors(tenant, shard, tenant_index.position)
            if shard.vectors is not None:
                shard.vectors.settle()
            self._note_size(tenant, owner)
        self._searches += 1
        if is_loaded or self._searches % _LOOKED_AT_EVERY == 0:
            self._evict(tenant, owners)
        return [
            (parts, [tenant_index.shards[one] for one in dict.fromkeys(p.owner for p in parts)])
            for parts in readable
        ]

    async def _load(self, tenant: str, owners: Sequence[str]) -> bool:
        """Loads the shards of these owners that are missing or need compaction. Returns whether
        there were any."""
        tenant_index = self.tenant_index(tenant)
        is_loaded = False
        for owner in owners:
            shard = tenant_index.shards.get(owner)
            if shard is None or shard.needs_compaction:
                shard = await self._loader.load(tenant, owner)
                if not tenant_index.shards:
                    tenant_index.position = shard.position
                tenant_index.shards[owner] = shard
                self._note_size(tenant, owner)
                is_loaded = True
            self._recent.move_to_end((tenant, owner))
        return is_loaded

    async def backlog(self) -> Backlog:
        """The embedding lag, cached for a moment, because metrics may be requested often."""
        begun = time.monotonic()
        if begun > self._count_again:
            self._backlog = await self._count_backlog()
            took = time.monotonic() - begun
            # Counting many tenants takes a while, so it must be a small part of the time. A lag of
            # 0 is not cached longer than that, because a caller may wait for it.
            least = _COUNTED_EVERY if self._backlog.changes else 0.0
            self._count_again = begun + max(least, 20 * took)
        return self._backlog

    async def _count_backlog(self) -> Backlog:
        embedder = self.embedder
        if embedder is None:
            return Backlog(model=None, changes=0)
        model, changes = embedder.model, 0

        async def count(context: OperationContext) -> int:
            return await embedding_lag(context.transaction, model)

        for tenant in await list_tenants(self.services):
            changes += await inspect(self.services, tenant, Maintenance.INDEX, count)
        return Backlog(model=model, changes=changes)

    def measure(self) -> dict[str, int]:
        """The sizes of the index in memory."""
        shards = [
            one for tenant_index in self._tenants.values() for one in tenant_index.shards.values()
        ]
        return {
            "shards": len(shards),
            "bytes": sum(one.size for one in shards),
            "entries": sum(len(one) for one in shards),
        }

    async def make_findable(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Embeds entries before their turn; see `recall.findable`. Raises EntryNotIndexedError."""
        await make_findable(self, tenant, entry_ids)

    async def embed(
        self, texts: Sequence[str], *, patience: float = _PATIENCE_SECONDS, documents: bool = False
    ) -> Any:
        """The vectors of texts, one row each.

        documents: whether they are texts of entries, and no queries; default: false
        patience: the seconds after which TimeoutError is raised; default: 2

        Raises UnavailableError, and TimeoutError after too long. After an error the embedder is not
        called for a while, so that searches do not wait for it.
        """
        assert self.embedder is not None  # noqa: S101 - asked by the caller
        if self.services.clock.now() < self._rests_until:
            raise UnavailableError("the embedder did not answer recently")
        loop = asyncio.get_running_loop()
        # Only models that were trained with another text before queries tell them apart.
        for_queries = getattr(self.embedder, "embed_queries", self.embedder.embed)
        embed = self.embedder.embed if documents else for_queries
        embedding = loop.run_in_executor(self._threads, embed, texts)
        try:
            return await asyncio.wait_for(embedding, patience)
        except (UnavailableError, TimeoutError):
            self._rests_until = self.services.clock.now() + _REST_MILLISECONDS
            raise

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """The result of a ranking, or of reading long texts, which runs in a thread so that it
        delays no request. Returns after the thread has ended, even if the caller is cancelled: the
        caller holds the lock of the shards that the thread reads or changes."""
        running = asyncio.get_running_loop().run_in_executor(self._ranking, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            raise

    async def read_texts(self, entries: Iterable[Entry], work: Callable[[], Result]) -> Result:
        """The result of work whose time grows with these entries; if they are large, it runs in a
        thread."""
        return await self.in_thread(work) if are_large(entries) else work()

    async def in_turn(self, step: Callable[[GiveWay], Result], *, is_long: bool) -> Result:
        """The result of a step of a search. It runs in a thread if it is long, or if it runs beside
        writes: there it gives way to them before it begins and whenever it calls its argument."""
        writes = self.services.writes
        if not (is_long or writes.are_expected):
            return step(go_on)
        give_way = writes.giving_way()

        def run() -> Result:
            give_way()
            return step(give_way)

        return await self.in_thread(run)

    async def used(self, added: Mapping[str, Mapping[str, int]]) -> None:
        """Updates the uses of entries in the shards.

        added: the used ids by tenant; the store contains the totals
        """
        for tenant, uses in added.items():
            tenant_index = self.tenant_index(tenant)
            if tenant_index.shards:
                counts = await self._loader.uses(tenant, uses)
                async with tenant_index.lock.changing():
                    for shard in tenant_index.shards.values():
                        shard.set_uses(counts)

    def close(self) -> None:
        """Closes the index and its embedder."""
        self.services.indexes.remove(self)
        self._threads.shutdown(cancel_futures=True)
        self._ranking.shutdown(cancel_futures=True)
        self._tenants.clear()
        self._recent.clear()
        self._bytes = 0
        if self.embedder is not None:
            self.embedder.close()

    def _evict(self, searched: str, owners: Sequence[str]) -> None:
        """Evicts the least recently searched shards until the size is within the limit. Shards of
        running searches are never evicted."""
        self._measure_some()
        most = self.services.settings.index_cache_bytes
        if self._bytes <= most:
            return
        for tenant, owner in list(self._recent):
            if self._bytes <= most:
                return
            tenant_index = self._tenants[tenant]
            is_used = owner in owners if tenant == searched else tenant_index.lock.is_changing
            if not is_used and (size := self._drop(tenant, owner)) > most:
                # Such a shard is loaded again for each search, which is slow.
                _log.warning(
                    "an index shard is larger than index_cache_bytes", extra={"bytes": size}
                )

    def _measure_some(self) -> None:
        """Measures the next few shards: those that nobody searches grow with writes, too. To
        measure thousands at once would hold the event loop for long."""
        some = list(islice(self._unmeasured, _LOOKED_AT_EVERY))
        if not some:
            self._unmeasured = iter(list(self._recent))
        for one in some:
            if one in self._recent:
                self._note_size(*one)

    def _note_size(self, tenant: str, owner: str) -> None:
        size = self._tenants[tenant].shards[owner].size
        self._bytes += size - self._recent.get((tenant, owner), 0)
        self._recent[tenant, owner] = size

    def _drop(self, tenant: str, owner: str) -> int:
        """Forgets a shard and returns its size in bytes."""
        del self._tenants[tenant].shards[owner]
        size = self._recent.pop((tenant, owner))
        self._bytes -= size
        return size

    def _make(self, owner: str, position: int) -> IndexShard:
        """A new, empty shard."""
        shard = IndexShard(owner, position, self.weights)
        if self.embedder is not None:
            from memorywall.recall.vectors import Vectors

            shard.vectors = Vectors(shard.links, self.embedder.dimensions, self.weights)
        return shard


def are_large(entries: Iterable[Entry]) -> bool:
    """Whether reading the texts of entries would hold the event loop."""
    return sum(len(entry.value) + _BYTES_OF_ENTRY for entry in entries) >= _LARGE


@contextmanager
def open_index_of(service: SharedServices) -> Iterator[Index]:
    """The search index of an open store; one of its own for a process that has none."""
    if service.indexes:
        yield service.indexes[0]
        return
    index = Index(service)
    try:
        yield index
    finally:
        index.close()


def index_of(transactions: OperationTransactions) -> Index:
    """The search index of the session's runner."""
    if not isinstance(transactions.index, Index):
        raise LookupError("this runner was opened without an index")
    return transactions.index
