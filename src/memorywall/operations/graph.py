"""Relations between intents."""

from __future__ import annotations

from collections import Counter

from memorywall.coordination import graph
from memorywall.coordination.graph import Graph, Neighbours
from memorywall.operations.binding import operation
from memorywall.operations.intents import make_intent, recheck_own_intent, show_intent
from memorywall.records.copier import copier
from memorywall.records.errors import RequestError
from memorywall.records.intent import Intent, IntentStatus
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.graph import (
    AggregateStatus,
    AncestorsListResponse,
    BlockedListResponse,
    ChildrenListResponse,
    DependenciesListResponse,
    DependentsListResponse,
    DescendantsListResponse,
    GraphEdge,
    GraphNode,
    GraphResponse,
    ReadyListResponse,
)
from memorywall.wire.intents import IntentResponse


@operation("create_child_intent", recheck=recheck_own_intent)
async def create_child_intent(context: OperationContext, call: OperationCall) -> IntentResponse:
    parent = call.path["intent_id"]
    if call.body.parent_intent_id not in (None, parent):
        raise RequestError("`parent_intent_id` is not the intent in the path")
    return await make_intent(context, call, parent)


@operation("list_children")
async def list_children(context: OperationContext, call: OperationCall) -> ChildrenListResponse:
    return ChildrenListResponse(children=await _neighbours(context, call, graph.children))


@operation("list_descendants")
async def list_descendants(
    context: OperationContext, call: OperationCall
) -> DescendantsListResponse:
    return DescendantsListResponse(
        descendants=await _neighbours(context, call, graph.children, far=True)
    )


@operation("list_ancestors")
async def list_ancestors(context: OperationContext, call: OperationCall) -> AncestorsListResponse:
    return AncestorsListResponse(ancestors=await _neighbours(context, call, graph.parent, far=True))


@operation("list_dependencies")
async def list_dependencies(
    context: OperationContext, call: OperationCall
) -> DependenciesListResponse:
    return DependenciesListResponse(
        dependencies=await _neighbours(context, call, graph.dependencies)
    )


@operation("list_dependents")
async def list_dependents(context: OperationContext, call: OperationCall) -> DependentsListResponse:
    return DependentsListResponse(dependents=await _neighbours(context, call, graph.dependents))


@operation("list_ready_children")
async def list_ready_children(context: OperationContext, call: OperationCall) -> ReadyListResponse:
    return ReadyListResponse(ready=await _by_readiness(context, call, ready=True))


@operation("list_blocked_children")
async def list_blocked_children(
    context: OperationContext, call: OperationCall
) -> BlockedListResponse:
    return BlockedListResponse(blocked=await _by_readiness(context, call, ready=False))


@operation("get_intent_graph")
async def get_intent_graph(context: OperationContext, call: OperationCall) -> GraphResponse:
    return _graph_view(await graph.graph(context, call.path["intent_id"]))


@operation("add_dependency")
async def add_dependency(context: OperationContext, call: OperationCall) -> IntentResponse:
    result = await graph.add_dependency(
        context,
        call.path["intent_id"],
        call.version,
        call.body.dependency_id,
    )
    return await show_intent(context, result)


@operation("remove_dependency")
async def remove_dependency(context: OperationContext, call: OperationCall) -> IntentResponse:
    result = await graph.remove_dependency(
        context,
        call.path["intent_id"],
        call.version,
        call.path["dependency_id"],
    )
    return await show_intent(context, result)


async def _neighbours(
    context: OperationContext, call: OperationCall, step: Neighbours, *, far: bool = False
) -> list[IntentResponse]:
    found = await graph.neighbours(context, call.path["intent_id"], step, far=far)
    return [await show_intent(context, one) for one in found]


async def _by_readiness(
    context: OperationContext, call: OperationCall, *, ready: bool
) -> list[IntentResponse]:
    found = await graph.children_by_readiness(context, call.path["intent_id"], ready=ready)
    return [await show_intent(context, one) for one in found]


_node = copier(Intent, GraphNode, parent_id="parent_intent_id")


def _graph_view(found: Graph) -> GraphResponse:
    counts = Counter[str](node.status for node in found.nodes)
    total = len(found.nodes)
    return GraphResponse(
        root_id=found.root.id,
        nodes=[_node(node) for node in found.nodes],
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
