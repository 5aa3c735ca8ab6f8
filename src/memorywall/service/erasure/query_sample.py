"""A sample of the vectors of searches: at most 256 of a tenant, of the last seven days.

A search notes its vector in memory (`query_notes.py`), and a job stores the notes. The vectors are
sealed with the data key of the agent that searched.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable

from memorywall.kinds.spec import ABOUT
from memorywall.records.clock import format_instant
from memorywall.records.query_vector import QueryVector
from memorywall.service.entries.record_writes import insert_record
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.query_notes import SAMPLE_SIZE, QueryNote, rank_of
from memorywall.storage.sql.record_table import QUERY_VECTORS

SAMPLE_MILLISECONDS = 7 * 24 * 3_600_000


async def store_notes(context: OperationContext, notes: Iterable[QueryNote]) -> None:
    """Stores notes, and removes what exceeds the sample.

    A note about a person about whom nothing is stored is left out: the person may have been
    forgotten after the search.
    """
    rows = context.transaction.records(QUERY_VECTORS)
    known: dict[tuple[str, ...], tuple[str, ...] | None] = {}
    for note in notes:
        if note.subjects not in known:
            known[note.subjects] = await _known_digests(context, note.subjects)
        subjects = known[note.subjects]
        if subjects is None:
            continue
        await insert_record(
            context,
            QueryVector(
                tenant=context.tenant,
                id=note.id,
                agent_id=note.agent,
                at=note.at,
                model=note.model,
                subjects=subjects,
                vector=b64encode(note.vector).decode(),
            ),
        )
    ids = [one.id for one in await rows.page()]
    for query_id in sorted(ids, key=rank_of)[SAMPLE_SIZE:]:
        await rows.remove(query_id)


async def has_old_queries(context: OperationContext) -> bool:
    """Returns whether any vector of a search is too old."""
    return await _first_old(context) is not None


async def remove_old_queries(context: OperationContext) -> int:
    """Removes the vectors of searches that are too old; returns their number."""
    removed = 0
    while (old := await _first_old(context)) is not None:
        removed += await context.transaction.records(QUERY_VECTORS).remove(old.id)
    return removed


async def _first_old(context: OperationContext) -> QueryVector | None:
    """Returns the oldest vector if it is too old."""
    oldest_kept = format_instant(context.moment - SAMPLE_MILLISECONDS)
    # Ids begin with their instant, so the first one is the oldest.
    first = await context.transaction.records(QUERY_VECTORS).page(limit=1)
    return first[0] if first and first[0].at <= oldest_kept else None


async def remove_queries(context: OperationContext, is_meant: Callable[[QueryVector], bool]) -> int:
    """Removes the matching vectors of searches; returns their number."""
    rows = context.transaction.records(QUERY_VECTORS)
    return sum([await rows.remove(one.id) for one in await rows.page() if is_meant(one)])


async def _known_digests(
    context: OperationContext, subjects: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Returns the digests of people; None if nothing about one of them is stored.

    subjects: names or digests
    """
    forms: dict[str, set[str]] = {}
    digest_of, now = context.service.cipher.literal_digest, context.now
    for subject in subjects:
        digest = await digest_of(context.transaction, subject, now)
        forms.setdefault(digest, {digest}).add(subject)
    for names in forms.values():
        if not await context.transaction.edges.sources(ABOUT, sorted(names), 1):
            return None
    return tuple(forms)
