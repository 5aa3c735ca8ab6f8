"""Steps, ticks and items: what an agent does with its working memory on a task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from memorywall.kinds.working_memory import MOST_DEPENDENCIES, ItemChange, Scratch, WorkingPolicy
from memorywall.records.entry import Sensitivity
from memorywall.records.errors import (
    ResourceNotFoundError,
    TransitionError,
    ValidationError,
)
from memorywall.records.identifiers import is_same_name
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_name
from memorywall.tokens.estimate import estimate
from memorywall.working_memory.externalized import load_content
from memorywall.working_memory.loaded_memory import (
    LoadedWorkingMemory,
    count_tokens,
    load_working_memory,
    names_of,
    open_working_memory,
)
from memorywall.working_memory.overflow import handle_overflow
from memorywall.working_memory.steps import Outcome, end_step, tick
from memorywall.working_memory.utility import with_dependencies

LONGEST_GOAL = 4_096
_UNKNOWN = "`depends_on` names no item of this task"
_CYCLE = "`depends_on` makes the item need itself"


async def begin(
    context: OperationContext, task_id: str, goal: str, policy: WorkingPolicy | None
) -> tuple[LoadedWorkingMemory, tuple[ItemChange, ...]]:
    """Begins a step.

    goal: what the step is to achieve
    policy: None for that of the step before

    Raises ValidationError, ResourceNotFoundError, MemoryAccessError, FencedError; TransitionError
    while a step is open; DecompositionRequiredError for a budget that the items carried forward do
    not fit into.
    """
    if len(goal) > LONGEST_GOAL:
        raise ValidationError(f"`goal` may have at most {LONGEST_GOAL} characters")
    loaded = await open_working_memory(context, task_id)
    if loaded.state.is_open:
        raise TransitionError("a step is open already; end it first")
    state = msgspec.structs.replace(
        loaded.state,
        step=loaded.state.step + 1,
        is_open=True,
        goal=goal,
        policy=policy or loaded.state.policy,
    )
    await loaded.save_state(state)
    return loaded, await _fit(loaded)


async def end(
    context: OperationContext, task_id: str
) -> tuple[LoadedWorkingMemory, tuple[ItemChange, ...]]:
    """Ends the step: all items go but the marked ones and what they need. Raises TransitionError
    without an open step, and the errors of `begin`."""
    loaded = await open_working_memory(context, task_id)
    loaded.require_step()
    outcome = await _compute(loaded, partial(end_step, loaded.items, loaded.state))
    await loaded.save(outcome)
    await loaded.save_state(msgspec.structs.replace(loaded.state, is_open=False))
    return loaded, outcome.changes


async def advance(
    context: OperationContext, task_id: str
) -> tuple[LoadedWorkingMemory, tuple[ItemChange, ...]]:
    """Begins the next tick: items go whose `ttl_ops` is over. Raises like `end`."""
    loaded = await open_working_memory(context, task_id)
    loaded.require_step()
    await loaded.save_state(msgspec.structs.replace(loaded.state, tick=loaded.state.tick + 1))
    outcome = await _compute(loaded, partial(tick, loaded.items, loaded.state))
    await loaded.save(outcome)
    return loaded, outcome.changes


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
) -> tuple[LoadedWorkingMemory, tuple[ItemChange, ...]]:
    """Adds an item, or replaces the item of its name, and handles an overflow of the budget.

    Raises ValidationError for a dependency that is unknown or makes a cycle, ValueTooLargeError,
    MemoryCapacityError, DecompositionRequiredError, and the errors of `end`.
    """
    name = check_name("name", name, longest=128, without="/")
    depends_on = tuple(dict.fromkeys(depends_on))
    if len(depends_on) > MOST_DEPENDENCIES:
        raise ValidationError(f"`depends_on` may have at most {MOST_DEPENDENCIES} members")
    loaded = await open_working_memory(context, task_id)
    loaded.require_step()
    name = stored_name(loaded, name)
    depends_on = tuple(stored_name(loaded, one) for one in depends_on)
    if not set(depends_on) <= names_of(loaded.items):
        raise ValidationError(_CYCLE if name in depends_on else _UNKNOWN)
    if name in with_dependencies(loaded.items, depends_on):
        raise ValidationError(_CYCLE)
    old = next((one for one in loaded.items if one.name == name), None)
    added = loaded.state.added + (old is None)
    item = Scratch(
        name=name,
        order=added if old is None else old.order,
        content=content,
        tokens=await count_tokens(context, content),
        depends_on=depends_on,
        carry_forward=carry_forward,
        ttl_ops=ttl_ops,
        tick=loaded.state.tick,
    )
    await loaded.add(item, sensitivity)
    if old is None:
        await loaded.save_state(msgspec.structs.replace(loaded.state, added=added))
    changes = await _fit(loaded, name)
    return loaded, changes


async def mark(
    context: OperationContext, task_id: str, name: str, carry_forward: bool
) -> LoadedWorkingMemory:
    """Marks an item to stay at the end of the step, or takes the mark away. Raises
    ResourceNotFoundError and the errors of `end`."""
    loaded = await open_working_memory(context, task_id)
    loaded.require_step()
    item = find(loaded, name)
    if item.carry_forward != carry_forward:
        await loaded.change(msgspec.structs.replace(item, carry_forward=carry_forward))
    return loaded


async def read(
    context: OperationContext, task_id: str, name: str, agent: str | None
) -> tuple[LoadedWorkingMemory, Scratch]:
    """The working memory, and an item with its content, also if that was externalized.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    loaded = await load_working_memory(context, task_id, agent)
    item = find(loaded, name)
    if item.reference is None:
        return loaded, item
    content = await load_content(context, loaded.entries[item.name])
    return loaded, msgspec.structs.replace(item, content=content)


def find(loaded: LoadedWorkingMemory, name: str) -> Scratch:
    """The item of a name. Raises ResourceNotFoundError."""
    name = stored_name(loaded, name)
    for item in loaded.items:
        if item.name == name:
            return item
    raise ResourceNotFoundError("the task has no such item of working memory")


def stored_name(loaded: LoadedWorkingMemory, name: str) -> str:
    """The name of an item in the form in which it is stored; a name of no item as given."""
    names = loaded.entries
    return next((one for one in names if is_same_name(name, one)), name)


async def _compute(loaded: LoadedWorkingMemory, work: Callable[[], Outcome]) -> Outcome:
    """Computes what becomes of the items, whose texts may take long to compare."""
    size = sum(entry.size for entry in loaded.entries.values())
    return await loaded.context.transaction.compute(size, work)


async def _fit(loaded: LoadedWorkingMemory, *written: str) -> tuple[ItemChange, ...]:
    work = partial(
        handle_overflow,
        loaded.items,
        loaded.state,
        count=estimate,
        refer=loaded.refer,
        written=written,
    )
    outcome = await _compute(loaded, work)
    if outcome.changes:
        await loaded.save(outcome)
    return outcome.changes
