"""Vectors of entries: which entries lack them, and their computation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memorywall.recall.document import AuthorDateFields, is_searchable, meanings_of
from memorywall.records.entry import Entry
from memorywall.records.recall import EntryVector
from memorywall.service.requests.operation_context import OperationContext

_TEXTS_AT_ONCE = 64


async def entries_without_vector(
    context: OperationContext, model: str, entry_ids: Sequence[str]
) -> list[Entry]:
    """Returns the searchable entries among these that have no vector of the model yet. Entries that
    are gone are left out."""
    known = await context.transaction.recall.vectors(model, list(entry_ids)) if entry_ids else {}
    wanted = [one for one in entry_ids if one not in known]
    entries = await context.transaction.entries.get_many(wanted, context.now) if wanted else []
    return [entry for entry in entries if is_searchable(entry)]


async def compute_vectors(
    embed: Callable[[Sequence[str]], Awaitable[Any]],
    entries: Sequence[Entry],
    fields: AuthorDateFields,
) -> list[EntryVector]:
    """Returns the stored form of the vectors of entries: that of the whole text, followed by those
    of its passages.

    embed: the vectors of texts, one row each; its errors are raised
    """
    # The base install has no numpy and no embedder.
    from memorywall.recall.stored_vectors import encode

    texts = await asyncio.to_thread(lambda: [meanings_of(one, fields) for one in entries])
    waiting = [text for some in texts for text in some]
    rows: list[bytes] = []
    for start in range(0, len(waiting), _TEXTS_AT_ONCE):
        found = await embed(waiting[start : start + _TEXTS_AT_ONCE])
        rows += encode(found)
    each = iter(rows)
    return [
        EntryVector(entry.id, entry.version, b"".join(next(each) for _ in some))
        for entry, some in zip(entries, texts, strict=True)
    ]
