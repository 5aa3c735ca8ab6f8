"""The interface through which shared repositories run their statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect


class RowAccess(Protocol):
    """Runs statements within one transaction, which is bound to its tenant."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect."""
        ...

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction of the registry."""
        ...

    async def rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Returns the rows of a reading statement. They may be cached until `change` is called."""
        ...

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        """Returns the first row."""
        ...

    async def large_rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Returns the rows, never from a cache."""
        ...

    async def change(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Runs a changing statement and returns its rows."""
        ...

    def names(self, names: Collection[str]) -> Any:
        """Returns texts as the binding of a list."""
        ...

    def count_removal(self) -> None:
        """Records that content was removed or replaced, whose bytes must leave the files."""
        ...
