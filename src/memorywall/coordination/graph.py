"""The graph of intents: parents and dependencies (RFC-0002).

Every function returns only intents that the caller may read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from memorywall.coordination.access import is_allowed, load_authorized_intent
from memorywall.coordination.intents import at_version
from memorywall.records.decision import Verb
from memorywall.records.errors import RequestError, ResourceNotFoundError, ValidationError
from memorywall.records.event import WorkEventType
from memorywall.records.intent import Intent, IntentStatus
from memorywall.service.entries.record_writes import replace_record
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

MOST_VISITED = 10_000
"""The most intents of a graph walk."""
_CYCLE = "an intent must not depend on itself, directly or through other intents"
_TOO_LARGE = "the graph is too large to be shown completely"

Neighbours = Callable[[OperationContext, Intent], Awaitable[list[Intent]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class IntentEdge:
    """An edge from a parent to a child, or from a dependency to its dependent."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """An intent and its descendants."""

    root: Intent
    nodes: list[Intent]
    edges: list[IntentEdge]


async def children(context: OperationContext, intent: Intent) -> list[Intent]:
    """The children of an intent."""
    return await context.transaction.intents.children(intent.id)


async def parent(context: OperationContext, intent: Intent) -> list[Intent]:
    """The parent of an intent, as a list of at most one."""
    return await _known(context, (intent.parent_intent_id,))


async def dependencies(context: OperationContext, intent: Intent) -> list[Intent]:
    """The intents that an intent depends on."""
    return await _known(context, intent.depends_on)


async def dependents(context: OperationContext, intent: Intent) -> list[Intent]:
    """The intents that depend on an intent."""
    return await context.transaction.intents.dependents(intent.id)


async def neighbours(
    context: OperationContext, intent_id: str, step: Neighbours, *, far: bool = False
) -> list[Intent]:
    """The intents at one step from an intent, or with `far` at any number of steps, nearest
    first."""
    intent, _ = await load_authorized_intent(context, Verb.READ, intent_id)
    return await _walk(context, intent, step, far=far)


async def children_by_readiness(
    context: OperationContext, intent_id: str, *, ready: bool
) -> list[Intent]:
    """The children whose dependencies are all completed; with `ready` false, the other children."""
    intent, _ = await load_authorized_intent(context, Verb.READ, intent_id)
    below = await _walk(context, intent, children, far=False)
    return [
        child
        for child in below
        if ready
        is all(
            other.status is IntentStatus.COMPLETED for other in await dependencies(context, child)
        )
    ]


async def graph(context: OperationContext, intent_id: str) -> Graph:
    """An intent and its descendants, with their edges."""
    root, _ = await load_authorized_intent(context, Verb.READ, intent_id)
    below = await _walk(context, root, children, far=True)
    nodes = [root, *below]
    shown = {node.id for node in nodes}
    edges = []
    for node in nodes:
        if node.parent_intent_id in shown and node.parent_intent_id is not None:
            edges.append(IntentEdge(source=node.parent_intent_id, target=node.id, kind="parent"))
        edges.extend(
            IntentEdge(source=other, target=node.id, kind="dependency")
            for other in node.depends_on
            if other in shown
        )
    return Graph(root=root, nodes=nodes, edges=edges)


async def add_dependency(
    context: OperationContext, intent_id: str, version: int, other_id: str
) -> Intent:
    """Adds a dependency on another intent that the caller may read.

    Raises ResourceNotFoundError, MemoryAccessError, ResourceConflictError, and RequestError for a
    dependency of the intent on itself, directly or through other intents.
    """
    intent = await at_version(context, intent_id, version)
    other, _ = await load_authorized_intent(context, Verb.READ, other_id)
    if await _depends_on(context, other, intent.id):
        raise RequestError(_CYCLE)
    depends_on = tuple(dict.fromkeys((*intent.depends_on, other.id)))
    return await _save(context, intent, depends_on, WorkEventType.DEPENDENCY_ADDED, other.id)


async def remove_dependency(
    context: OperationContext, intent_id: str, version: int, other_id: str
) -> Intent:
    """Removes a dependency. Raises like `add_dependency`."""
    intent = await at_version(context, intent_id, version)
    if other_id not in intent.depends_on:
        raise ResourceNotFoundError("the intent has no such dependency")
    depends_on = tuple(one for one in intent.depends_on if one != other_id)
    return await _save(context, intent, depends_on, WorkEventType.DEPENDENCY_REMOVED, other_id)


async def _walk(
    context: OperationContext, start: Intent, step: Neighbours, *, far: bool
) -> list[Intent]:
    """The readable intents that the steps lead to. The walk does not pass unreadable intents."""
    seen = {start.id}
    found: list[Intent] = []
    edge = [start]
    while edge:
        following: list[Intent] = []
        for intent in edge:
            for one in await step(context, intent):
                if one.id in seen:
                    continue
                seen.add(one.id)
                if len(seen) > MOST_VISITED:
                    raise ValidationError(_TOO_LARGE)
                if await is_allowed(context, Verb.READ, one):
                    following.append(one)
        found.extend(following)
        edge = following if far else []
    return found


async def _depends_on(context: OperationContext, intent: Intent, other_id: str) -> bool:
    """Whether an intent is the other, or depends on it directly or through any other intents."""
    seen = {intent.id}
    edge = [intent]
    while edge:
        if any(one.id == other_id for one in edge):
            return True
        following = []
        for one in edge:
            for found in await dependencies(context, one):
                if found.id not in seen:
                    seen.add(found.id)
                    following.append(found)
        if len(seen) > MOST_VISITED:
            raise ValidationError(_TOO_LARGE)
        edge = following
    return False


async def _known(context: OperationContext, ids: tuple[str | None, ...]) -> list[Intent]:
    found = []
    for one in ids:
        intent = None if one is None else await context.transaction.intents.get(one)
        if intent is not None:
            found.append(intent)
        await context.transaction.give_way()
    return found


async def _save(
    context: OperationContext,
    intent: Intent,
    depends_on: tuple[str, ...],
    kind: WorkEventType,
    other_id: str,
) -> Intent:
    changed = msgspec.structs.replace(
        intent, depends_on=depends_on, version=intent.version + 1, updated_at=context.now
    )
    await replace_record(context, changed)
    await append_work_event(context, kind, intent_id=intent.id, data={"dependency_id": other_id})
    return changed
