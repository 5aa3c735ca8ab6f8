"""The text of a search for PostgreSQL: its bindings, the ranges of its entries and its pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memorywall.records.filter import EntryFilter
from memorywall.storage.entry_columns import order_terms
from memorywall.storage.postgres.conditions import OPAQUE
from memorywall.storage.statements import load

_COLUMNS = load("postgres", "entries")["columns"].replace("\n", " ")
BY_ID = "e.id"
_EDGES = "SELECT entry FROM edges WHERE tenant = $1 AND relation = {} AND target {}"
_BINDING = re.compile(r"\$(?!1\b)(\d+)")
"""A binding that is not the first."""


class SearchBindings:
    """The bindings of a statement, the tenant first: `FilterDialect` for PostgreSQL."""

    opaque = OPAQUE

    def __init__(self, tenant: str) -> None:
        self.values: list[Any] = [tenant]

    def add(self, value: Any) -> str:
        """Binds a value; returns its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def array(self, values: Iterable[str]) -> str:
        """Binds a list, each distinct value once; returns its placeholder."""
        return f"{self.add(list(dict.fromkeys(values)))}::text[]"

    def any_of(self, values: Iterable[str]) -> str:
        """Returns the right side of `=` for any of some values."""
        several = list(dict.fromkeys(values))
        return self.add(several[0]) if len(several) == 1 else f"ANY({self.array(several)})"

    def among(self, column: str, values: Iterable[str]) -> str:
        return f"{column} = {self.any_of(values)}"

    def edges(
        self, relation: str, targets: Iterable[str], between: tuple[str, str] | None = None
    ) -> str:
        """Returns a query for the ids of the entries with an edge to one of some targets, or to one
        between these two."""
        name = self.add(relation)
        rows = _EDGES.format(name, f"= {self.any_of(targets)}")
        if between is None:
            return rows
        first, last = map(self.add, between)
        return f"{rows} UNION ALL {_EDGES.format(name, f'BETWEEN {first} AND {last}')}"

    def has_edge(
        self, relation: str, targets: Iterable[str], between: tuple[str, str] | None = None
    ) -> str:
        return f"e.id = ANY(ARRAY({self.edges(relation, targets, between)}))"

    def is_about_only(self, subjects: Iterable[str]) -> str:
        return f"e.subjects::jsonb <@ to_jsonb({self.array(subjects)})"

    def provenance(self, name: str) -> str:
        return f"e.provenance::json ->> '{name}'"


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Entries from some ranges of one index.

    ranges: the keys of the ranges
    within: the conditions that define a range
    in_order: whether the index orders a range like a page
    conditions: the conditions on the entries of a range
    where: a condition that is computed only for entries that meet the others: its duration must
        tell nothing about an entry that is not visible
    """

    ranges: list[str]
    within: list[str]
    in_order: bool
    conditions: list[str]
    where: str | None = None

    def statement(self, columns: str, top: str) -> str:
        """Returns the matching entries of all ranges.

        top: the order and the limit for each range
        """
        conditions = self.conditions
        if self.where is not None:
            met = " AND ".join(conditions)
            conditions = [*conditions, f"CASE WHEN {met} THEN {self.where} END"]
        if self.in_order:
            where = " AND ".join([*self.within, *conditions])
            inner = f"SELECT * FROM entries e WHERE {where}{top or ' OFFSET 0'}"
        else:
            within, where = " AND ".join(self.within), " AND ".join(conditions)
            closed = f"SELECT * FROM entries WHERE {within} OFFSET 0"
            inner = f"SELECT e.* FROM ({closed}) e WHERE {where}{top}"
        return (
            f"SELECT {columns} FROM {' CROSS JOIN '.join([*self.ranges, f'LATERAL ({inner}) e'])}"
        )


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search, ready to run.

    parts: disjoint sets of entries
    before: the text before the statement
    order: the order of a page; any value but `BY_ID` is the order of the ranges
    """

    parts: list[SearchPart]
    bound: SearchBindings
    before: str = ""
    order: str = BY_ID

    def page(self, wanted: EntryFilter) -> tuple[str, list[Any]]:
        """Returns the statement for one page, and its bindings."""
        limit, offset = wanted.limit, wanted.offset
        bindings = [*self.bound.values, limit, offset]
        last = len(bindings)
        order, top = f"{self.order} DESC", ""
        if self.order == BY_ID:
            bindings.append(None if limit is None else limit + offset)
            top = f" ORDER BY {order_terms(wanted, 'e.')} LIMIT ${len(bindings)}::bigint"
        if self.order == BY_ID or wanted.order != "created" or wanted.ascending:
            order = order_terms(wanted, "")
        rows = " UNION ALL ".join(part.statement(_COLUMNS, top) for part in self.parts)
        page = f"LIMIT ${last - 1}::bigint OFFSET ${last}::bigint"
        return f"{self.before}{rows} ORDER BY {order} {page}", bindings

    def count(self) -> tuple[str, list[Any]]:
        """Returns the statement for the number of entries on all pages, and its bindings."""
        rows = " UNION ALL ".join(part.statement("1", "") for part in self.parts)
        return f"{self.before}SELECT count(*) FROM ({rows}) counted", self.bound.values

    def namespaces(self, after: str, limit: int) -> tuple[str, list[Any]]:
        """Returns the statement for the namespaces of the entries on all pages, with their numbers
        of entries, and its bindings."""
        rows = " UNION ALL ".join(part.statement("namespace", "") for part in self.parts)
        last = len(self.bound.values) + 2
        statement = (
            f"{self.before}SELECT namespace, count(*) FROM ({rows}) found"
            f" WHERE namespace > ${last - 1}::text GROUP BY namespace ORDER BY namespace"
            f" LIMIT ${last}::bigint"
        )
        return statement, [*self.bound.values, after, limit]

    def measure(self, at_most: int | None) -> tuple[str, list[Any]]:
        """Returns the statement for the number and the bytes of the entries on all pages, and its
        bindings.

        at_most: where counting ends, None for no limit
        """
        rows = " UNION ALL ".join(part.statement("size", "") for part in self.parts)
        counted = f"({rows} LIMIT ${len(self.bound.values) + 1}::bigint) counted"
        statement = f"{self.before}SELECT count(*), coalesce(sum(size), 0)::bigint FROM {counted}"
        return statement, [*self.bound.values, at_most]


def unite(pages: Sequence[tuple[int, tuple[str, Sequence[Any]]]]) -> list[Any]:
    """Returns one statement for several pages of a tenant, followed by its bindings. The first two
    columns are the number of the page and the place in the page.

    pages: the number of each page, and its statement with its bindings, the tenant first
    """
    parts: list[str] = []
    bindings: list[Any] = [pages[0][1][1][0]]
    for number, (statement, values) in pages:
        found = _shift_parameters(statement, len(bindings) - 1)
        parts.append(
            f"SELECT {number} AS page, row_number() OVER () AS place, found.* FROM ({found}) found"
        )
        bindings += values[1:]
    return [f"{' UNION ALL '.join(parts)} ORDER BY page, place", *bindings]


def _shift_parameters(statement: str, by: int) -> str:
    """Returns a statement whose bindings after the first follow so many others."""
    return _BINDING.sub(lambda name: f"${int(name[1]) + by}", statement)
