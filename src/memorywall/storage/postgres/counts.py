"""Counts of entries, read once per transaction and then updated with its own changes.

Every create checks the capacity of its task, scope or owner. No other transaction changes the
counts while this transaction holds the lock of its tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memorywall.records.entry import Entry
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage

CountScope = tuple[str, Tier | None, str]
"""The key of a count: `owner`, `task` or `namespace`, the tier, and its name."""

TENANT_SCOPE: CountScope = ("tenant", None, "")
"""The key of the count of all entries of the tenant."""


@dataclass(slots=True)
class _Count:
    usage: Usage
    ends_at: str | None
    """The instant at which the first counted entry expires, and the count becomes invalid."""


class Counts:
    """The counts of one transaction."""

    def __init__(self) -> None:
        self._counts: dict[CountScope, _Count] = {}

    async def get(
        self,
        scope: CountScope,
        now: str,
        count: Callable[[], Awaitable[tuple[Usage, str | None]]],
    ) -> Usage:
        """Returns a count at `now`.

        count: counts the stored entries, and returns the first instant of expiry
        """
        known = self._counts.get(scope)
        if known is None or (known.ends_at is not None and known.ends_at <= now):
            usage, ends_at = await count()
            known = self._counts[scope] = _Count(usage, ends_at)
        return known.usage

    def forget(self) -> None:
        """Clears the counts."""
        self._counts.clear()

    def add(self, entry: Entry) -> None:
        """Adds an entry to its counts."""
        if entry.listed:
            self._adjust(entry, 1, entry.size, int(entry.pinned))

    def take(self, entry: Entry) -> None:
        """Removes an entry from its counts."""
        if not entry.listed:
            return
        if entry.expires_at is None:
            self._adjust(entry, -1, -entry.size, -int(entry.pinned))
            return
        for scope in count_scopes_of(entry):
            # An entry that had expired already was not in the count.
            self._counts.pop(scope, None)

    def change(self, old: Entry, new: Entry) -> None:
        """Records that an entry was replaced."""
        for scope in (*count_scopes_of(old), *count_scopes_of(new)):
            self._counts.pop(scope, None)

    def _adjust(self, entry: Entry, entries: int, size: int, pinned: int) -> None:
        for scope in count_scopes_of(entry):
            known = self._counts.get(scope)
            if known is None:
                continue
            usage = known.usage
            known.usage = Usage(
                entries=usage.entries + entries,
                bytes=usage.bytes + size,
                pinned=usage.pinned + (pinned if scope[0] == "owner" else 0),
            )
            if entry.expires_at is not None and (
                known.ends_at is None or entry.expires_at < known.ends_at
            ):
                known.ends_at = entry.expires_at


def count_scopes_of(entry: Entry) -> list[CountScope]:
    """Returns the keys of the counts of an entry."""
    places: list[CountScope] = [TENANT_SCOPE, ("owner", entry.tier, entry.owner)]
    if entry.scope.task_id is not None:
        places.append(("task", entry.tier, entry.scope.task_id))
    if entry.owner == "":
        places.append(("namespace", entry.tier, entry.namespace))
    return places
