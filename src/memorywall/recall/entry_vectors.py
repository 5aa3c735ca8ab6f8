"""Vectors of entries: which entries lack one, and the records that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memorywall.recall.document import is_searchable
from memorywall.records.entry import Entry
from memorywall.records.recall import EntryVector
from memorywall.service.operation_context import OperationContext


async def entries_without_vector(
    context: OperationContext, model: str, entry_ids: Sequence[str]
) -> list[Entry]:
    """Returns the searchable entries among these that have no vector of the model yet. Entries that
    are gone are left out."""
    known = await context.transaction.recall.vectors(model, list(entry_ids)) if entry_ids else {}
    wanted = [one for one in entry_ids if one not in known]
    entries = await context.transaction.entries.get_many(wanted, context.now) if wanted else []
    return [entry for entry in entries if is_searchable(entry)]


def vectors_of(entries: Iterable[Entry], rows: Iterable[Any]) -> list[EntryVector]:
    """Returns the stored form of the vectors of entries.

    rows: the vectors, a row of an array for each entry
    """
    return [
        EntryVector(entry.id, entry.version, row.astype("<f2").tobytes())
        for entry, row in zip(entries, rows, strict=True)
    ]
