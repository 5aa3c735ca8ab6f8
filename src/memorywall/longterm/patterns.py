"""Conjunctive patterns over facts, with shared variables, negation, filters, order and a limit.

A pattern is planned by selectivity: the part with the fewest facts is read first, and each further
part only for the nodes that the parts before it have found.
"""

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from memorywall.kinds.facts import (
    Literals,
    Ontology,
    instant_of,
    node_of,
    node_of_id,
    number_of,
)
from memorywall.longterm.fact_reader import FactReader, Key, StoredEntity, StoredFact
from memorywall.longterm.ontology import IS_A, ancestors, descendants
from memorywall.records.errors import ValidationError
from memorywall.records.feature_errors import ScanLimitError
from memorywall.wire.facts import Comparison

MOST_SOLUTIONS: Final = 10_000
"""The most solutions that are joined."""
_COUNTED = 200
"""The number of facts up to which a part is counted for the plan."""
_COMPARISONS: dict[str, Callable[[tuple[str, Literals], tuple[str, Literals]], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


class Term(NamedTuple):
    """A node with what it is called.

    value: a name or a literal
    """

    node: str
    value: Literals


class Part(NamedTuple):
    """A part of a pattern.

    subject, object: a `Term`, or the name of a variable
    relation: the name of a relation, whose sub-relations match as well; the name of a variable
        after `?`; None for any
    is_negated: whether no fact may match
    """

    subject: Term | str
    relation: str | None
    object: Term | str
    is_negated: bool = False

    @property
    def variables(self) -> set[str]:
        """The names of its variables."""
        names = {one for one in (self.subject, self.object) if isinstance(one, str)}
        if self.relation is not None and self.relation.startswith("?"):
            names.add(self.relation[1:])
        return names

    @property
    def constant_relation(self) -> str | None:
        """The relation that it names."""
        is_variable = self.relation is None or self.relation.startswith("?")
        return None if is_variable else self.relation


class Filter(NamedTuple):
    """A comparison of the value of a variable with a literal, or with that of another variable."""

    variable: str
    operator: Comparison
    value: Literals
    other: str | None = None


class Solution(NamedTuple):
    """A binding of each variable, and the facts that it follows from.

    facts: in the order of the parts that were joined
    """

    bindings: dict[str, Term]
    facts: tuple[StoredFact, ...] = ()


class _Match(NamedTuple):
    """A fact, or the class of an entity, as a part reads it."""

    subject: Term
    relation: str
    object: Term
    fact: StoredFact | None


class PatternQuery:
    """Finds the solutions of a pattern.

    parts: at least one not negated
    filters: each variable must be in a part that is not negated
    order_by: the variable whose values order the solutions; default: as they are found
    limit: the most solutions
    """

    def __init__(
        self,
        reader: FactReader,
        ontology: Ontology,
        parts: Sequence[Part],
        filters: Sequence[Filter] = (),
        *,
        order_by: str | None = None,
        descending: bool = False,
        limit: int = 100,
    ) -> None:
        self._reader = reader
        self._ontology = ontology
        self._parts = parts
        self._filters = filters
        self._order_by = order_by
        self._descending = descending
        self._limit = limit
        self._counts: dict[tuple[Part, str], int | None] = {}
        bound = {name for one in parts if not one.is_negated for name in one.variables}
        if all(one.is_negated for one in parts):
            raise ValidationError("`patterns` needs one that is not negated")
        asked = {name for one in filters for name in (one.variable, one.other) if name is not None}
        if not bound >= asked | ({order_by} if order_by is not None else set()):
            raise ValidationError(
                "`filters` and `order_by` name a variable that no pattern without `negated` has"
            )

    async def solve(self) -> list[Solution]:
        """Returns the solutions. Raises ScanLimitError for a pattern that reads too much."""
        waiting = [one for one in self._parts if not one.is_negated]
        filters = list(self._filters)
        solutions = [Solution({})]
        stops_early = len(self._parts) == 1 and not filters and self._order_by is None
        while waiting and solutions:
            part, lookup = await self._choose(waiting, solutions)
            waiting.remove(part)
            most = self._limit if stops_early else None
            solutions = await self._join(solutions, part, lookup, most)
            bound = set(solutions[0].bindings) if solutions else set()
            ready = [one for one in filters if {one.variable, one.other or one.variable} <= bound]
            for one in ready:
                filters.remove(one)
                solutions = [each for each in solutions if _passes(each, one)]
        for part in self._parts:
            if part.is_negated and solutions:
                solutions = await self._without(solutions, part)
        if self._order_by is not None:
            name = self._order_by
            solutions.sort(
                key=lambda one: sort_key(one.bindings[name].value), reverse=self._descending
            )
        return solutions[: self._limit]

    async def _choose(
        self, waiting: Sequence[Part], solutions: Sequence[Solution]
    ) -> tuple[Part, str]:
        """Returns the part with the fewest facts, and the side by which they are looked up:
        `subject`, `object` or `relation`."""
        best: tuple[int, Part, str] | None = None
        for part in waiting:
            for lookup in ("subject", "object", "relation"):
                cost = await self._cost(part, lookup, solutions)
                if cost is not None and (best is None or cost < best[0]):
                    best = cost, part, lookup
        if best is None:
            raise ValidationError("`patterns`: each needs a subject, a relation or an object")
        return best[1], best[2]

    async def _cost(self, part: Part, lookup: str, solutions: Sequence[Solution]) -> int | None:
        """Returns about how many facts a look-up reads; None if it is not possible."""
        side = {"subject": part.subject, "object": part.object}.get(lookup)
        if isinstance(side, str):
            if side not in solutions[0].bindings or (part.relation == IS_A and lookup == "object"):
                return None
            return len({one.bindings[side].node for one in solutions})
        # What does not depend on the solutions is counted once for all steps of the plan.
        if (part, lookup) not in self._counts:
            self._counts[part, lookup] = (
                await self._count_relation(part)
                if side is None
                else await self._count_node(part, lookup, side)
            )
        return self._counts[part, lookup]

    async def _count_relation(self, part: Part) -> int | None:
        if (relation := part.constant_relation) is None:
            return None
        if len(self._parts) == 1 or relation == IS_A:
            has_class = relation != IS_A or isinstance(part.object, Term)
            return _COUNTED + 1 if has_class else None
        keys: list[Key] = [(one,) for one in self._relations(relation)]
        return await self._reader.count("relation", keys, _COUNTED + 1)

    async def _count_node(self, part: Part, lookup: str, side: Term) -> int | None:
        if len(self._parts) == 1:
            # What is bound is worth more than what has to be counted.
            return 1
        relation = part.constant_relation
        if relation == IS_A:
            return 1 if lookup == "subject" else None
        nodes = await self._reader.spellings([side.node])
        keys: list[Key] = [(node,) for node in nodes]
        if relation is not None:
            keys = [(node, one) for node in nodes for one in self._relations(relation)]
        return await self._reader.count(lookup, keys, _COUNTED)

    def _relations(self, relation: str) -> list[str]:
        return descendants(self._ontology.relation_types, relation)

    async def _join(
        self, solutions: list[Solution], part: Part, lookup: str, most: int | None = None
    ) -> list[Solution]:
        """Returns the solutions that a match of a part extends, each binding once."""
        names = sorted(part.variables & solutions[0].bindings.keys())
        index: dict[tuple[str, ...], list[Solution]] = {}
        for one in solutions:
            index.setdefault(_key(one.bindings, names), []).append(one)
        side = part.subject if lookup == "subject" else part.object
        nodes = [side.node] if isinstance(side, Term) else []
        if lookup != "relation" and isinstance(side, str):
            nodes = list({one.bindings[side].node for one in solutions})
        found: dict[tuple[str, ...], Solution] = {}
        every = sorted(part.variables | solutions[0].bindings.keys())
        async with aclosing(self._matches(part, lookup, nodes, most)) as matches:
            async for each in matches:
                bound = _bind(part, each)
                if bound is None:
                    continue
                for one in index.get(_key(bound, names), ()):
                    bindings = {**one.bindings, **bound}
                    facts = one.facts if each.fact is None else (*one.facts, each.fact)
                    found.setdefault(_key(bindings, every), Solution(bindings, facts))
                if len(found) > MOST_SOLUTIONS:
                    raise ScanLimitError(
                        f"`patterns` has more than {MOST_SOLUTIONS} partial solutions; name more"
                        " subjects, objects or relations"
                    )
                if most is not None and len(found) >= most:
                    break
        return list(found.values())

    async def _without(self, solutions: list[Solution], part: Part) -> list[Solution]:
        """Returns the solutions that no match of a negated part extends."""
        _, lookup = await self._choose([part], solutions)
        extended = await self._join(solutions, part, lookup)
        names = list(solutions[0].bindings)
        gone = {_key(one.bindings, names) for one in extended}
        return [one for one in solutions if _key(one.bindings, names) not in gone]

    async def _matches(
        self, part: Part, lookup: str, nodes: Collection[str], most: int | None
    ) -> AsyncGenerator[_Match, None]:
        """Yields what a part reads by a look-up, with unified nodes."""
        relation = part.constant_relation
        if relation == IS_A:
            for one in await self._entities(part, lookup, nodes):
                for name in ancestors(self._ontology.entity_types, one.value.entity_class or ""):
                    subject = Term(one.node, one.value.name)
                    yield _Match(subject, IS_A, Term(node_of(name), name), None)
            return
        relations = [] if relation is None else self._relations(relation)
        first = most or 0
        if lookup == "relation":
            parts = self._reader.by_relation(relations, first)
        else:
            spelled = await self._reader.spellings(nodes)
            parts = self._reader.by_node(lookup, spelled, relations, first=first)
        async with aclosing(parts):
            async for facts in parts:
                for each in await unify_facts(self._reader, facts):
                    yield each

    async def _entities(
        self, part: Part, lookup: str, nodes: Collection[str]
    ) -> Iterable[StoredEntity]:
        if lookup == "subject":
            found = await self._reader.load_entities([one[1:] for one in nodes if one[0] == "@"])
            return found.values()
        if not isinstance(part.object, Term):
            raise ValidationError(f"`patterns`: the object of `{IS_A}` must be the name of a class")
        classes = descendants(self._ontology.entity_types, str(part.object.value))
        return [one for one in await self._reader.of_class(classes) if one.value.alias_of is None]


async def part_of(
    reader: FactReader,
    subject: Literals,
    relation: str | None,
    obj: Literals,
    *,
    is_negated: bool = False,
) -> Part:
    """Returns a part of a pattern, whose variables begin with `?`."""
    sides: list[Term | str] = []
    for one in (subject, obj):
        if isinstance(one, str) and one.startswith("?"):
            sides.append(one[1:])
        elif relation == IS_A and sides:
            sides.append(Term(node_of(one), one))
        else:
            sides += await terms_of(reader, [one])
    return Part(sides[0], relation, sides[1], is_negated)


def filter_of(variable: str, comparison: Comparison, value: Literals) -> Filter:
    """Returns a filter, whose variables begin with `?`."""
    is_variable = isinstance(value, str) and value.startswith("?")
    return Filter(variable[1:], comparison, value, str(value)[1:] if is_variable else None)


async def terms_of(reader: FactReader, texts: Sequence[Literals]) -> list[Term]:
    """Returns the node that each name, id of an entity, or literal stands for."""
    ids = await reader.load_entities(one for one in texts if isinstance(one, str))
    nodes = [node_of_id(str(one)) if one in ids else node_of(one) for one in texts]
    unified = await reader.unify(nodes)
    return [Term(unified[node], text) for node, text in zip(nodes, texts, strict=True)]


async def unify_facts(reader: FactReader, facts: Sequence[StoredFact]) -> list[_Match]:
    """Returns facts with the nodes that their subjects and objects stand for."""
    nodes = await reader.unify(
        node for one in facts for node in (one.value.subject_node, one.value.object_node)
    )
    return [
        _Match(
            Term(nodes[one.value.subject_node], one.value.subject_name),
            one.value.relation,
            Term(nodes[one.value.object_node], one.value.object_name),
            one,
        )
        for one in facts
    ]


def _bind(part: Part, match: _Match) -> dict[str, Term] | None:
    """Returns what a match binds; None if it does not fit."""
    bound: dict[str, Term] = {}
    sides = [(part.subject, match.subject), (part.object, match.object)]
    if part.relation is not None and part.constant_relation is None:
        sides.append((part.relation[1:], Term(node_of(match.relation), match.relation)))
    for wanted, found in sides:
        expected = wanted if isinstance(wanted, Term) else bound.setdefault(wanted, found)
        if expected.node != found.node:
            return None
    return bound


def _key(bindings: Mapping[str, Term], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(bindings[name].node for name in names)


def _passes(solution: Solution, one: Filter) -> bool:
    found = sort_key(solution.bindings[one.variable].value)
    wanted = sort_key(one.value if one.other is None else solution.bindings[one.other].value)
    is_alike = found[0] == wanted[0]
    return _COMPARISONS[one.operator](found, wanted) if is_alike else one.operator == "!="


def sort_key(value: Literals) -> tuple[str, Literals]:
    """Returns a literal as it is compared: numbers by value, dates and instants by time, and texts
    by their characters. Literals of different types are not comparable, and stand apart."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int | float):
        return "number", number_of(value)
    instant = instant_of(value)
    return ("text", value) if instant is None else ("date", instant)
