"""Embeds new and changed entries, outside the write path.

For a new model the job first processes a tenant's entries by id and stores its position in the job
`embed`. Then it follows the tenant's log from the position at which the first phase began. A crash
therefore costs at most one batch, no change is missed, and earlier events are not needed. Any
number of processes may run the job; a lease gives one at a time a tenant.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec

from memorywall.jobs.tenant_failures import log_failure
from memorywall.recall.document import AuthorDateFields, is_searchable
from memorywall.recall.embedders import Embedder, lower_thread_priority
from memorywall.recall.embedding_lag import EMBED, WalkCursor, embedding_lag, walk_cursor
from memorywall.recall.entry_vectors import compute_vectors, entries_without_vector
from memorywall.records.clock import format_instant
from memorywall.records.entry import Entry, is_expired
from memorywall.records.principal import Maintenance
from memorywall.service.administration.tenants import list_tenants
from memorywall.service.requests.event_log import last_sequence
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect, maintain

_CHANGES = 64
"""The number of events that are read at once; their entries are embedded and stored in one
transaction."""
_LEASE_MILLISECONDS = 180_000
"""The time after which another process takes over from a dead one."""
_OTHERS_AT_ONCE = 500
_REST_MILLISECONDS = 5_000
_TENANTS_AT_ONCE = 100
_BUSY = 500
"""The rate of changes a second of a tenant above which embedding would slow down writes."""
_PAUSE = 20.0
"""The pause after a batch under high load, as a multiple of the batch's duration."""
_LONGEST_PAUSE = 4.0


class _Batch(NamedTuple):
    """A batch to embed.

    position: the position in the log after the batch
    cursor: the position of the first phase after the batch, "" at its end
    entries: the entries without a vector
    """

    position: int
    cursor: str
    entries: list[Entry]


class EmbeddingJob:
    """Embeds the entries of one open store, in a thread of the lowest priority.

    is_alone: whether no other process embeds the entries of the store. A lease is then that of an
        ended process, and is taken at once; default: false
    """

    def __init__(
        self,
        service: SharedServices,
        embedder: Embedder,
        fields: AuthorDateFields,
        *,
        is_alone: bool = False,
    ) -> None:
        self._services = service
        self._embedder = embedder
        self._fields = fields
        self._holder = secrets.token_hex(8)
        self._is_alone = is_alone
        self._leased: set[str] = set()
        self._cleaned: set[str] = set()
        self._logged: dict[str, tuple[int, float]] = {}
        self._rests_until: dict[str, int] = {}
        self._looked_at = ""
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="memorywall-embedder", initializer=lower_thread_priority
        )

    async def embed_some(self) -> int:
        """Embeds pending changes of up to a hundred tenants, others the next time; returns the
        number of embedded entries.

        A tenant pauses for a while after a failure, and other tenants do not. The first failure is
        raised after the work of all tenants.
        """
        now = self._services.clock.now()
        self._rests_until = {
            tenant: until for tenant, until in self._rests_until.items() if now < until
        }
        tenants = await list_tenants(self._services)
        awake = [tenant for tenant in tenants if tenant not in self._rests_until]
        waiting, embedded = self._next_tenants(awake), 0
        failures: list[Exception] = []
        while waiting:
            again = []
            for tenant in waiting:
                try:
                    looked, done = await self._process_batch(tenant)
                except Exception as error:
                    log_failure(EMBED, tenant, error)
                    self._services.job_runs.note_error(EMBED)
                    failures.append(error)
                    rested = self._services.clock.now() + _REST_MILLISECONDS
                    self._rests_until[tenant] = rested
                    continue
                embedded += done
                if looked:
                    again.append(tenant)
            # Tenants alternate, so that no tenant waits for all changes of another.
            waiting = again
        if failures:
            raise failures[0]
        return embedded

    async def _process_batch(self, tenant: str) -> tuple[bool, int]:
        """Embeds a batch of a tenant, and pauses under high load. Returns whether there were
        changes, and the number of embedded entries."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        looked, done = await self._embed_batch(tenant)
        if done and await self._is_busy(tenant, loop.time()):
            # Writes have priority; their entries are embedded when the rate is lower.
            await asyncio.sleep(min(_LONGEST_PAUSE, _PAUSE * (loop.time() - begun)))
        if not looked and tenant not in self._cleaned and not await self._has_backlog(tenant):
            # Until then, servers with another model can still search its vectors.
            await self._forget_other_models(tenant)
        return looked, done

    def _next_tenants(self, tenants: list[str]) -> list[str]:
        """Returns the tenants of this round, a part of them if there are many."""
        tenants.sort()
        later = [tenant for tenant in tenants if tenant > self._looked_at]
        some = [*later, *tenants][: min(_TENANTS_AT_ONCE, len(tenants))]
        self._looked_at = some[-1] if some else ""
        return some

    async def release(self) -> None:
        """Releases the leases, so that another process goes on at once."""
        while self._leased:
            await maintain(self._services, self._leased.pop(), Maintenance.EMBED, self._release)

    def close(self) -> None:
        """Ends the thread after its current batch."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _release(self, context: OperationContext) -> None:
        model, now = self._embedder.model, context.now
        await context.transaction.recall.acquire_lease(model, self._holder, now, now)

    async def _embed_batch(self, tenant: str) -> tuple[bool, int]:
        """Embeds the entries of the next changes in a tenant's log. Returns whether there were
        changes, and the number of embedded entries."""
        found = await self._next(tenant)
        if found is None:
            return False, 0
        position, cursor, entries = found
        loop = asyncio.get_running_loop()

        async def embed(texts: Sequence[str]) -> Any:
            return await loop.run_in_executor(self._thread, self._embedder.embed, texts)

        vectors = await compute_vectors(embed, entries, self._fields)
        model = self._embedder.model

        async def script(context: OperationContext) -> bool:
            if not await context.transaction.recall.advance(model, self._holder, position):
                return False
            await context.transaction.recall.put_vectors(model, vectors)
            await context.transaction.jobs.note(EMBED, cursor, len(vectors), context.now)
            if not await embedding_lag(context.transaction, model):
                # Nothing is left to do.
                await self._release(context)
            return True

        kept = await maintain(self._services, tenant, Maintenance.EMBED, script)
        self._services.job_runs.note(EMBED, self._services.clock.now())
        return kept, len(vectors)

    async def _next(self, tenant: str) -> _Batch | None:
        """Returns the next batch; None if there is no change, or another process holds the
        lease."""
        model, clock = self._embedder.model, self._services.clock

        async def acquire_lease(context: OperationContext) -> int | None:
            now = clock.now()
            until = format_instant(now + _LEASE_MILLISECONDS)
            ended = until if self._is_alone else format_instant(now)
            return await context.transaction.recall.acquire_lease(model, self._holder, ended, until)

        if not await self._has_backlog(tenant):
            self._services.job_runs.note_idle(EMBED, tenant, clock.now())
            return None
        self._leased.add(tenant)
        position = await maintain(self._services, tenant, Maintenance.EMBED, acquire_lease)
        if position is None:
            return None

        async def read_batch(context: OperationContext) -> _Batch:
            if position == 0:
                return await _walk(context, model)
            return await _follow(context, model, position)

        return await inspect(self._services, tenant, Maintenance.EMBED, read_batch)

    async def _has_backlog(self, tenant: str) -> bool:
        """Returns whether a tenant's log has changes that are not embedded."""
        model = self._embedder.model

        async def script(context: OperationContext) -> bool:
            if not await embedding_lag(context.transaction, model) > 0:
                return False
            job = await context.transaction.jobs.get(EMBED)
            return job is None or not job.paused

        return await inspect(self._services, tenant, Maintenance.EMBED, script)

    async def _is_busy(self, tenant: str, at: float) -> bool:
        """Returns whether many changes were written since the last call, at an instant in
        seconds."""

        async def script(context: OperationContext) -> int:
            return await last_sequence(context.transaction)

        logged = await inspect(self._services, tenant, Maintenance.EMBED, script)
        before, since = self._logged.get(tenant, (logged, at))
        self._logged[tenant] = logged, at
        return logged - before > _BUSY * (at - since)

    async def _forget_other_models(self, tenant: str) -> None:
        """Removes the vectors of unused models after everything is embedded."""
        self._cleaned.add(tenant)
        model = self._embedder.model

        async def script(context: OperationContext) -> int:
            return await context.transaction.recall.remove_other_models(model, _OTHERS_AT_ONCE)

        while await maintain(self._services, tenant, Maintenance.EMBED, script) == _OTHERS_AT_ONCE:
            pass


async def _walk(context: OperationContext, model: str) -> _Batch:
    """Returns the next entries by id, of a tenant in its first phase under this model."""
    cursor = await walk_cursor(context.transaction, model)
    if cursor is None:
        cursor = WalkCursor(model, "", await last_sequence(context.transaction), 0)
    page = await context.transaction.entries.walk(cursor.after, _CHANGES)
    known = await context.transaction.recall.vectors(model, [entry.id for entry in page])
    entries = [
        entry
        for entry in page
        if entry.id not in known and not is_expired(entry, context.now) and is_searchable(entry)
    ]
    if len(page) < _CHANGES:
        return _Batch(cursor.log, "", entries)
    reached = WalkCursor(model, page[-1].id, cursor.log, cursor.seen + len(page))
    return _Batch(0, msgspec.json.encode(reached).decode(), entries)


async def _follow(context: OperationContext, model: str, position: int) -> _Batch:
    """Returns the entries of the next changes in the log."""
    changes, end = await context.transaction.events.list_of_entries(position, _CHANGES)
    reached = changes[-1].seq if len(changes) == _CHANGES else end
    ids = list(dict.fromkeys(one.entry_id for one in changes if not one.ended))
    return _Batch(reached, "", await entries_without_vector(context, model, ids))
