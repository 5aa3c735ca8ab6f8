"""Embeds what has been written, off the path of writes.

It follows each tenant's log, from where it had come under the present model: so a crash costs one
batch at most, and another model begins at the start of the log and leaves nothing out. Any number
of processes may run it; for each tenant one at a time has the turn.
"""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor

from memorywall.recall.behind import behind
from memorywall.recall.document import Fields, is_searchable, meaning_of
from memorywall.recall.embedders import Embedder, lower_thread_priority
from memorywall.records.clock import format_instant
from memorywall.records.entry import Entry
from memorywall.records.recall import EntryVector
from memorywall.storage.port import Transaction
from memorywall.wall.administration import list_tenants
from memorywall.wall.door import Door
from memorywall.wall.log import end_of_log

_CHANGES = 64
"""Of the log, looked at in one go; what they say is embedded and kept in one transaction."""
_TURN_MILLISECONDS = 180_000
"""After which another process goes on, should this one be gone."""
_OTHERS_AT_ONCE = 500
_REST_MILLISECONDS = 5_000
_TENANTS_AT_ONCE = 100
_BUSY = 500
"""Changes a second of one tenant, above which embedding would be felt by who writes."""
_PAUSE = 10.0
"""Times what a batch took; so long it then rests."""
_LONGEST_PAUSE = 2.0


class Embedding:
    """Over one door. The thread it embeds in gives way to all others."""

    def __init__(self, door: Door, embedder: Embedder, fields: Fields) -> None:
        self._door = door
        self._embedder = embedder
        self._fields = fields
        self._holder = secrets.token_hex(8)
        self._cleaned: set[str] = set()
        self._logged: dict[str, tuple[int, float]] = {}
        self._rests_until = 0
        self._looked_at = ""
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="memorywall-embedder", initializer=lower_thread_priority
        )

    async def embed_some(self) -> int:
        """Embeds what up to a hundred tenants have waiting, others the next time; returns how many
        entries were embedded. After a failure it does nothing for a while."""
        if self._door.clock.now() < self._rests_until:
            return 0
        try:
            return await self._embed_all()
        except Exception:
            self._rests_until = self._door.clock.now() + _REST_MILLISECONDS
            raise

    async def _embed_all(self) -> int:
        embedded = 0
        loop = asyncio.get_running_loop()
        waiting = self._next_tenants(await list_tenants(self._door))
        while waiting:
            again = []
            for tenant in waiting:
                begun = loop.time()
                looked, done = await self._embed_batch(tenant)
                embedded += done
                if done and await self._is_busy(tenant, loop.time()):
                    # Writes come first; what they leave is embedded when there are fewer.
                    await asyncio.sleep(min(_LONGEST_PAUSE, _PAUSE * (loop.time() - begun)))
                if looked:
                    again.append(tenant)
                elif tenant not in self._cleaned and not await self._is_behind(tenant):
                    # Until then, who still runs with another model has something to search with.
                    await self._forget_other_models(tenant)
            # Tenants take turns, so that none waits for all that another has written.
            waiting = again
        return embedded

    def _next_tenants(self, tenants: list[str]) -> list[str]:
        """Those to look at now: where there are many, not all of them each time."""
        tenants.sort()
        later = [tenant for tenant in tenants if tenant > self._looked_at]
        some = [*later, *tenants][: min(_TENANTS_AT_ONCE, len(tenants))]
        self._looked_at = some[-1] if some else ""
        return some

    def close(self) -> None:
        """Ends the thread, after what it is at."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _embed_batch(self, tenant: str) -> tuple[bool, int]:
        """Embeds what the next changes of a tenant's log are about. Returns whether there were any,
        and how many entries were embedded."""
        found = await self._next(tenant)
        if found is None:
            return False, 0
        position, entries = found
        texts = [meaning_of(entry, self._fields) for entry in entries]
        vectors: list[EntryVector] = []
        if texts:
            loop = asyncio.get_running_loop()
            rows = await loop.run_in_executor(self._thread, self._embedder.embed, texts)
            vectors = [
                EntryVector(entry.id, entry.version, row.astype("<f2").tobytes())
                for entry, row in zip(entries, rows, strict=True)
            ]
        model, now = self._embedder.model, self._door.now()

        async def script(transaction: Transaction) -> bool:
            if not await transaction.recall.advance(tenant, model, self._holder, position):
                return False
            await transaction.recall.put_vectors(tenant, model, vectors)
            if not await behind(transaction, tenant, model):
                # Nothing is left to do, so whoever comes next need not wait for the turn to end.
                await transaction.recall.take_turn(tenant, model, self._holder, now, now)
            return True

        kept = await self._door.store.write(tenant, script)
        return kept, len(vectors)

    async def _next(self, tenant: str) -> tuple[int, list[Entry]] | None:
        """Up to where to look, and the entries there that have no vector yet; None where there is
        nothing new, or another process has the turn."""
        model, clock = self._embedder.model, self._door.clock

        async def take_turn(transaction: Transaction) -> int | None:
            now = clock.now()
            until = format_instant(now + _TURN_MILLISECONDS)
            return await transaction.recall.take_turn(
                tenant, model, self._holder, format_instant(now), until
            )

        if not await self._is_behind(tenant):
            return None
        position = await self._door.store.write(tenant, take_turn)
        if position is None:
            return None

        async def look(transaction: Transaction) -> tuple[int, list[Entry]]:
            changes = await transaction.events.list_of_entries(tenant, position, _CHANGES)
            if len(changes) == _CHANGES:
                reached = changes[-1].seq
            else:
                reached = await end_of_log(transaction, tenant)
            ids = list(dict.fromkeys(one.entry_id for one in changes if not one.ended))
            known = await transaction.recall.vectors(tenant, model, ids) if ids else {}
            wanted = [entry_id for entry_id in ids if entry_id not in known]
            entries = []
            if wanted:
                entries = await transaction.entries.get_many(tenant, wanted, self._door.now())
            return reached, [entry for entry in entries if is_searchable(entry)]

        return await self._door.store.read(tenant, look)

    async def _is_behind(self, tenant: str) -> bool:
        """Whether there is more in a tenant's log than has been embedded."""
        model = self._embedder.model

        async def script(transaction: Transaction) -> bool:
            return await behind(transaction, tenant, model) > 0

        return await self._door.store.read(tenant, script)

    async def _is_busy(self, tenant: str, at: float) -> bool:
        """Whether much has been written since this was last asked, at an instant in seconds."""

        async def script(transaction: Transaction) -> int:
            return await end_of_log(transaction, tenant)

        logged = await self._door.store.read(tenant, script)
        before, since = self._logged.get(tenant, (logged, at))
        self._logged[tenant] = logged, at
        return logged - before > _BUSY * (at - since)

    async def _forget_other_models(self, tenant: str) -> None:
        """Removes the vectors of models that are in use no more, once everything is embedded."""
        self._cleaned.add(tenant)
        model = self._embedder.model

        async def script(transaction: Transaction) -> int:
            return await transaction.recall.remove_other_models(tenant, model, _OTHERS_AT_ONCE)

        while await self._door.store.write(tenant, script) == _OTHERS_AT_ONCE:
            pass
