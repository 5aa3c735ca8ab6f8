"""What a backend owes to being copied: its whole content as rows, table by table, tenant by tenant.

A copy moves rows, not records: what it does not understand it cannot change, so everything arrives
byte for byte. It compares the two sides by *lines*, a row's key, digest and size, which a database
makes where the rows are; whole rows travel only where something differs.

What is derived from other rows (the index of tags, the counts of what an owner has, the end of a
log) is not copied: a target writes it together with the rows it is derived from. Vectors it cannot
make: it drops those of the entries it writes, and how far embedding has come in a tenant that it
changes, so that its server embeds whatever has no vector then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

PAGE: Final = 512
"""How many lines are asked for at a time."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""How much is written in one transaction, unless one row alone is larger."""

Key = tuple[Any, ...]
Row = tuple[Any, ...]


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every backend has it.

    key: the columns, after the tenant, that tell the rows of a tenant apart and give their order
    others: other sets of columns of which a tenant has no two rows alike
    integers, contents: which columns are not text
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()
    integers: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    tenant: str = "tenant"
    places: dict[str, int] = field(init=False, compare=False, hash=False, default_factory=dict)
    """Where in a row each column stands."""

    def __post_init__(self) -> None:
        self.places.update({name: place for place, name in enumerate(self.columns)})

    def kind(self, column: str) -> Kind:
        """What a column holds."""
        if column in self.integers:
            return Kind.INTEGER
        return Kind.BYTES if column in self.contents else Kind.TEXT

    def key_of(self, row: Row) -> Key:
        """The key of one of its rows."""
        return tuple(row[self.places[name]] for name in self.key)


def _table(
    name: str,
    columns: str,
    key: str,
    *,
    others: Sequence[str] = (),
    integers: str = "",
    contents: str = "",
    tenant: str = "tenant",
) -> Table:
    return Table(
        name,
        (tenant, *columns.split()),
        tuple(key.split()),
        tuple(tuple(other.split()) for other in others),
        frozenset(integers.split()),
        frozenset(contents.split()),
        tenant,
    )


TENANTS: Final = _table("tenants", "created_at", "", tenant="name")
COUNTERS: Final = _table("counters", "name value", "name", integers="value")
DATA_KEYS: Final = _table(
    "data_keys", "id subject wrapped wrapped_by created_at", "id", contents="wrapped"
)
ENTRIES: Final = _table(
    "entries",
    "id tier owner agent_id namespace key task_id intent_id session_id tags ttl expires_at version"
    " pinned priority sensitivity created_at updated_at accessed_at created_by curated_by"
    " provenance size sealing_key value",
    "id",
    others=["tier owner namespace key"],
    integers="version pinned priority size",
    contents="value",
)
EVENTS: Final = _table(
    "events",
    "seq type stream agent_id actor entry_id tier namespace key version previous_version tags"
    " task_id intent_id timestamp data",
    "seq",
    integers="seq version previous_version",
    contents="data",
)
API_KEYS: Final = _table(
    "api_keys",
    "prefix digest principal kind permissions created_at revoked_at",
    "prefix",
    contents="digest",
)

TABLES: Final = (
    TENANTS,
    _table("principals", "id kind created_at", "id"),
    _table(
        "agent_limits",
        "agent episodic_capacity pinned_namespaces",
        "agent",
        integers="episodic_capacity",
    ),
    DATA_KEYS,
    COUNTERS,
    _table("namespaces", "name default_access version created_at updated_at", "name",
           integers="version"),
    _table("namespace_grants", "name place agent access", "name agent", integers="place"),
    ENTRIES,
    _table("entry_uses", "entry uses", "entry", integers="uses"),
    _table(
        "kept_replies",
        "principal key fingerprint status reply sealing_key created_at",
        "principal key",
        integers="status",
        contents="fingerprint reply",
    ),
    _table("kept_reply_entries", "entry_id principal key", "entry_id principal key"),
    _table(
        "leases",
        "kind place name id token holder purpose acquired_at renewed_at expires_at",
        "kind place name",
        others=["id", "token"],
        integers="token",
    ),
    _table("intents", "id created_by default_policy status parent_intent_id body", "id"),
    _table("intent_needs", "needed intent_id", "needed intent_id"),
    _table(
        "intent_grants",
        "intent_id id principal_id principal_type access granted_by granted_at expires_at reason",
        "intent_id id",
        contents="reason",
    ),
    _table("tasks", "id intent_id status assigned_agent body", "id"),
    _table("coordinators", "id intent_id body", "id"),
    _table("attachments", "id intent_id body", "id"),
    _table(
        "attachment_pieces",
        "attachment_id place content",
        "attachment_id place",
        integers="place",
        contents="content",
    ),
    EVENTS,
    API_KEYS,
)  # fmt: skip
"""In the order they are copied."""

EMBEDDED: Final = (ENTRIES, EVENTS)
"""Tables after whose change embedding begins again."""

DERIVED: Final = frozenset(
    {"tags", "entry_tags", "usage", "heads", "entry_vectors", "embedding_positions"}
)
"""Tables that are written with those they are derived from, or by the server in its own time."""

LOCAL: Final = frozenset({"writers"})
"""Tables of the traffic between a server and its database, which are of no use elsewhere."""


class Line(NamedTuple):
    """A row in short.

    digest: SHA-256 of its canonical bytes
    size: how many those are
    """

    key: Key
    digest: bytes
    size: int


def canonical(row: Row) -> bytes:
    """A row as bytes that are the same on every backend: of each column its length and content.

    An integer stands in decimal; what is absent is a dash, which is no length.
    """
    parts: list[bytes] = []
    for cell in row:
        if cell is None:
            parts.append(b"-")
            continue
        if isinstance(cell, str):
            content = cell.encode()
        else:
            content = cell if isinstance(cell, bytes) else b"%d" % cell
        parts.append(b"%d:" % len(content))
        parts.append(content)
    return b"".join(parts)


def line_of(table: Table, row: Row) -> Line:
    """The line of a row."""
    content = canonical(row)
    return Line(table.key_of(row), hashlib.sha256(content).digest(), len(content))


class Readable(Protocol):
    """One side of a copy."""

    async def tenants(self) -> list[str]:
        """All tenants' names, sorted by code point."""
        ...

    async def count(self, table: Table, tenant: str) -> int:
        """How many rows of a table are the tenant's."""
        ...

    async def lines(self, table: Table, tenant: str, after: Key | None) -> list[Line]:
        """The next lines in the order of the key, those of text by code point: up to `PAGE`, none
        at the end.

        after: the key they come after; None for the first
        """
        ...

    async def rows(self, table: Table, tenant: str, keys: Sequence[Key]) -> list[Row]:
        """The rows with these keys, in any order. A key without a row is passed over."""
        ...

    async def end_of_log(self, tenant: str) -> int:
        """The last `seq` of the tenant's events; 0 when there is none."""
        ...

    async def close(self) -> None:
        """Lets go of everything."""
        ...


class Origin(Readable, Protocol):
    """The side that is read, on one snapshot from its opening on, beside running servers too."""

    async def changed(self) -> bool:
        """Whether anything was committed since the snapshot, which ends with this call."""
        ...


class Target(Readable, Protocol):
    """The side that is written, on which no server runs."""

    async def apply(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        """Removes rows, then puts rows in the place of those with their key, all in a transaction.

        A row in the way of one that is put, because it has what no two rows may share, goes: the
        source has no such row. What is derived from the rows changes in the same transaction. A key
        to remove that is not there is passed over.
        """
        ...

    async def finish(self) -> None:
        """Everything is there and was compared: makes it last."""
        ...
