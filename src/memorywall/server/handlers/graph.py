"""How intents hang together."""

from __future__ import annotations

from collections import Counter

from memorywall.coordination import graph
from memorywall.coordination.graph import Graph, Neighbours
from memorywall.records.errors import RequestError
from memorywall.records.intent import IntentStatus
from memorywall.server.dispatch import Call
from memorywall.server.handlers.intents import intent_reply, make_intent
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.graph import (
    AggregateStatus,
    Ancestors,
    Blocked,
    Children,
    Dependencies,
    Dependents,
    Descendants,
    GraphEdge,
    GraphNode,
    GraphView,
    Ready,
)
from memorywall.wire.work import IntentView, intent_view


async def create_child_intent(call: Call) -> Reply:
    parent = call.path["intent_id"]
    if call.body.parent_intent_id not in (None, parent):
        raise RequestError("`parent_intent_id` is not the intent in the path")
    return await make_intent(call, parent)


async def list_children(call: Call) -> Reply:
    return json_reply(Children(children=await _neighbours(call, graph.children)))


async def list_descendants(call: Call) -> Reply:
    return json_reply(Descendants(descendants=await _neighbours(call, graph.children, far=True)))


async def list_ancestors(call: Call) -> Reply:
    return json_reply(Ancestors(ancestors=await _neighbours(call, graph.parent, far=True)))


async def list_dependencies(call: Call) -> Reply:
    return json_reply(Dependencies(dependencies=await _neighbours(call, graph.dependencies)))


async def list_dependents(call: Call) -> Reply:
    return json_reply(Dependents(dependents=await _neighbours(call, graph.dependents)))


async def list_ready_children(call: Call) -> Reply:
    return json_reply(Ready(ready=await _by_readiness(call, ready=True)))


async def list_blocked_children(call: Call) -> Reply:
    return json_reply(Blocked(blocked=await _by_readiness(call, ready=False)))


async def get_intent_graph(call: Call) -> Reply:
    return json_reply(
        _graph_view(await graph.graph(call.door, call.principal, call.path["intent_id"]))
    )


async def add_dependency(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    script = await graph.add_dependency(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.if_match,
        call.body.dependency_id,
    )
    return intent_reply(await call.door.store.write(call.principal.tenant, script))


async def remove_dependency(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    script = await graph.remove_dependency(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.if_match,
        call.path["dependency_id"],
    )
    return intent_reply(await call.door.store.write(call.principal.tenant, script))


async def _neighbours(call: Call, step: Neighbours, *, far: bool = False) -> list[IntentView]:
    found = await graph.neighbours(call.door, call.principal, call.path["intent_id"], step, far=far)
    return [intent_view(one) for one in found]


async def _by_readiness(call: Call, *, ready: bool) -> list[IntentView]:
    found = await graph.children_by_readiness(
        call.door, call.principal, call.path["intent_id"], ready=ready
    )
    return [intent_view(one) for one in found]


def _graph_view(found: Graph) -> GraphView:
    counts = Counter[str](node.status for node in found.nodes)
    total = len(found.nodes)
    return GraphView(
        root_id=found.root.id,
        nodes=[
            GraphNode(
                id=node.id,
                title=node.title,
                status=node.status,
                parent_id=node.parent_intent_id,
                depends_on=node.depends_on,
            )
            for node in found.nodes
        ],
        edges=[
            GraphEdge(source=edge.source, target=edge.target, type=edge.kind)
            for edge in found.edges
        ],
        aggregate_status=AggregateStatus(
            total=total,
            by_status=dict(counts),
            completion_percentage=100 * counts[IntentStatus.COMPLETED] // total,
        ),
    )
