"""Earlier versions of entries as documents, for a search as of an instant.

The index has the present version of each entry. Entries of versioned tiers that were changed after
the instant of a search are searched in the version of that instant, by words only, because no
vectors of earlier versions are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from memorywall.recall.document import is_searchable, read
from memorywall.recall.filtering import wanted_in
from memorywall.recall.index import Index
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.parsed_query import ShardQuery
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.recall import SearchSpec
from memorywall.service.access.targets import load_target
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.tiers.table import VERSIONED_TIERS

_PAGE = 500
_OWNER = "\0earlier"
"""The owner of the shard. No agent has this name, and documents of other shards are not neighbours
of these."""


async def as_of(
    index: Index,
    transactions: OperationTransactions,
    spec: SearchSpec,
    searched: Sequence[ShardQuery],
    instant: str,
) -> tuple[list[ShardQuery], dict[str, Entry]]:
    """The shards with the readable entries of an instant only, so that what was written later moves
    no score, and a shard with the versions of entries that were changed since. Returns these
    entries by id, too."""
    found: list[ShardQuery] = []
    changed: list[str] = []
    for one in searched:
        unchanged = bytearray(len(one.shard.documents))
        for number, document in enumerate(one.shard.documents):
            if document is None or (one.readable is not None and not one.readable[number]):
                continue
            if document.updated_at <= instant:
                unchanged[number] = 1
            elif document.tier in VERSIONED_TIERS and document.created_at <= instant:
                changed.append(document.entry_id)
        part = one.shard.among(unchanged)
        found.append(ShardQuery(shard=part, readable=unchanged, wanted=one.wanted))
    shard = IndexShard(_OWNER, 0, index.weights)
    entries: dict[str, Entry] = {}
    for start in range(0, len(changed), _PAGE):
        page = await transactions.read(_load, changed[start : start + _PAGE], instant)
        await index.read_texts(page, partial(_put, shard, page, index))
        entries |= {entry.id: entry for entry in page}
        # Lets other requests run between two pages.
        await asyncio.sleep(0)
    wanted = wanted_in(shard, spec, None)
    return [*found, ShardQuery(shard=shard, readable=None, wanted=wanted)], entries


def _put(shard: IndexShard, page: Sequence[Entry], index: Index) -> None:
    for entry in page:
        shard.put(*read(entry, index.fields), index.terms)


async def _load(context: OperationContext, entry_ids: list[str], instant: str) -> list[Entry]:
    """The searchable versions of that instant that the caller may read."""
    context.decide_by_row()
    found = (await context.transaction.history.as_of(entry_ids, instant)).values()
    return [
        entry
        for entry in found
        if is_searchable(entry)
        and context.allows(Verb.READ, await load_target(context, Verb.READ, entry))
    ]
