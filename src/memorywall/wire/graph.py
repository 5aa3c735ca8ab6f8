"""Requests and responses of the graph of intents (RFC-0002)."""

from __future__ import annotations

import msgspec

from memorywall.records.intent import IntentStatus
from memorywall.wire.work import IntentResponse


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
