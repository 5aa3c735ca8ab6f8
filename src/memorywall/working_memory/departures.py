"""Events about items, and the removal of items that were judged; `jobs/judge_items.py` judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from memorywall.kinds.working_memory import ItemChange, Scratch
from memorywall.records.entry import Entry
from memorywall.records.event import EventType, WorkEventType
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

_decode = msgspec.json.Decoder(Scratch).decode


async def record_changes(
    context: OperationContext,
    intent_id: str | None,
    task_id: str | None,
    agent: str,
    changes: Iterable[ItemChange],
    **position: int,
) -> None:
    """Appends one event with the changes of items, none without changes.

    position: the step and the tick, where they are known
    """
    told: list[Any] = msgspec.to_builtins(list(changes))
    if told:
        await append_work_event(
            context,
            WorkEventType.TASK_WORKING_MEMORY,
            intent_id=intent_id,
            task_id=task_id,
            agent=agent,
            data={**position, "changes": told},
            by_system=context.is_system,
        )


async def remove_judged(
    context: OperationContext, entries: Iterable[Entry], answers: Mapping[str, str]
) -> None:
    """Removes items that go, with one event for each task.

    answers: by the id of the entry, whether the item was promoted before: `yes` or `no`, a colon
        and the rule
    """
    by_task: dict[tuple[str | None, str | None, str], list[ItemChange]] = {}
    for entry in entries:
        opened = await context.service.cipher.open(context.transaction, entry)
        item = _decode(opened.value)
        change = ItemChange(
            item=item.name,
            action="evicted",
            reason=item.leaving,  # type: ignore[arg-type]
            tokens_before=item.tokens,
            promotion=answers[entry.id],
        )
        place = (entry.scope.intent_id, entry.scope.task_id, entry.owner)
        by_task.setdefault(place, []).append(change)
        await remove_entry(context, EventType.EVICTED, entry, by_system=True)
    for (intent_id, task_id, agent), changes in by_task.items():
        await record_changes(context, intent_id, task_id, agent, changes)
