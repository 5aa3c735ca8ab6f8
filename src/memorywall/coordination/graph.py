"""How intents hang together: parents, dependencies, and what follows from them (RFC-0002).

Whatever is asked for, only intents the caller may read are shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from memorywall.coordination.access import enter_intent, is_allowed
from memorywall.coordination.intents import at_version
from memorywall.records.decision import Verb
from memorywall.records.errors import RequestError, ResourceNotFoundError, ValidationError
from memorywall.records.event import WorkEvent
from memorywall.records.intent import Intent, IntentStatus
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door
from memorywall.wall.log import record_work

MOST_VISITED = 10_000
"""How many intents a walk goes to at most."""
_CYCLE = "an intent cannot depend on itself, by whatever way"
_TOO_LARGE = "the graph is too large to be shown whole"

Neighbours = Callable[[Transaction, Intent], Awaitable[list[Intent]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """From a parent to its child, or from a dependency to what depends on it."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """An intent and everything below it."""

    root: Intent
    nodes: list[Intent]
    edges: list[Edge]


async def children(transaction: Transaction, intent: Intent) -> list[Intent]:
    """The intents whose parent this is."""
    return await transaction.intents.children(intent.tenant, intent.id)


async def parent(transaction: Transaction, intent: Intent) -> list[Intent]:
    """The intent above, if there is one."""
    return await _known(transaction, intent.tenant, (intent.parent_intent_id,))


async def dependencies(transaction: Transaction, intent: Intent) -> list[Intent]:
    """The intents this one depends on."""
    return await _known(transaction, intent.tenant, intent.depends_on)


async def dependents(transaction: Transaction, intent: Intent) -> list[Intent]:
    """The intents that depend on this one."""
    return await transaction.intents.dependents(intent.tenant, intent.id)


async def neighbours(
    door: Door, principal: Principal, intent_id: str, step: Neighbours, *, far: bool = False
) -> list[Intent]:
    """The intents one step from this one, or, `far`, by any number of steps, nearest first."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Intent]:
        intent, _ = await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await _walk(transaction, principal, intent, step, now, far=far)

    return await door.store.read(principal.tenant, script)


async def children_by_readiness(
    door: Door, principal: Principal, intent_id: str, *, ready: bool
) -> list[Intent]:
    """The children whose dependencies are all completed, or the others."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Intent]:
        intent, _ = await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        below = await _walk(transaction, principal, intent, children, now, far=False)
        return [
            child
            for child in below
            if ready
            is all(
                other.status is IntentStatus.COMPLETED
                for other in await dependencies(transaction, child)
            )
        ]

    return await door.store.read(principal.tenant, script)


async def graph(door: Door, principal: Principal, intent_id: str) -> Graph:
    """An intent, everything below it, and how these hang together."""
    now = door.now()

    async def script(transaction: Transaction) -> Graph:
        root, _ = await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        below = await _walk(transaction, principal, root, children, now, far=True)
        nodes = [root, *below]
        shown = {node.id for node in nodes}
        edges = []
        for node in nodes:
            if node.parent_intent_id in shown and node.parent_intent_id is not None:
                edges.append(Edge(source=node.parent_intent_id, target=node.id, kind="parent"))
            edges.extend(
                Edge(source=other, target=node.id, kind="dependency")
                for other in node.depends_on
                if other in shown
            )
        return Graph(root=root, nodes=nodes, edges=edges)

    return await door.store.read(principal.tenant, script)


async def add_dependency(
    door: Door, principal: Principal, intent_id: str, version: int, other_id: str
) -> Script[Intent]:
    """A script that lets an intent depend on another that the caller may read.

    Raises when run: ResourceNotFoundError, MemoryAccessError, ResourceConflictError, and
    RequestError for a dependency on itself, by whatever way.
    """
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        intent = await at_version(transaction, principal, intent_id, version, now)
        other, _ = await enter_intent(transaction, principal, Verb.READ, other_id, now)
        if await _depends_on(transaction, other, intent.id):
            raise RequestError(_CYCLE)
        depends_on = tuple(dict.fromkeys((*intent.depends_on, other.id)))
        return await _save(
            transaction, principal, intent, depends_on, WorkEvent.DEPENDENCY_ADDED, other.id, now
        )

    return script


async def remove_dependency(
    door: Door, principal: Principal, intent_id: str, version: int, other_id: str
) -> Script[Intent]:
    """A script that takes a dependency away. Raises like `add_dependency`."""
    now = door.now()

    async def script(transaction: Transaction) -> Intent:
        intent = await at_version(transaction, principal, intent_id, version, now)
        if other_id not in intent.depends_on:
            raise ResourceNotFoundError("the intent does not depend on that one")
        depends_on = tuple(one for one in intent.depends_on if one != other_id)
        return await _save(
            transaction, principal, intent, depends_on, WorkEvent.DEPENDENCY_REMOVED, other_id, now
        )

    return script


async def _walk(
    transaction: Transaction,
    principal: Principal,
    start: Intent,
    step: Neighbours,
    now: str,
    *,
    far: bool,
) -> list[Intent]:
    """What `principal` may read of what the steps lead to; what it may not is not passed either."""
    seen = {start.id}
    found: list[Intent] = []
    edge = [start]
    while edge:
        following: list[Intent] = []
        for intent in edge:
            for one in await step(transaction, intent):
                if one.id in seen:
                    continue
                seen.add(one.id)
                if len(seen) > MOST_VISITED:
                    raise ValidationError(_TOO_LARGE)
                if await is_allowed(transaction, principal, Verb.READ, one, now):
                    following.append(one)
        found.extend(following)
        edge = following if far else []
    return found


async def _depends_on(transaction: Transaction, intent: Intent, other_id: str) -> bool:
    """Whether an intent is the other, or depends on it by whatever way, seen or unseen."""
    seen = {intent.id}
    edge = [intent]
    while edge:
        if any(one.id == other_id for one in edge):
            return True
        following = []
        for one in edge:
            for found in await dependencies(transaction, one):
                if found.id not in seen:
                    seen.add(found.id)
                    following.append(found)
        if len(seen) > MOST_VISITED:
            raise ValidationError(_TOO_LARGE)
        edge = following
    return False


async def _known(
    transaction: Transaction, tenant: str, ids: tuple[str | None, ...]
) -> list[Intent]:
    found = []
    for one in ids:
        intent = None if one is None else await transaction.intents.get(tenant, one)
        if intent is not None:
            found.append(intent)
    return found


async def _save(
    transaction: Transaction,
    principal: Principal,
    intent: Intent,
    depends_on: tuple[str, ...],
    kind: WorkEvent,
    other_id: str,
    now: str,
) -> Intent:
    changed = msgspec.structs.replace(
        intent, depends_on=depends_on, version=intent.version + 1, updated_at=now
    )
    await transaction.intents.replace(changed)
    await record_work(
        transaction,
        kind,
        tenant=intent.tenant,
        by=principal,
        at=now,
        intent_id=intent.id,
        data={"dependency_id": other_id},
    )
    return changed
