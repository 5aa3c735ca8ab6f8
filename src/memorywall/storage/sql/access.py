"""How repositories that are written once for both databases run their statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from memorywall.storage.sql.record_spec import Row
from memorywall.storage.sql.record_statements import Dialect


class RowAccess(Protocol):
    """Runs statements within one transaction, which is bound to its tenant."""

    @property
    def dialect(self) -> Dialect:
        """Which statements it understands."""
        ...

    @property
    def tenant(self) -> str:
        """The bound tenant. Raises LookupError in a transaction over the registry."""
        ...

    async def rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """The rows of a statement that reads. They may be remembered until `change` is called."""
        ...

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        """The first of them."""
        ...

    async def large_rows(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """The same, never remembered."""
        ...

    async def change(self, statement: str, *bindings: Any) -> Sequence[Row]:
        """Runs a statement that changes; the rows are what it returns."""
        ...

    def names(self, names: Collection[str]) -> Any:
        """Texts as the binding of a list."""
        ...

    def count_removal(self) -> None:
        """Content was removed or replaced, whose bytes have yet to leave the files."""
        ...
