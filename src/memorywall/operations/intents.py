"""Intents, their state and their log."""

from __future__ import annotations

from functools import partial

from memorywall.coordination import intents
from memorywall.coordination.access import check_readable
from memorywall.coordination.intents import NewIntent, Patch
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.event_streams import event_stream
from memorywall.operations.filters import instant
from memorywall.records.errors import MemoryAccessError, RequestError
from memorywall.records.identifiers import is_same_name
from memorywall.records.intent import Intent
from memorywall.service.entries.record_writes import open_record
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.events import EventPageResponse, EventResponse, event_view
from memorywall.wire.intents import (
    IntentEventQuery,
    IntentListResponse,
    IntentResponse,
    intent_view,
)
from memorywall.wire.results import ResultStream


async def show_intent(context: OperationContext, intent: Intent) -> IntentResponse:
    """Returns the response for an intent, with its state in clear text."""
    return intent_view(await open_record(context, intent))


async def recheck_own_intent(context: OperationContext, call: OperationCall) -> None:
    """Raises MemoryAccessError unless the caller may still read an intent that it created."""
    await check_readable(context)


async def recheck_intent(context: OperationContext, call: OperationCall) -> None:
    """Raises MemoryAccessError unless the caller may still read its write to an intent."""
    await check_readable(context, call.path["intent_id"])


@operation("create_intent", recheck=recheck_own_intent)
async def create_intent(context: OperationContext, call: OperationCall) -> IntentResponse:
    return await make_intent(context, call, call.body.parent_intent_id)


async def make_intent(
    context: OperationContext, call: OperationCall, parent: str | None
) -> IntentResponse:
    """Creates the intent of a request, with or without a parent."""
    body = call.body
    creator = body.created_by
    if creator is not None and not is_same_name(creator, context.principal.id):
        raise MemoryAccessError("`created_by` must be the agent this request speaks for")
    constraints = body.constraints
    result = await intents.create(
        context,
        NewIntent(
            title=body.title,
            description=body.description,
            state=body.state,
            constraints={"rules": constraints} if isinstance(constraints, list) else constraints,
            parent_intent_id=parent,
            depends_on=tuple(body.depends_on),
        ),
    )
    return await show_intent(context, result)


@operation("get_intent")
async def get_intent(context: OperationContext, call: OperationCall) -> IntentResponse:
    return await show_intent(context, await intents.get(context, call.path["intent_id"]))


@operation("list_intents")
async def list_intents(context: OperationContext, call: OperationCall) -> IntentListResponse:
    asked = call.query
    page = await intents.list_intents(context, asked.status, asked.limit, asked.offset)
    return IntentListResponse(
        intents=[await show_intent(context, one) for one in page.intents],
        total=page.total,
        limit=asked.limit,
        offset=asked.offset,
    )


@operation("patch_intent_state")
async def patch_intent_state(context: OperationContext, call: OperationCall) -> IntentResponse:
    patches = [Patch(op=one.op, path=one.path, value=one.value) for one in call.body.patches]
    result = await intents.patch_state(context, call.path["intent_id"], call.version, patches)
    return await show_intent(context, result)


@operation("set_intent_status")
async def set_intent_status(context: OperationContext, call: OperationCall) -> IntentResponse:
    result = await intents.set_status(
        context,
        call.path["intent_id"],
        call.version,
        call.body.status,
        call.body.reason,
    )
    return await show_intent(context, result)


@operation("log_intent_event", recheck=recheck_intent)
async def log_intent_event(context: OperationContext, call: OperationCall) -> EventResponse:
    body = call.body
    payload = dict(body.payload)
    for name in ("trace_id", "parent_event_id"):
        if getattr(body, name) is not None:
            payload.setdefault(name, getattr(body, name))
    event = await intents.log_event(
        context, call.path["intent_id"], body.event_type, payload, body.actor
    )
    return event_view(event)


@multi_transaction_operation("list_intent_events")
async def list_intent_events(
    transactions: OperationTransactions,
) -> EventPageResponse | ResultStream:
    call = transactions.call
    asked, intent_id = call.query, call.path["intent_id"]
    if call.wants_stream:
        if asked.event_type is not None or asked.since is not None:
            raise RequestError("a stream tells everything; leave `event_type` and `since` out")
        return await _follow(transactions, intent_id, asked.after)
    return await transactions.read(_show_events, intent_id, asked)


async def _show_events(
    context: OperationContext, intent_id: str, asked: IntentEventQuery
) -> EventPageResponse:
    after, kind, since = asked.after, asked.event_type, instant("since", asked.since)
    events = await intents.list_events(
        context, intent_id, after, asked.limit, kind=kind, since=since
    )
    views = await context.build(partial(event_view, with_values=True), events)
    return EventPageResponse(events=views, next=events[-1].seq if events else asked.after)


@multi_transaction_operation("subscribe_intent")
async def subscribe_intent(transactions: OperationTransactions) -> ResultStream:
    intent_id, after = transactions.call.path["intent_id"], transactions.call.query.after
    if after is None:
        after = await transactions.read(intents.last_event, intent_id)
    return await _follow(transactions, intent_id, after)


async def _follow(transactions: OperationTransactions, intent_id: str, after: int) -> ResultStream:
    start = after if transactions.call.resume_after is None else transactions.call.resume_after
    pages = intents.follow_events(transactions, intent_id, start)
    return await event_stream(
        transactions, pages, lambda event: event_view(event, with_values=True)
    )
