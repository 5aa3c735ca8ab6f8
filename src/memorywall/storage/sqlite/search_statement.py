"""The text of a search for SQLite: its parts and its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memorywall.records.filter import EntryFilter
from memorywall.storage.entry_columns import order_terms
from memorywall.storage.statements import load

_SQL = load("sqlite", "entries")
_COLUMNS = "e." + _SQL["columns"].replace("\n", " ").replace(", ", ", e.")
_RENDERED = f"e.id, e.tier, e.owner, e.kind, {_SQL['rendered'].replace(chr(10), ' ')}"


@dataclass(frozen=True, slots=True)
class QueryPart:
    """The source of rows, and their conditions."""

    source: str
    condition: str
    bindings: list[Any]


@dataclass(frozen=True, slots=True)
class SqliteQuery:
    """A search, ready to run.

    parts: disjoint sets of rows; each is a statement of its own, so that it uses an index of its
        own
    """

    parts: list[QueryPart]
    wanted: EntryFilter

    def page(self, *, rendered: bool = False) -> tuple[str, tuple[Any, ...]]:
        """The statement for one page.

        rendered: its rows are those of a `RenderedPage` and not entries; default: false
        """
        statement, bindings = self._select(_RENDERED if rendered else _COLUMNS)
        order = order_terms(self.wanted, "" if len(self.parts) > 1 else "e.")
        limit = -1 if self.wanted.limit is None else self.wanted.limit
        statement += f" ORDER BY {order} LIMIT ? OFFSET ?"
        return statement, (*bindings, limit, self.wanted.offset)

    def measure(self, at_most: int | None) -> tuple[str, tuple[Any, ...]]:
        """Returns the statement for the number and the bytes of the rows on all pages.

        at_most: where counting ends, None for no limit
        """
        statement, bindings = self._select("e.size AS size")
        limit = -1 if at_most is None else at_most
        return (
            f"SELECT count(*), coalesce(sum(size), 0) FROM ({statement} LIMIT ?)",
            (*bindings, limit),
        )

    def namespaces(self, after: str, limit: int) -> tuple[str, tuple[Any, ...]]:
        """Returns the statement for the namespaces of the rows on all pages, with their numbers of
        rows."""
        statement, bindings = self._select("e.namespace AS namespace")
        return (
            f"SELECT namespace, count(*) FROM ({statement}) WHERE namespace > ?"
            " GROUP BY namespace ORDER BY namespace LIMIT ?",
            (*bindings, after, limit),
        )

    def count(self) -> tuple[str, tuple[Any, ...]]:
        """Returns the statement for the number of rows on all pages."""
        if len(self.parts) == 1:
            return self._select("count(*)")
        statement, bindings = self._select("count(*) AS counted")
        return f"SELECT sum(counted) FROM ({statement})", bindings

    def _select(self, columns: str) -> tuple[str, tuple[Any, ...]]:
        statement = " UNION ALL ".join(
            f"SELECT {columns} FROM {part.source} WHERE {part.condition}" for part in self.parts
        )
        return statement, tuple(value for part in self.parts for value in part.bindings)
