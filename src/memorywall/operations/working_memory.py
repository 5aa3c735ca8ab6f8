"""The working memory of a task: steps, ticks, items, and what became of them."""

from __future__ import annotations

import msgspec

from memorywall.coordination.tasks import load_authorized_task
from memorywall.kinds.working_memory import ItemChange, Scratch
from memorywall.operations.binding import operation
from memorywall.records.copier import copier
from memorywall.records.errors import ValidationError
from memorywall.records.event import WorkEventType
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.working_memory import (
    LoggedChange,
    WorkingItemResponse,
    WorkingLogResponse,
    WorkingMemoryResponse,
)
from memorywall.working_memory import items
from memorywall.working_memory.loaded_memory import (
    LoadedWorkingMemory,
    load_working_memory,
    open_working_memory,
)
from memorywall.working_memory.utility import total_tokens


class _ItemEventData(msgspec.Struct):
    """The data of an event about items."""

    changes: list[ItemChange]
    step: int | None = None
    tick: int | None = None


_decode = msgspec.json.Decoder(_ItemEventData).decode


async def _recheck(context: OperationContext, call: OperationCall) -> None:
    await open_working_memory(context, call.path["task_id"])


def _shown_ids(shown: WorkingMemoryResponse) -> tuple[str, ...]:
    return tuple(item.id for item in shown.items)


@operation("list_working_items")
async def list_working_items(
    context: OperationContext, call: OperationCall
) -> WorkingMemoryResponse:
    return _view(await load_working_memory(context, call.path["task_id"], call.query.agent_id))


@operation("begin_working_step", recheck=_recheck, shows=_shown_ids)
async def begin_working_step(
    context: OperationContext, call: OperationCall
) -> WorkingMemoryResponse:
    body = call.body
    return _view(*await items.begin(context, call.path["task_id"], body.goal, body.policy))


@operation("end_working_step", recheck=_recheck, shows=_shown_ids)
async def end_working_step(context: OperationContext, call: OperationCall) -> WorkingMemoryResponse:
    return _view(*await items.end(context, call.path["task_id"]))


@operation("tick_working_step", recheck=_recheck, shows=_shown_ids)
async def tick_working_step(
    context: OperationContext, call: OperationCall
) -> WorkingMemoryResponse:
    return _view(*await items.advance(context, call.path["task_id"]))


@operation("explain_working_memory")
async def explain_working_memory(
    context: OperationContext, call: OperationCall
) -> WorkingLogResponse:
    task, _ = await load_authorized_task(context, call.path["task_id"])
    events = await context.transaction.events.list_of_intent(
        task.intent_id, call.query.after, call.query.limit, kind=WorkEventType.TASK_WORKING_MEMORY
    )
    changes = []
    for event in events:
        if event.task_id == task.id and event.data is not None:
            data = _decode(event.data)
            changes += [
                LoggedChange(
                    seq=event.seq,
                    timestamp=event.timestamp,
                    agent_id=event.agent_id,
                    step=data.step,
                    tick=data.tick,
                    change=change,
                )
                for change in data.changes
            ]
    is_full = len(events) == call.query.limit
    return WorkingLogResponse(changes=changes, next=events[-1].seq if is_full else None)


@operation("get_working_item")
async def get_working_item(context: OperationContext, call: OperationCall) -> WorkingItemResponse:
    path = call.path
    loaded, item = await items.read(context, path["task_id"], path["name"], call.query.agent_id)
    return _item_view(loaded, item)


@operation("keep_working_item", shows=_shown_ids)
async def keep_working_item(
    context: OperationContext, call: OperationCall
) -> WorkingMemoryResponse:
    body = call.body
    if body.content is None:
        raise ValidationError("`content` must be a text or a JSON value, and not null")
    kept = await items.keep(
        context,
        call.path["task_id"],
        call.path["name"],
        body.content,
        depends_on=tuple(body.depends_on),
        carry_forward=body.carry_forward,
        ttl_ops=body.ttl_ops,
        sensitivity=body.sensitivity,
    )
    return _view(*kept)


@operation("mark_working_item", shows=_shown_ids)
async def mark_working_item(
    context: OperationContext, call: OperationCall
) -> WorkingMemoryResponse:
    path = call.path
    return _view(await items.mark(context, path["task_id"], path["name"], call.body.carry_forward))


def _view(
    loaded: LoadedWorkingMemory, changes: tuple[ItemChange, ...] = ()
) -> WorkingMemoryResponse:
    return WorkingMemoryResponse(
        task_id=loaded.task.id,
        agent_id=loaded.owner,
        step=loaded.state.step,
        is_open=loaded.state.is_open,
        tick=loaded.state.tick,
        goal=loaded.state.goal,
        policy=loaded.state.policy,
        tokens=total_tokens(loaded.items),
        items=[_item_view(loaded, item) for item in loaded.items],
        changes=list(changes),
    )


_item = copier(Scratch, WorkingItemResponse, given=["id"])


def _item_view(loaded: LoadedWorkingMemory, item: Scratch) -> WorkingItemResponse:
    return _item(item, id=loaded.entries[item.name].id)
