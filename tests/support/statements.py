"""The statements that a store runs, on SQLite and on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.backend import is_on_file
from tests.support.service import RunningService

_AROUND = "BEGIN|COMMIT|ROLLBACK|PRAGMA"
_KEYS = r"\bkey_changes\b|\bapi_keys\b"


class Statements(list[str]):
    """The text of statements, in order."""

    @property
    def transactions(self) -> int:
        """The number of transactions of a tenant."""
        return sum("BEGIN" in one and "memorywall.registry" not in one for one in self)

    @property
    def inside(self) -> list[str]:
        """Those that read or change rows, without those that authenticate."""
        return [one for one in self if not re.match(_AROUND, one) and not re.search(_KEYS, one)]


@contextmanager
def recorded(service: RunningService, patch: pytest.MonkeyPatch) -> Iterator[Statements]:
    """Records the statements of the store of a service; each is one round trip on PostgreSQL."""
    found = Statements()
    if is_on_file():
        store: Any = service.services.store
        connections = (store.unkeyed._reader, store.unkeyed._writer._connection)

        def note(_: Any, statement: str, __: Any) -> bool:
            found.append(statement)
            return True

        for connection in connections:
            connection.exec_trace = note
        yield found
        for connection in connections:
            connection.exec_trace = None
        return

    def noting(method: Any) -> Any:
        async def noted(self: asyncpg.Connection, query: str, *args: Any, **options: Any) -> Any:
            found.append(query)
            return await method(self, query, *args, **options)

        return noted

    with patch.context() as patched:
        for name in ("execute", "fetch", "fetchrow"):
            patched.setattr(asyncpg.Connection, name, noting(getattr(asyncpg.Connection, name)))
        yield found
