"""Rows that are derived from entries: edges, due instants and earlier versions.

The operations on entries (`port.EntryRepository`) write these rows in the same transaction and
remove them with the entries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from memorywall.records.entry import Entry


class Edges(Protocol):
    """The edges of entries and their due instants."""

    async def targets(self, entry_id: str) -> list[tuple[str, str]]:
        """Returns the edges of an entry: pairs of a relation and a target, sorted."""
        ...

    async def sources(
        self, relation: str, targets: Collection[str], limit: int, after: str = ""
    ) -> list[str]:
        """Returns up to `limit` ids of entries with an edge of this relation to any of these
        targets, in order, each once, starting with the first id greater than `after`."""
        ...

    async def between(
        self, relation: str, ranges: Collection[tuple[str, str]], limit: int
    ) -> list[tuple[str, str]]:
        """Returns pairs of a target and the id of an entry with an edge of this relation to it.
        The target is in one of the ranges, each from its first text up to, and without, its last
        one. Up to `limit` pairs of each range, in the order of targets and ids within it."""
        ...

    async def due(self, now: str, limit: int, kind: str | None = None) -> list[Entry]:
        """Returns up to `limit` entries whose `due_at` is at or before `now`, earliest first;
        optionally only those of a kind."""
        ...


class History(Protocol):
    """The versions of entries that changes have replaced."""

    async def get(self, entry_id: str, version: int) -> Entry | None:
        """Returns an earlier version of an entry, or None."""
        ...

    async def as_of(self, entry_ids: Collection[str], instant: str) -> dict[str, Entry]:
        """Returns the version of each of these entries that was current at an instant, by id.
        Entries that did not exist then, or have not changed since, are omitted."""
        ...

    async def versions(self, entry_id: str) -> list[Entry]:
        """Returns all earlier versions of an entry, oldest first."""
        ...

    async def earlier(self, entry_id: str, before: int, limit: int) -> list[Entry]:
        """Returns up to `limit` earlier versions with a number less than `before`, newest first."""
        ...

    async def about(self, subjects: Collection[str], limit: int) -> list[Entry]:
        """Returns up to `limit` earlier versions that are about any of these subjects in their
        stored form, by entry and number. Reads all earlier versions of the tenant."""
        ...

    async def remove(self, entry_id: str, versions: Collection[int]) -> None:
        """Removes earlier versions of an entry, and erases the stored responses that contain the
        entry. The bytes leave the files soon after: see `Store.is_erasure_complete`."""
        ...
