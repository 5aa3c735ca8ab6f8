"""Last accesses and uses, which reads record in memory and writes flush to the store.

A read must not cost a write. Last accesses are recorded only for tiers that evict by last access,
see `SharedServices.record_access`. They are grouped by owner, so that an eviction flushes only the
accesses of one owner. Uses are counted for every tier, by tenant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from memorywall.records.entry import Entry
from memorywall.storage.port import Transaction


class UsageTracker:
    """Recorded on the event loop and read in the writer's thread: each step is one atomic dict
    call.

    used: the uses of entries since the last flush, by tenant and id
    key_uses: the API keys that were used since the last flush, by tenant and prefix. Reading the
        clock for each request would take longer than the rest of the authentication, so the flush
        gives the instant.
    """

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], dict[str, str]] = {}
        self.used: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.key_uses: set[tuple[str, str]] = set()

    def record_access(self, entry: Entry, now: str) -> None:
        """Records that an entry was read at `now`, an instant in the stored form."""
        self._noted.setdefault((entry.tenant, entry.owner), {})[entry.id] = now

    def record_access_of(self, tenant: str, owner_of: Mapping[str, str], now: str) -> None:
        """Records that entries were read.

        owner_of: the owners of the entries, by id
        """
        for owner in set(owner_of.values()):
            accesses = {entry_id: now for entry_id, one in owner_of.items() if one == owner}
            self._noted.setdefault((tenant, owner), {}).update(accesses)

    def owners(self) -> list[tuple[str, str]]:
        """Pairs of tenant and owner with recorded accesses."""
        return list(self._noted)

    async def flush(self, transaction: Transaction, tenant: str, owner: str) -> dict[str, str]:
        """Writes the recorded accesses of an owner to the store, and returns them.

        The accesses stay recorded, because the transaction may be rolled back. Call `forget` after
        the commit.
        """
        noted = dict(self._noted.get((tenant, owner), {}))
        if noted:
            await transaction.entries.touch(noted)
        return noted

    def forget(self, tenant: str, owner: str, flushed: dict[str, str]) -> None:
        """Drops flushed and committed accesses, unless a later access was recorded meanwhile."""
        noted = self._noted.get((tenant, owner), {})
        for entry_id, at in flushed.items():
            if noted.get(entry_id) == at:
                del noted[entry_id]
        if not noted:
            self._noted.pop((tenant, owner), None)

    def count(self, tenant: str, used: Iterable[str] | Mapping[str, int]) -> None:
        """Counts uses of entries: a get by id, or a hit of a search.

        used: ids, or numbers of uses by id
        """
        self.used[tenant].update(used)

    def drain_key_uses(self) -> dict[str, list[str]]:
        """Returns and resets the used API keys, by tenant. The caller must store them. A use that
        is lost is recorded with the next request."""
        taken: dict[str, list[str]] = {}
        # Each step is atomic, because requests record uses meanwhile.
        while self.key_uses:
            tenant, prefix = self.key_uses.pop()
            taken.setdefault(tenant, []).append(prefix)
        return taken

    def drain_uses(self) -> dict[str, dict[str, int]]:
        """Returns and resets the counted uses, by tenant and id. The caller must store them, or
        count them again."""
        taken, self.used = self.used, defaultdict(Counter)
        return {tenant: dict(uses) for tenant, uses in taken.items()}
