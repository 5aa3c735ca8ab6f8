"""The interface through which shared repositories run their statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect

LONGEST_IN_LOOP = 0.004
"""Seconds of processor time after which a transaction function leaves the event loop to others."""


class RowReader(Protocol):
    """Runs reading statements within one transaction."""

    async def rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Returns the rows. They may be cached until a change through the same object."""
        ...

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        """Returns the first row."""
        ...

    async def give_way(self) -> None:
        """See `Transaction.give_way`."""
        ...


class RowAccess(RowReader, Protocol):
    """Runs statements within one transaction, which is bound to its tenant."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect."""
        ...

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction of the registry."""
        ...

    @property
    def bound(self) -> str | None:
        """The bound tenant; None in a transaction of the registry."""
        ...

    async def large_rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Returns the rows, never from a cache."""
        ...

    async def change(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Runs a changing statement and returns its rows."""
        ...

    async def change_each(
        self, statement: str, shared: Sequence[Any], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Runs a changing statement for each of some rows, which may be none.

        The bindings are `shared`, followed by the cells of a row; in PostgreSQL, where it is one
        statement for all rows, they are followed by the columns, each as an array.
        """
        ...

    def names(self, names: Collection[str] | Collection[int]) -> Any:
        """Returns texts or integers as the binding of a list."""
        ...

    def numbers_by_name(self, numbers: Mapping[str, int]) -> Sequence[Any]:
        """Returns integers by name as bindings: one of a JSON object, or in PostgreSQL one of an
        array of the names and one of an array of the integers."""
        ...

    def count_removal(self) -> None:
        """Records that content was removed or replaced, whose bytes must leave the files."""
        ...
