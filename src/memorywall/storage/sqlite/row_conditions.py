"""The conditions on a row in a search, as SQL of fixed parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.storage.sql.filter_conditions import filter_conditions
from memorywall.storage.sqlite.conditions import OPAQUE

Condition = tuple[str, list[Any]]
"""The text of a condition, and its bindings."""

_EDGES = "SELECT entry FROM edges WHERE tenant = ? AND relation = ? AND {}"
_ABOUT_NOBODY_ELSE = (
    "(e.subjects = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(e.subjects) WHERE NOT ({})))"
)


class SqliteFilterDialect:
    """`FilterDialect` for SQLite. Values are bound by position, in the order of the text."""

    opaque = OPAQUE

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self.bindings: list[Any] = []

    def add(self, value: str | int) -> str:
        self.bindings.append(value)
        return "?"

    def among(self, column: str, values: Sequence[str]) -> str:
        text, bindings = among(column, values)
        self.bindings += bindings
        return text

    def has_edge(
        self, relation: str, targets: Sequence[str], between: tuple[str, str] | None = None
    ) -> str:
        self.bindings += (self._tenant, relation)
        rows = _EDGES.format(self.among("target", targets))
        if between is not None:
            self.bindings += (self._tenant, relation, *between)
            rows += f" UNION ALL {_EDGES.format('target BETWEEN ? AND ?')}"
        return f"e.id IN ({rows})"

    def is_about_only(self, subjects: Sequence[str]) -> str:
        return _ABOUT_NOBODY_ELSE.format(self.among("value", subjects))

    def provenance(self, name: str) -> str:
        return f"e.provenance ->> '$.{name}'"


def row_conditions(wanted: EntryFilter, reachable: Condition, now: str) -> Iterable[Condition]:
    """Returns the conditions of the filter, the visibility filter and the expiry."""
    yield "e.tenant = ?", [wanted.tenant]
    yield reachable
    tiers = wanted.tiers
    if not tiers and is_by_name(wanted):
        # With all columns named, the index by name finds the few possible entries.
        tiers = tuple(Tier)
    if tiers:
        yield among("e.tier", tuple(tier.value for tier in tiers))
    dialect = SqliteFilterDialect(wanted.tenant)
    yield " AND ".join(filter_conditions(wanted, now, dialect)), dialect.bindings


def is_by_name(wanted: EntryFilter) -> bool:
    """Returns whether the query is a look-up: few entries of each tier and owner share a name, one
    per session."""
    return wanted.key is not None and wanted.namespace is not None


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Returns the conjunction of some conditions."""
    texts, bindings = [], []
    for text, values in conditions:
        texts.append(text)
        bindings.extend(values)
    return " AND ".join(texts), bindings


def any_of(conditions: list[Condition]) -> Condition:
    """Returns the disjunction of some conditions."""
    bindings = [value for _, values in conditions for value in values]
    return f"({' OR '.join(f'({text})' for text, _ in conditions)})", bindings


def among(column: str, values: Sequence[str] | Sequence[int]) -> Condition:
    """Returns a condition that the column is one of the values; long lists share one statement."""
    if len(values) == 1:
        return f"{column} = ?", [values[0]]
    if len(values) <= 4:
        return f"{column} IN ({', '.join('?' * len(values))})", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]
