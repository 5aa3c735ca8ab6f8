"""What storage keeps of entries beside the entries: edges, due instants and earlier versions.

All of it is derived from entries by the operations on them (`port.Entries`), in the same
transaction, and is removed with them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from memorywall.records.entry import Entry


class Edges(Protocol):
    """What entries point at, and when something must happen to them."""

    async def targets(self, entry_id: str) -> list[tuple[str, str]]:
        """What an entry points at: pairs of a relation and a target, sorted."""
        ...

    async def sources(
        self, relation: str, targets: Collection[str], limit: int, after: str = ""
    ) -> list[str]:
        """Up to `limit` ids of entries that point at any of these targets with this relation, in
        order, each once, from the first that is greater than `after`."""
        ...

    async def due(self, now: str, limit: int) -> list[Entry]:
        """Up to `limit` entries whose `due_at` is at or before `now`, the first due first."""
        ...


class History(Protocol):
    """The versions of entries that changes have replaced."""

    async def get(self, entry_id: str, version: int) -> Entry | None:
        """The entry as it was at an earlier version, or None."""
        ...

    async def as_of(self, entry_ids: Collection[str], instant: str) -> dict[str, Entry]:
        """Of each of these entries the version that was current at an instant, by its id. An entry
        that was not there, or that is today what it was, is passed over."""
        ...

    async def versions(self, entry_id: str) -> list[Entry]:
        """All earlier versions of an entry, the oldest first."""
        ...
