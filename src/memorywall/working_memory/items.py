"""Steps, ticks and items: what an agent does with its working memory on a task."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.kinds.working_memory import MOST_DEPENDENCIES, ItemChange, Scratch, WorkingPolicy
from memorywall.records.entry import Sensitivity
from memorywall.records.errors import (
    ResourceNotFoundError,
    TransitionError,
    ValidationError,
)
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name
from memorywall.tokens.estimate import estimate
from memorywall.working_memory.desk import Desk, enter, look, names_of, tokens_of
from memorywall.working_memory.externalized import load_content
from memorywall.working_memory.overflow import handle_overflow
from memorywall.working_memory.steps import end_step, tick
from memorywall.working_memory.utility import with_dependencies

LONGEST_GOAL = 4_096
_UNKNOWN = "`depends_on` names no item of this task"
_CYCLE = "`depends_on` makes the item need itself"


async def begin(
    context: OperationContext, task_id: str, goal: str, policy: WorkingPolicy | None
) -> tuple[Desk, tuple[ItemChange, ...]]:
    """Begins a step.

    goal: what the step is to achieve
    policy: None for that of the step before

    Raises ValidationError, ResourceNotFoundError, MemoryAccessError, FencedError; TransitionError
    while a step is open; DecompositionRequiredError for a budget that the items carried forward do
    not fit into.
    """
    if len(goal) > LONGEST_GOAL:
        raise ValidationError(f"`goal` may have at most {LONGEST_GOAL} characters")
    desk = await enter(context, task_id)
    if desk.state.is_open:
        raise TransitionError("a step is open already; end it first")
    state = msgspec.structs.replace(
        desk.state,
        step=desk.state.step + 1,
        is_open=True,
        goal=goal,
        policy=policy or desk.state.policy,
    )
    await desk.save_state(state)
    return desk, await _fit(desk)


async def end(context: OperationContext, task_id: str) -> tuple[Desk, tuple[ItemChange, ...]]:
    """Ends the step: all items go but the marked ones and what they need. Raises TransitionError
    without an open step, and the errors of `begin`."""
    desk = await enter(context, task_id)
    desk.require_step()
    outcome = end_step(desk.items, desk.state)
    await desk.save(outcome)
    await desk.save_state(msgspec.structs.replace(desk.state, is_open=False))
    return desk, outcome.changes


async def advance(context: OperationContext, task_id: str) -> tuple[Desk, tuple[ItemChange, ...]]:
    """Begins the next tick: items go whose `ttl_ops` is over. Raises like `end`."""
    desk = await enter(context, task_id)
    desk.require_step()
    await desk.save_state(msgspec.structs.replace(desk.state, tick=desk.state.tick + 1))
    outcome = tick(desk.items, desk.state)
    await desk.save(outcome)
    return desk, outcome.changes


async def keep(
    context: OperationContext,
    task_id: str,
    name: str,
    content: Any,
    *,
    depends_on: tuple[str, ...],
    carry_forward: bool,
    ttl_ops: int | None,
    sensitivity: Sensitivity,
) -> tuple[Desk, tuple[ItemChange, ...]]:
    """Adds an item, or replaces the item of its name, and handles an overflow of the budget.

    Raises ValidationError for a dependency that is unknown or makes a cycle, ValueTooLargeError,
    MemoryCapacityError, DecompositionRequiredError, and the errors of `end`.
    """
    check_name("name", name, longest=128, without="/")
    depends_on = tuple(dict.fromkeys(depends_on))
    if len(depends_on) > MOST_DEPENDENCIES:
        raise ValidationError(f"`depends_on` may have at most {MOST_DEPENDENCIES} members")
    desk = await enter(context, task_id)
    desk.require_step()
    if not set(depends_on) <= names_of(desk.items):
        raise ValidationError(_CYCLE if name in depends_on else _UNKNOWN)
    if name in with_dependencies(desk.items, depends_on):
        raise ValidationError(_CYCLE)
    old = next((one for one in desk.items if one.name == name), None)
    added = desk.state.added + (old is None)
    item = Scratch(
        name=name,
        order=added if old is None else old.order,
        content=content,
        tokens=tokens_of(content),
        depends_on=depends_on,
        carry_forward=carry_forward,
        ttl_ops=ttl_ops,
        tick=desk.state.tick,
    )
    await desk.add(item, sensitivity)
    if old is None:
        await desk.save_state(msgspec.structs.replace(desk.state, added=added))
    changes = await _fit(desk, name)
    return desk, changes


async def mark(context: OperationContext, task_id: str, name: str, carry_forward: bool) -> Desk:
    """Marks an item to stay at the end of the step, or takes the mark away. Raises
    ResourceNotFoundError and the errors of `end`."""
    desk = await enter(context, task_id)
    desk.require_step()
    item = find(desk, name)
    if item.carry_forward != carry_forward:
        await desk.change(msgspec.structs.replace(item, carry_forward=carry_forward))
    return desk


async def read(
    context: OperationContext, task_id: str, name: str, agent: str | None
) -> tuple[Desk, Scratch]:
    """The working memory, and an item with its content, also if that was externalized.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    desk = await look(context, task_id, agent)
    item = find(desk, name)
    if item.reference is None:
        return desk, item
    content = await load_content(context, desk.entries[name])
    return desk, msgspec.structs.replace(item, content=content)


def find(desk: Desk, name: str) -> Scratch:
    """The item of a name. Raises ResourceNotFoundError."""
    for item in desk.items:
        if item.name == name:
            return item
    raise ResourceNotFoundError("the task has no such item of working memory")


async def _fit(desk: Desk, *written: str) -> tuple[ItemChange, ...]:
    outcome = handle_overflow(
        desk.items, desk.state, count=estimate, refer=desk.refer, written=written
    )
    if outcome.changes:
        await desk.save(outcome)
    return outcome.changes
