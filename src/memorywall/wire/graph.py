"""The graph of intents (RFC-0002): requests, responses, operations."""

from __future__ import annotations

import msgspec

from memorywall.records.errors import ResourceConflictError
from memorywall.records.intent import IntentStatus
from memorywall.wire.intents import IntentRequest, IntentResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class DependencyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The intent to depend on."""

    dependency_id: str


class ChildrenListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The children of an intent."""

    children: list[IntentResponse]


class DescendantsListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The descendants of an intent, nearest first."""

    descendants: list[IntentResponse]


class AncestorsListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The ancestors of an intent, nearest first."""

    ancestors: list[IntentResponse]


class DependenciesListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The intents that the intent depends on."""

    dependencies: list[IntentResponse]


class DependentsListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The intents that depend on the intent."""

    dependents: list[IntentResponse]


class ReadyListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Children whose dependencies are all completed."""

    ready: list[IntentResponse]


class BlockedListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Children with an open dependency."""

    blocked: list[IntentResponse]


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """An intent in a graph."""

    id: str
    title: str
    status: IntentStatus
    parent_id: str | None
    depends_on: tuple[str, ...]


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge from a parent to a child, or from a dependency to its dependent."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    type: str


class AggregateStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a graph; the percentage is a whole number."""

    total: int
    by_status: dict[str, int]
    completion_percentage: int


class GraphResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An intent and its descendants."""

    root_id: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    aggregate_status: AggregateStatus


_GRAPH = OperationGroup(name="Graph", source="RFC-0002")

GRAPH_OPERATIONS: tuple[Operation, ...] = (
    _GRAPH(
        "create_child_intent",
        "POST /intents/{intent_id}/children",
        "Create an intent below another.",
        body=IntentRequest,
        reply=IntentResponse,
        status=201,
        accepts_idempotency_key=True,
        etag=True,
    ),
    _GRAPH(
        "list_children",
        "GET /intents/{intent_id}/children",
        "List the children of an intent.",
        reply=ChildrenListResponse,
    ),
    _GRAPH(
        "list_descendants",
        "GET /intents/{intent_id}/descendants",
        "List the descendants of an intent, nearest first.",
        reply=DescendantsListResponse,
    ),
    _GRAPH(
        "list_ancestors",
        "GET /intents/{intent_id}/ancestors",
        "List the ancestors of an intent, nearest first.",
        reply=AncestorsListResponse,
    ),
    _GRAPH(
        "list_dependencies",
        "GET /intents/{intent_id}/dependencies",
        "List the intents that an intent depends on.",
        reply=DependenciesListResponse,
    ),
    _GRAPH(
        "add_dependency",
        "POST /intents/{intent_id}/dependencies",
        "Add a dependency to an intent.",
        body=DependencyRequest,
        reply=IntentResponse,
        if_match="required",
        etag=True,
        raises=(ResourceConflictError,),
    ),
    _GRAPH(
        "remove_dependency",
        "DELETE /intents/{intent_id}/dependencies/{dependency_id}",
        "Remove a dependency from an intent.",
        reply=IntentResponse,
        if_match="required",
        etag=True,
        raises=(ResourceConflictError,),
    ),
    _GRAPH(
        "list_dependents",
        "GET /intents/{intent_id}/dependents",
        "List the intents that depend on an intent.",
        reply=DependentsListResponse,
    ),
    _GRAPH(
        "list_ready_children",
        "GET /intents/{intent_id}/ready",
        "List the children whose dependencies are all completed.",
        reply=ReadyListResponse,
    ),
    _GRAPH(
        "list_blocked_children",
        "GET /intents/{intent_id}/blocked",
        "List the children with an open dependency.",
        reply=BlockedListResponse,
    ),
    _GRAPH(
        "get_intent_graph",
        "GET /intents/{intent_id}/graph",
        "Get an intent and its descendants as nodes and edges.",
        reply=GraphResponse,
    ),
)
