"""Patterns and walks over facts, and the check of an ontology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import memorywall.longterm.facts  # noqa: F401 - it binds the rules of these kinds
from memorywall.kinds.facts import ENTITY, FACT, Ontology
from memorywall.longterm.fact_reader import FactReader, StoredFact, open_reader
from memorywall.longterm.fact_walk import walk_facts as walk
from memorywall.longterm.migration import PAGE, judge_page
from memorywall.longterm.ontology import next_version
from memorywall.longterm.patterns import PatternQuery, Term, filter_of, part_of, terms_of
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import in_body, instant_of_validity, past_instant
from memorywall.records.copier import copier
from memorywall.records.entry import authority_of
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.facts import (
    CheckOntologyRequest,
    CheckOntologyResponse,
    FactClocks,
    FactResponse,
    FactRow,
    NodeResponse,
    QueryFactsRequest,
    QueryFactsResponse,
    ReachedNode,
    WalkFactsRequest,
    WalkFactsResponse,
)

_reached_node = copier(NodeResponse, ReachedNode, given=["hops", "path"])


@operation("query_facts", is_long=lambda call: len(call.body.patterns) > 1)
async def query_facts(context: OperationContext, call: OperationCall) -> QueryFactsResponse:
    asked: QueryFactsRequest = call.body
    reader = await _open(context, asked)
    parts = [
        await part_of(reader, one.subject, one.relation, one.object, is_negated=one.negated)
        for one in asked.patterns
    ]
    query = PatternQuery(
        reader,
        await reader.load_ontology(),
        parts,
        [filter_of(one.variable, one.operator, one.value) for one in asked.filters],
        order_by=None if asked.order_by is None else asked.order_by[1:],
        descending=asked.descending,
        limit=asked.limit,
    )
    solutions = await query.solve()
    terms = [term for one in solutions for term in one.bindings.values()]
    nodes = await _show_nodes(reader, terms)
    rows = await context.build(
        lambda one: FactRow(
            values={name: nodes[term.node] for name, term in one.bindings.items()},
            facts=[fact.entry.id for fact in one.facts],
        ),
        solutions,
    )
    return QueryFactsResponse(
        rows=rows, facts=_show_facts(fact for one in solutions for fact in one.facts)
    )


@operation("walk_facts", is_long=lambda call: call.body.hops > 1)
async def walk_facts(context: OperationContext, call: OperationCall) -> WalkFactsResponse:
    asked: WalkFactsRequest = call.body
    reader = await _open(context, asked)
    reached = await walk(
        reader,
        await reader.load_ontology(),
        await terms_of(reader, asked.start),
        hops=asked.hops,
        relations=asked.relations,
        direction=asked.direction,
        limit=asked.limit,
    )
    nodes = await _show_nodes(reader, [one.term for one in reached])
    return WalkFactsResponse(
        nodes=[
            _reached_node(
                nodes[one.term.node], hops=one.hops, path=[fact.entry.id for fact in one.path]
            )
            for one in reached
        ],
        facts=_show_facts(fact for one in reached for fact in one.path),
    )


@multi_transaction_operation("check_ontology")
async def check_ontology(transactions: OperationTransactions) -> CheckOntologyResponse:
    """Counts what an ontology would change. Raises RuleError, ValidationError."""
    asked: CheckOntologyRequest = transactions.call.body
    namespace, ontology = await transactions.read(_next_ontology, asked)
    outcomes: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for kind in (ENTITY.name, FACT.name):
        before: str | None = None
        has_more = True
        while has_more:
            page = await transactions.read_long(
                judge_page, ontology, namespace, kind, before, only_readable=True
            )
            has_more = len(page) == PAGE
            before = page[-1].stored.id if page else None
            live = [one for one in page if one.stored.state == "live"]
            outcomes.update(one.outcome for one in live)
            rules.update(one.rule for one in live if one.rule)
    return CheckOntologyResponse(
        unchanged=outcomes["unchanged"],
        changed=outcomes["changed"],
        dropped=outcomes["dropped"],
        unfit=dict(sorted(rules.items())),
    )


async def _next_ontology(
    context: OperationContext, asked: CheckOntologyRequest
) -> tuple[str, Ontology]:
    reader = await open_reader(context, asked.namespace, None, None)
    return reader.namespaces[0], next_version(await reader.load_ontology(), asked.ontology)


async def _open(context: OperationContext, asked: FactClocks) -> FactReader:
    """Returns the reader of a request. Raises ValidationError."""
    with in_body():
        as_of = past_instant("as_of", asked.as_of, context.now)
        valid_at = instant_of_validity("valid_at", asked.valid_at)
    return await open_reader(context, asked.namespace, valid_at, as_of)


async def _show_nodes(reader: FactReader, terms: list[Term]) -> dict[str, NodeResponse]:
    """Returns the wire form of each node; of an entity with its name."""
    ids = [one.node[1:] for one in terms if one.node.startswith("@")]
    entities = await reader.load_entities(ids)
    shown = {}
    for one in terms:
        entity_id = one.node[1:] if one.node.startswith("@") else None
        entity = entities.get(entity_id or "")
        value = one.value if entity is None else entity.value.name
        shown[one.node] = NodeResponse(value=value, id=entity_id)
    return shown


def _show_facts(facts: Iterable[StoredFact]) -> dict[str, FactResponse]:
    return {
        one.entry.id: FactResponse(
            id=one.entry.id, authority=authority_of(one.entry.provenance), value=one.value
        )
        for one in facts
    }
