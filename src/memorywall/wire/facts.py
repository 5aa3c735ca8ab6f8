"""Facts: patterns, walks, and the check of an ontology."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from memorywall.kinds.facts import Fact, Literals, Ontology
from memorywall.records.entry import Authority
from memorywall.records.feature_errors import RuleError, ScanLimitError
from memorywall.wire.operation import Operation, UserOfRequest
from memorywall.wire.operation_group import OperationGroup

Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Direction: TypeAlias = Literal["out", "in", "both"]
Node = Annotated[str, Meta(min_length=1, max_length=4_000)]
Variable = Annotated[str, Meta(pattern=r"^\?[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class FactClocks(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts that a request is about."""

    namespace: Annotated[
        str, Meta(min_length=1, description="The namespace of the facts and of their ontology.")
    ]
    valid_at: Annotated[
        str | None,
        Meta(
            description="Only what held then: an RFC 3339 instant, a date for the end of that day"
            " in UTC, or `any`; default: that of `as_of`, or now."
        ),
    ] = None
    as_of: Annotated[
        str | None,
        Meta(description="What was known at this instant or date; default: now."),
    ] = None


class FactPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Matches facts, or with `negated` their absence. A text that begins with `?` is a variable."""

    subject: Annotated[Node, Meta(description="A name, the id of an entity, or a variable.")]
    relation: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(
            description="A relation, whose sub-relations match as well, or a variable; default: any"
            " relation. `is_a` is true for an entity and its classes."
        ),
    ] = None
    object: Annotated[
        Node | bool | int | float,
        Meta(description="A name, the id of an entity, a literal, or a variable."),
    ]
    negated: bool = False


class FactFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compares the value of a variable: numbers by value, dates and instants by time, texts by
    their characters. Literals of different types only differ."""

    variable: Variable
    operator: Comparison
    value: Annotated[
        Annotated[str, Meta(max_length=4_000)] | bool | int | float,
        Meta(description="A literal, or another variable."),
    ]


class QueryFactsRequest(FactClocks, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Patterns that must match together."""

    patterns: Annotated[list[FactPattern], Meta(min_length=1, max_length=8)]
    filters: Annotated[list[FactFilter], Meta(max_length=16)] = msgspec.field(default_factory=list)
    order_by: Variable | None = None
    descending: bool = False
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class WalkFactsRequest(FactClocks, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to begin, and how far to go."""

    start: Annotated[
        list[Node], Meta(min_length=1, max_length=32, description="Names, or ids of entities.")
    ]
    hops: Annotated[int, Meta(ge=1, le=4)] = 1
    relations: Annotated[
        list[str],
        Meta(max_length=64, description="Only these, and their sub-relations; default: any."),
    ] = msgspec.field(default_factory=list)
    direction: Annotated[
        Direction,
        Meta(description="From subjects to objects, the other way, or both."),
    ] = "both"
    limit: Annotated[int, Meta(ge=1, le=1_000, description="The most nodes that it reaches.")] = 100


class CheckOntologyRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An ontology that is not stored yet."""

    namespace: Annotated[str, Meta(min_length=1, description="The namespace of the facts.")]
    ontology: Ontology


class FactResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fact, and how far it is trusted. `id` is that of its entry."""

    id: str
    authority: Authority
    value: Fact


class NodeResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entity, a name or a literal. `id` is that of an entity, otherwise null."""

    value: Literals
    id: str | None


class FactRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The value of each variable without its `?`, and the ids of the facts that say so."""

    values: dict[str, NodeResponse]
    facts: list[str]


class QueryFactsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The rows that match, and their facts by id."""

    rows: list[FactRow]
    facts: dict[str, FactResponse]


class ReachedNode(NodeResponse, frozen=True, kw_only=True, gc=False):
    """A node that a walk has reached after `hops` steps, with the ids of the facts of the path."""

    hops: int
    path: list[str]


class WalkFactsResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The nodes, nearest first, and the facts of their paths by id."""

    nodes: list[ReachedNode]
    facts: dict[str, FactResponse]


class CheckOntologyResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the ontology would do to the entities and facts that the caller may read.

    unfit: the numbers of those that it would refuse, by the rule
    """

    unchanged: int
    changed: int
    dropped: int
    unfit: dict[str, int]


_FACTS = OperationGroup(name="Facts")

FACT_OPERATIONS: tuple[Operation, ...] = (
    _FACTS(
        "query_facts",
        "POST /facts/query",
        "Find what makes all patterns match: facts that hold at one instant and were known at"
        " another.",
        safe=True,
        body=QueryFactsRequest,
        reply=QueryFactsResponse,
        raises=(ScanLimitError,),
    ),
    _FACTS(
        "walk_facts",
        "POST /facts/walk",
        "Walk over facts from some nodes, up to four steps.",
        safe=True,
        body=WalkFactsRequest,
        reply=WalkFactsResponse,
        raises=(ScanLimitError,),
    ),
    _FACTS(
        "check_ontology",
        "POST /facts/check",
        "Count what a new version of an ontology would do to the stored entities and facts, without"
        " storing anything.",
        safe=True,
        body=CheckOntologyRequest,
        reply=CheckOntologyResponse,
        raises=(RuleError, ScanLimitError),
    ),
)
