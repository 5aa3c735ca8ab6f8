"""Embeds entries before their turn: those of a write that waits until they are found
(`wait_for=indexed`), and the newest ones before a search.

The writes are committed before, so a failure loses nothing: the embedding job embeds the entries in
their turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memorywall.recall.embedding_lag import EMBED, embedding_lag
from memorywall.recall.entry_vectors import compute_vectors, entries_without_vector
from memorywall.records.entry import Entry
from memorywall.records.errors import EntryNotIndexedError, UnavailableError
from memorywall.records.principal import Maintenance
from memorywall.records.recall import EntryVector
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.maintenance import inspect, maintain

if TYPE_CHECKING:
    from memorywall.recall.index import Index

FINDABLE_SECONDS = 5.0
"""The seconds after which a write no longer waits for its vectors."""
_AT_ONCE = 64
_FEW = 16
"""The most changes without an embedding that a search embeds before it begins."""
_MOMENT_SECONDS = 0.5
"""The seconds after which a search begins although the newest entries are not embedded."""


async def make_findable(index: Index, tenant: str, entry_ids: Sequence[str]) -> None:
    """Returns when a search finds these entries by words and by meaning.

    Words are found as soon as an entry is committed. Without an embedder there is nothing else to
    wait for. Entries that are gone or have no searchable text are ignored.

    Raises EntryNotIndexedError, with the backlog of the tenant, if the embedder does not answer
    within FINDABLE_SECONDS.
    """
    if index.embedder is None:
        return
    model, deadline = index.embedder.model, time.monotonic() + FINDABLE_SECONDS
    for start in range(0, len(entry_ids), _AT_ONCE):
        some = entry_ids[start : start + _AT_ONCE]

        async def find(context: OperationContext, some: Sequence[str] = some) -> list[Entry]:
            return await entries_without_vector(context, model, some)

        entries = await inspect(index.services, tenant, Maintenance.EMBED, find)
        if not entries:
            continue

        async def embed(texts: Sequence[str]) -> Any:
            patience = max(0.0, deadline - time.monotonic())
            return await index.embed(texts, patience=patience, documents=True)

        try:
            vectors = await compute_vectors(embed, entries, index.fields)
        except (UnavailableError, TimeoutError):
            raise await _not_indexed(index, tenant, model) from None

        async def store(
            context: OperationContext, vectors: Sequence[EntryVector] = vectors
        ) -> None:
            await context.transaction.recall.put_vectors(model, vectors)

        await maintain(index.services, tenant, Maintenance.EMBED, store)


async def embed_latest(index: Index, tenant: str) -> None:
    """Embeds the entries of the last few changes, so that a search right after a write finds them
    by meaning.

    Does nothing without an embedder in this process, if more changes are waiting, and if an
    administrator has paused the job. Gives up after a moment and after an error.
    """
    if index.embedder is None or not index.embedder.is_local:
        return
    model = index.embedder.model

    async def find_latest(context: OperationContext) -> list[str]:
        if not 0 < await embedding_lag(context.transaction, model) <= _FEW:
            return []
        job = await context.transaction.jobs.get(EMBED)
        if job is not None and job.paused:
            return []
        position = await context.transaction.recall.position(model)
        changes, _ = await context.transaction.events.list_of_entries(position, _FEW)
        return list(dict.fromkeys(one.entry_id for one in changes if not one.ended))

    latest = await inspect(index.services, tenant, Maintenance.EMBED, find_latest)
    if latest:
        with suppress(EntryNotIndexedError, TimeoutError):
            async with asyncio.timeout(_MOMENT_SECONDS):
                await make_findable(index, tenant, latest)


async def _not_indexed(index: Index, tenant: str, model: str) -> EntryNotIndexedError:
    async def count(context: OperationContext) -> int:
        return await embedding_lag(context.transaction, model)

    backlog = await inspect(index.services, tenant, Maintenance.EMBED, count)
    return EntryNotIndexedError(
        "the write is stored, but its entries are found by words only until they are embedded;"
        f" {backlog} changes are waiting for the embedder",
        backlog=backlog,
    )
