"""Last accesses, noted in memory by reads and folded into the store by writes.

A read must not cost a write. Only tiers that evict by last access are noted, keyed by owner so
that the choice of a victim folds just what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.records.entry import Entry
from memorywall.records.tier import Eviction
from memorywall.storage.port import Transaction
from memorywall.tiers import TIERS


class Accesses:
    """Noted on the event loop, taken in the writer's thread: each step is one atomic dict call."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str], dict[str, str]] = {}

    def note(self, entries: Iterable[Entry], now: str) -> None:
        """These entries were read at `now`."""
        for entry in entries:
            if TIERS[entry.tier].eviction is Eviction.LEAST_RECENTLY_USED:
                self._noted.setdefault((entry.tenant, entry.owner), {})[entry.id] = now

    def owners(self) -> list[tuple[str, str]]:
        """Tenant and owner of everything noted."""
        return list(self._noted)

    async def fold(self, transaction: Transaction, tenant: str, owner: str) -> None:
        """Moves what is noted for an owner into the store."""
        noted = self._noted.pop((tenant, owner), None)
        if noted:
            await transaction.entries.touch(tenant, dict(noted))
