"""Events about items, and the removal of items that were judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from memorywall.kinds.working_memory import ItemChange, Scratch
from memorywall.records.entry import Entry
from memorywall.records.event import EventType, WorkEventType
from memorywall.service.entries.removal import remove_entry
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

NO_POLICY = "no: this server has no promotion policy"


@dataclass(frozen=True, slots=True)
class LeavingItem:
    """An item that goes, and its entry."""

    entry: Entry
    item: Scratch


async def judge(context: OperationContext, candidates: Sequence[LeavingItem]) -> tuple[str, ...]:
    """The answer for each candidate: `yes` or `no`, a colon and the reason. It has stored what it
    promotes."""
    return (NO_POLICY,) * len(candidates)


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


async def remove_judged(context: OperationContext, entries: Sequence[Entry]) -> None:
    """Judges items that go, together, and removes them, with one event for each task."""
    candidates = []
    for entry in entries:
        opened = await context.service.cipher.open(context.transaction, entry)
        candidates.append(LeavingItem(entry, _decode(opened.value)))
    answers = await judge(context, candidates)
    by_task: dict[tuple[str | None, str | None, str], list[ItemChange]] = {}
    for candidate, answer in zip(candidates, answers, strict=True):
        entry, item = candidate.entry, candidate.item
        change = ItemChange(
            item=item.name,
            action="evicted",
            reason=item.leaving,  # type: ignore[arg-type]
            tokens_before=item.tokens,
            promotion=answer,
        )
        place = (entry.scope.intent_id, entry.scope.task_id, entry.owner)
        by_task.setdefault(place, []).append(change)
        await remove_entry(context, EventType.EVICTED, entry, by_system=True)
    for (intent_id, task_id, agent), changes in by_task.items():
        await record_changes(context, intent_id, task_id, agent, changes)
