"""Last accesses, noted in memory by reads and folded into the store by writes.

A read must not cost a write. When something was read last is noted for tiers that evict by it
only, keyed by owner so that the choice of a victim folds just what it needs. How often an entry was
used is counted for every tier, keyed by tenant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from memorywall.records.entry import Entry
from memorywall.records.tier import Eviction
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS


class Accesses:
    """Noted on the event loop, read in the writer's thread: each step is one atomic dict call."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], dict[str, str]] = {}
        self._used: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def note(self, entries: Iterable[Entry], now: str) -> None:
        """These entries were read at `now`."""
        for entry in entries:
            if TIERS[entry.tier].eviction is Eviction.LEAST_RECENTLY_USED:
                self._noted.setdefault((entry.tenant, entry.owner), {})[entry.id] = now

    def owners(self) -> list[tuple[str, str]]:
        """Tenant and owner of everything noted."""
        return list(self._noted)

    async def fold(self, transaction: Transaction, tenant: str, owner: str) -> dict[str, str]:
        """Brings what is noted for an owner into the store, and returns it.

        It stays noted, for the transaction may yet be undone: `forget` it after the commit.
        """
        noted = dict(self._noted.get((tenant, owner), {}))
        if noted:
            await transaction.entries.touch(tenant, noted)
        return noted

    def forget(self, tenant: str, owner: str, folded: dict[str, str]) -> None:
        """Drops what has been folded and committed, unless it was noted anew meanwhile."""
        noted = self._noted.get((tenant, owner), {})
        for entry_id, at in folded.items():
            if noted.get(entry_id) == at:
                del noted[entry_id]
        if not noted:
            self._noted.pop((tenant, owner), None)

    def count(self, tenant: str, used: Iterable[str] | Mapping[str, int]) -> None:
        """These entries were used, once each or as often as is told: asked for by id, or shown as
        the answer to a search."""
        self._used[tenant].update(used)

    def take_uses(self) -> dict[str, dict[str, int]]:
        """What was counted since the last time, by tenant. Who takes it brings it into the store,
        or counts it again."""
        taken, self._used = self._used, defaultdict(Counter)
        return {tenant: dict(uses) for tenant, uses in taken.items()}
