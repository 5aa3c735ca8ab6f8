"""Bodies about how intents hang together (RFC-0002)."""

from __future__ import annotations

import msgspec

from memorywall.records.intent import IntentStatus
from memorywall.wire.work import IntentView


class DependencyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an intent shall depend on."""

    dependency_id: str


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """Intents one step below."""

    children: list[IntentView]


class Descendants(msgspec.Struct, frozen=True, kw_only=True):
    """Intents below, nearest first."""

    descendants: list[IntentView]


class Ancestors(msgspec.Struct, frozen=True, kw_only=True):
    """Intents above, nearest first."""

    ancestors: list[IntentView]


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """Intents this one depends on."""

    dependencies: list[IntentView]


class Dependents(msgspec.Struct, frozen=True, kw_only=True):
    """Intents that depend on this one."""

    dependents: list[IntentView]


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Children whose dependencies are all completed."""

    ready: list[IntentView]


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """Children that wait for a dependency."""

    blocked: list[IntentView]


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """An intent in a graph."""

    id: str
    title: str
    status: IntentStatus
    parent_id: str | None
    depends_on: tuple[str, ...]


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    """From a parent to its child, or from a dependency to what depends on it."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    type: str


class AggregateStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a graph has come; percent in whole numbers."""

    total: int
    by_status: dict[str, int]
    completion_percentage: int


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    """An intent and everything below it."""

    root_id: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    aggregate_status: AggregateStatus
