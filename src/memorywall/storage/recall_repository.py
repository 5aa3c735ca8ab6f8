"""The contract of a backend for recall: vectors, use counts and positions of embedding.

A part of `storage/port.py`, whose general obligations apply.
`EntryRepository.remove` removes these rows with their entry in the same transaction, and
`EntryRepository.replace` removes the vectors of an entry whose value or sensitivity changes. Both
remove the index segment whose range contains the entry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memorywall.records.recall import (
    ContextOutcomes,
    EntryVector,
    LastUse,
    StoredSegment,
    UseCounts,
)
from memorywall.records.tier import Tier


class RecallRepository(Protocol):
    """The rows of each tenant. Vectors of different models are separate."""

    async def put_vectors(self, model: str, vectors: Sequence[EntryVector]) -> None:
        """Stores vectors, and replaces earlier ones of this model. Ignores vectors whose entry is
        absent, sealed or has another version."""
        ...

    async def vectors(self, model: str, entry_ids: Collection[str]) -> dict[str, bytes]:
        """Returns the stored vectors of these entries under a model."""
        ...

    async def remove_other_models(self, model: str, limit: int) -> int:
        """Removes up to `limit` vectors of other models, and the positions of those models; returns
        the number of removed vectors."""
        ...

    async def position(self, model: str) -> int:
        """Returns the `seq` of the tenant's log up to which entries are embedded under a model; 0
        at the start."""
        ...

    async def acquire_lease(self, model: str, holder: str, now: str, until: str) -> int | None:
        """Leases the embedding of the tenant's entries to `holder` until an instant, and returns
        the position. Returns None and changes nothing while another process holds the lease."""
        ...

    async def advance(self, model: str, holder: str, position: int) -> bool:
        """Advances the position. Returns False and changes nothing if `holder` does not hold the
        lease."""
        ...

    async def put_segment(
        self, tier: Tier, owner: str, segment: StoredSegment, versions: Mapping[str, int]
    ) -> bool:
        """Stores an index segment of `owner` in `tier`, and removes those whose range overlaps.
        Returns False and stores nothing unless the entries in its range are exactly these.

        versions: the versions of all entries in the range by id, sealed ones too
        """
        ...

    async def remove_segments(self, tier: Tier, owner: str, first: str, last: str) -> None:
        """Removes the index segments of `owner` in `tier` whose range overlaps that of two ids."""
        ...

    async def next_segment(
        self, tier: Tier, owner: str, form: str, after: str
    ) -> StoredSegment | None:
        """Returns the first index segment of this form whose first id is greater than `after`, or
        None. A segment is omitted if an entry has been added in its range."""
        ...

    async def without_segment(
        self, form: str, least: int, after: tuple[str, str] = ("", "")
    ) -> tuple[str, Tier] | None:
        """Returns the first owner and tier after these, in this order, with at least `least` listed
        entries that are in no segment of this form, or None."""
        ...

    async def add_uses(self, uses: Mapping[str, int], now: str | None = None) -> None:
        """Adds to use counts of entries, and sets the instant of their last use to `now`, unless it
        is None. Absent ids are ignored."""
        ...

    async def last_uses(self, entry_ids: Collection[str]) -> list[LastUse]:
        """Returns the last uses of those of these entries that exist, in any order."""
        ...

    async def add_outcomes(self, outcomes: Mapping[str, ContextOutcomes]) -> None:
        """Adds to the outcomes of the contexts of entries; negative numbers take back. Absent ids
        are ignored."""
        ...

    async def uses(self, entry_ids: Collection[str]) -> dict[str, UseCounts]:
        """Returns the use counts of those of these entries that have any."""
        ...
