"""Compiled contexts: compiling, showing again, and feedback."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from memorywall.context import creation, feedback, storing
from memorywall.context.anthropic_messages import as_anthropic
from memorywall.context.formats import as_text, tools_of
from memorywall.context.item import Compiled, ContextItem, Dropped, are_large
from memorywall.context.openai_messages import as_openai
from memorywall.context.rendering import marks_of, needs_check
from memorywall.context.response_items import as_responses
from memorywall.context.showing import Rebuilt, load_context, rebuild
from memorywall.kinds.contexts import ContextPart, StoredContext
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.contexts import (
    ContextItemResponse,
    ContextOutcomeResponse,
    ContextResponse,
    DroppedItem,
    FormatName,
    SegmentResponse,
)

_MOST_DROPPED = 1_000


@multi_transaction_operation("create_context")
async def create_context(transactions: OperationTransactions) -> ContextResponse:
    created = await creation.create(transactions, transactions.call.body)
    body, compiled = created.body, created.compiled

    def show() -> tuple[ContextResponse, tuple[ContextPart, ...], bytes]:
        digests = storing.digests_of(compiled)
        parts = storing.stored_parts(compiled, digests) if body.store else ()
        shown = view(compiled, body.strategy, body.format, digests)
        return shown, parts, storing.encode(parts)

    shown, parts, encoded = await creation.compute(
        transactions, are_large(compiled.all_items), show
    )
    context_id = None
    if body.store:
        context_id = await transactions.write(storing.store, created, parts, encoded)
    return replace(
        shown,
        id=context_id,
        turns_omitted=created.found.turns_omitted,
        lessons=created.found.lessons,
        dropped=[_dropped(one) for one in compiled.dropped[:_MOST_DROPPED]],
    )


@multi_transaction_operation("get_context")
async def get_context(transactions: OperationTransactions) -> ContextResponse:
    entry, stored, rebuilt = await transactions.read(_rebuild, transactions.call.path["context_id"])
    compiled, changed, erased = rebuilt

    def show() -> ContextResponse:
        digests = storing.digests_of(compiled)
        return view(compiled, stored.strategy, transactions.call.query.format, digests)

    shown = await creation.compute(transactions, are_large(compiled.all_items), show)
    return replace(shown, id=entry.id, changed=changed, erased=erased)


async def _rebuild(
    context: OperationContext, context_id: str
) -> tuple[Entry, StoredContext, Rebuilt]:
    entry, stored = await load_context(context, context_id, Verb.READ)
    return entry, stored, await rebuild(context, entry, stored)


@operation("add_context_outcome")
async def add_context_outcome(
    context: OperationContext, call: OperationCall
) -> ContextOutcomeResponse:
    context_id, body = call.path["context_id"], call.body
    counted = await feedback.add(context, context_id, body)
    return ContextOutcomeResponse(id=context_id, outcome=body.outcome, counted=counted)


_dropped = copier(Dropped, DroppedItem)
_item = copier(
    ContextItem,
    ContextItemResponse,
    given=["digest", "content"],
    marks=marks_of,
    quality=lambda item: item.quality or UNSET,
)


def view(
    compiled: Compiled, strategy: str, wanted: FormatName, digests: dict[str, str]
) -> ContextResponse:
    """Returns a context in a format.

    digests: of the items, by id
    """
    segments = [
        SegmentResponse(
            name=segment.name,
            budget=segment.budget,
            tokens=segment.tokens,
            items=[
                _item(
                    item,
                    digest=digests[item.id],
                    content=item.content if wanted == "segments" or needs_check(item) else None,
                )
                for item in segment.items
            ],
        )
        for segment in compiled.segments
    ]
    shown = ContextResponse(
        id=None,
        window=compiled.window,
        reserve=compiled.reserve,
        tokens=compiled.tokens,
        strategy=strategy,
        segments=segments,
        tools=tools_of(compiled, wanted),
    )
    if wanted == "openai":
        return replace(shown, messages=as_openai(compiled))
    if wanted == "responses":
        return replace(shown, messages=as_responses(compiled))
    if wanted == "anthropic":
        found = as_anthropic(compiled)
        return replace(shown, system=found["system"], messages=found["messages"])
    return replace(shown, text=as_text(compiled)) if wanted == "text" else shown
