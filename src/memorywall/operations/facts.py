"""Patterns and walks over facts, and the check of an ontology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

import memorywall.longterm.facts  # noqa: F401 - it binds the rules of these kinds
from memorywall.kinds.facts import ENTITY, FACT, Literals, Ontology, node_of, node_of_id
from memorywall.longterm.fact_reader import FactReader, StoredFact
from memorywall.longterm.fact_walk import walk_facts as walk
from memorywall.longterm.migration import PAGE, Judgement, judge_page
from memorywall.longterm.ontology import IS_A, NO_ONTOLOGY, check_ontology, next_version
from memorywall.longterm.patterns import Filter, Part, PatternQuery, Term
from memorywall.operations.binding import multi_transaction_operation, operation
from memorywall.operations.filters import in_body, instant_of_validity, past_instant
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.entry import Entry, authority_of
from memorywall.records.filter import EntryFilter
from memorywall.records.session import belongs_to
from memorywall.records.tier import Tier
from memorywall.service.access.visibility import load_visibility
from memorywall.service.requests.namespace_names import stored_filter
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.facts import (
    CheckOntologyRequest,
    CheckOntologyResponse,
    FactPattern,
    FactResponse,
    FactRow,
    NodeResponse,
    QueryFactsRequest,
    QueryFactsResponse,
    ReachedNode,
    WalkFactsRequest,
    WalkFactsResponse,
)


@operation("query_facts", is_long=lambda call: len(call.body.patterns) > 1)
async def query_facts(context: OperationContext, call: OperationCall) -> QueryFactsResponse:
    asked: QueryFactsRequest = call.body
    reader = await _open_reader(context, asked)
    parts = [await _part(reader, one) for one in asked.patterns]
    filters = []
    for one in asked.filters:
        is_variable = isinstance(one.value, str) and one.value.startswith("?")
        other = str(one.value)[1:] if is_variable else None
        filters.append(Filter(one.variable[1:], one.operator, one.value, other))
    query = PatternQuery(
        reader,
        await reader.load_ontology(),
        parts,
        filters,
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
    reader = await _open_reader(context, asked)
    reached = await walk(
        reader,
        await reader.load_ontology(),
        [await _term(reader, one) for one in asked.start],
        hops=asked.hops,
        relations=asked.relations,
        direction=asked.direction,
        limit=asked.limit,
    )
    nodes = await _show_nodes(reader, [one.term for one in reached])
    return WalkFactsResponse(
        nodes=[
            ReachedNode(
                value=nodes[one.term.node].value,
                id=nodes[one.term.node].id,
                hops=one.hops,
                path=[fact.entry.id for fact in one.path],
            )
            for one in reached
        ],
        facts=_show_facts(fact for one in reached for fact in one.path),
    )


@multi_transaction_operation("check_ontology")
async def check_stored_ontology(transactions: OperationTransactions) -> CheckOntologyResponse:
    asked: CheckOntologyRequest = transactions.call.body
    namespace, ontology = await transactions.read(_next_ontology, asked)
    outcomes: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for kind in (ENTITY.name, FACT.name):
        before: str | None = None
        has_more = True
        while has_more:
            page = await transactions.read_long(_judge, namespace, ontology, kind, before)
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
    """Returns the stored name of the namespace and the ontology as it would be stored. Raises
    ValidationError, RuleError."""
    check_ontology(asked.ontology)
    reader = await _open_reader(context, asked)
    present = await reader.load_ontology()
    ontology = replace(asked.ontology, migration=(), migrated=True)
    if present is not NO_ONTOLOGY:
        ontology = next_version(present, asked.ontology)
    return reader.namespaces[0], ontology


async def _judge(
    context: OperationContext, namespace: str, ontology: Ontology, kind: str, before: str | None
) -> list[Judgement]:
    wanted = EntryFilter(tenant=context.tenant, tiers=(Tier.SEMANTIC,), namespace=namespace)
    within = await load_visibility(context, Verb.READ, await stored_filter(context, wanted))
    return await judge_page(context, ontology, namespace, kind, within, before)


async def _open_reader(context: OperationContext, asked: Any) -> FactReader:
    """Returns a reader of what the caller may read in the namespace of a request, at its two
    instants. Raises ValidationError."""
    with in_body():
        as_of = past_instant("as_of", getattr(asked, "as_of", None), context.now)
        valid_at = instant_of_validity("valid_at", getattr(asked, "valid_at", None))
    wanted = EntryFilter(tenant=context.tenant, tiers=(Tier.SEMANTIC,), namespace=asked.namespace)
    wanted = await stored_filter(context, wanted, for_reading=True)
    within = await load_visibility(context, Verb.READ, wanted)

    def can_see(entry: Entry) -> bool:
        return _is_visible(entry, within)

    return FactReader(
        context,
        (wanted.namespace or "", *wanted.aliases),
        can_see,
        valid_at=valid_at or as_of or context.now,
        as_of=as_of,
    )


def _is_visible(entry: Entry, within: VisibilityFilter) -> bool:
    """Whether a filter shows an entry of semantic memory."""
    return (
        entry.namespace in within.namespaces
        and (within.subjects is None or set(entry.subjects) <= set(within.subjects))
        and (within.limited_to is None or entry.namespace in within.limited_to)
        and (
            within.session is None or belongs_to(within.session, entry.tier, entry.scope.session_id)
        )
    )


async def _part(reader: FactReader, asked: FactPattern) -> Part:
    is_class = asked.relation == IS_A
    return Part(
        await _side(reader, asked.subject),
        asked.relation,
        await _side(reader, asked.object, is_class=is_class),
        asked.negated,
    )


async def _side(reader: FactReader, text: Literals, *, is_class: bool = False) -> Term | str:
    if isinstance(text, str) and text.startswith("?"):
        return text[1:]
    return Term(node_of(text), text) if is_class else await _term(reader, text)


async def _term(reader: FactReader, text: Literals) -> Term:
    """Returns the node that a name, an id or a literal stands for."""
    is_id = isinstance(text, str) and bool(await reader.load_entities([text]))
    node = node_of_id(str(text)) if is_id else node_of(text)
    return Term((await reader.unify([node]))[node], text)


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
    return {one.entry.id: _show_fact(one) for one in facts}


def _show_fact(one: StoredFact) -> FactResponse:
    value = one.value
    return FactResponse(
        id=one.entry.id,
        subject=value.subject,
        subject_id=value.subject_id,
        relation=value.relation,
        object=value.object,
        object_id=value.object_id,
        valid_from=value.valid_from,
        valid_until=value.valid_until,
        confidence=value.confidence,
        authority=authority_of(one.entry.provenance),
    )
