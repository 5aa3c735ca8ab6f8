"""How much there is, counted once in a transaction and then kept up with its own changes.

Every create asks how full its task, its scope or its owner is. Nobody else changes that while the
transaction holds the lock of its tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memorywall.records.entry import Entry
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage

CountScope = tuple[str, Tier, str]
"""What is counted: `owner`, `task` or `namespace`, the tier, and which."""


@dataclass(slots=True)
class _Count:
    usage: Usage
    ends_at: str | None
    """When the first of the entries expires, and the count with it."""


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
        """The count of a place at `now`.

        count: counts what is stored, and tells when the first of it expires
        """
        known = self._counts.get(scope)
        if known is None or (known.ends_at is not None and known.ends_at <= now):
            usage, ends_at = await count()
            known = self._counts[scope] = _Count(usage, ends_at)
        return known.usage

    def forget(self) -> None:
        """Forgets what was counted."""
        self._counts.clear()

    def add(self, entry: Entry) -> None:
        """An entry is there that was not."""
        if entry.listed:
            self._adjust(entry, 1, entry.size, int(entry.pinned))

    def take(self, entry: Entry) -> None:
        """An entry is gone."""
        if not entry.listed:
            return
        if entry.expires_at is None:
            self._adjust(entry, -1, -entry.size, -int(entry.pinned))
            return
        for scope in count_scopes_of(entry):
            # It may have been over already, and then it was not in the count.
            self._counts.pop(scope, None)

    def change(self, old: Entry, new: Entry) -> None:
        """An entry has become another."""
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
    """Where an entry is counted."""
    places: list[CountScope] = [("owner", entry.tier, entry.owner)]
    if entry.scope.task_id is not None:
        places.append(("task", entry.tier, entry.scope.task_id))
    if entry.owner == "":
        places.append(("namespace", entry.tier, entry.namespace))
    return places
