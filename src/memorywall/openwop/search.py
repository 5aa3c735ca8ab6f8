"""Search in a memory by meaning, through recall."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.openwop.adapter import MemoryView, filter_of
from memorywall.openwop.references import namespace_of
from memorywall.recall.index import index_of
from memorywall.recall.search import search
from memorywall.records.recall import MOST_HITS, SearchSpec
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.openwop import MemoryEntryResponse, MemoryQuery


async def search_memory(
    transactions: OperationTransactions, memory_ref: str, asked: MemoryQuery
) -> Sequence[MemoryEntryResponse]:
    """Returns the entries of a memory that match `query` best, the best first; none for a malformed
    reference. Raises ValidationError."""
    namespace = namespace_of(memory_ref)
    if namespace is None:
        return []
    most = min(asked.limit or MOST_HITS, MOST_HITS)
    wanted = filter_of(transactions.principal.tenant, namespace, most, asked.tag)
    spec = SearchSpec(query=asked.query or "", wanted=wanted, limit=most)
    page = await search(index_of(transactions), transactions, spec)
    ids = [hit.entry.id for hit in page.hits]
    return await transactions.read(_read, memory_ref, ids)


async def _read(
    context: OperationContext, memory_ref: str, ids: Sequence[str]
) -> Sequence[MemoryEntryResponse]:
    adapter = MemoryView(context)
    context.decide_by_row()
    found = [await adapter.get(memory_ref, one) for one in ids]
    return [one for one in found if one is not None]
