"""A page of a search, with its entries as the text that a reply shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias

from memorywall.records.entry import Entry

RenderedRow: TypeAlias = tuple[str, str, str, str | None, bytes | None]
"""The id, the tier, the owner and the kind of an entry, and its JSON text."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page of a search.

    rows: newest first; the text is None for what the store does not render
    entries: by id, the entries whose text is None
    total: how many entries match on all pages
    """

    rows: list[RenderedRow]
    entries: dict[str, Entry]
    total: int

    @classmethod
    def of(cls, entries: Iterable[Entry], total: int) -> Self:
        """The page of a store that renders nothing."""
        by_id = {entry.id: entry for entry in entries}
        rows: list[RenderedRow] = [
            (entry.id, entry.tier.value, entry.owner, entry.kind, None) for entry in by_id.values()
        ]
        return cls(rows, by_id, total)
