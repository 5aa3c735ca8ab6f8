"""The contract of a backend for copies: its whole content as rows, table by table, tenant by
tenant.

A copy moves rows and does not interpret them, so everything arrives byte for byte. It compares the
two sides by row digests: key, digest and size of a row, which a database computes locally. Whole
rows are transferred only where they differ.

Derived data (the tag index, usage counts, the end of a log) is not copied: a target writes it
together with the original rows. A target cannot derive vectors. It deletes the vectors of the
entries that it writes and the embedding position of a tenant that it changes, so that its server
embeds the entries without a vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from memorywall.records.backup_origin import BackupOrigin
from memorywall.storage.sql.record_spec import ColumnType, RecordSpec
from memorywall.storage.sql.record_table import (
    ATTACHMENTS,
    COORDINATORS,
    GROUP_MEMBERS,
    GROUPS,
    INTENT_GRANTS,
    INTENTS,
    NAMESPACES,
    RECORDS,
    SESSION_COUNTERS,
    TASKS,
    TIER_LIMITS,
    VALUE_SCHEMAS,
)

PAGE: Final = 512
"""The number of row digests in a page."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""The number of bytes in one transaction, unless a single row is larger."""

Key = tuple[Any, ...]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every backend has it.

    key: the columns, after the tenant, that identify a row of a tenant and define the order
    others: other sets of columns that are unique within a tenant
    integers, contents: the columns that are not text
    raw_texts: the contents that are text in a database that accepts every character
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    others: tuple[tuple[str, ...], ...] = ()
    integers: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    tenant: str = "tenant"
    raw_texts: frozenset[str] = frozenset()
    indexes: dict[str, int] = field(init=False, compare=False, hash=False, default_factory=dict)
    """The index of each column in a row."""

    def __post_init__(self) -> None:
        self.indexes.update({name: index for index, name in enumerate(self.columns)})

    def kind(self, column: str) -> ColumnType:
        """Returns the type of a column."""
        if column in self.integers:
            return ColumnType.INTEGER
        return ColumnType.BYTES if column in self.contents else ColumnType.TEXT

    def key_of(self, row: Row) -> Key:
        """Returns the key of a row."""
        return tuple(row[self.indexes[name]] for name in self.key)


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


def of_record(spec: RecordSpec[Any]) -> Table:
    """Returns the table of a declared record."""
    columns = spec.stored
    return Table(
        spec.table,
        ("tenant", *(name for name, _, _ in columns)),
        spec.key,
        integers=frozenset(name for name, kind, _ in columns if kind is ColumnType.INTEGER),
        contents=frozenset(name for name, kind, _ in columns if kind in _CONTENTS),
        raw_texts=frozenset(name for name, kind, _ in columns if kind is ColumnType.RAW_TEXT),
    )


_CONTENTS = (ColumnType.BYTES, ColumnType.RAW_TEXT)

TENANTS: Final = _table("tenants", "created_at", "", tenant="name")
COUNTERS: Final = _table("counters", "name value", "name", integers="value")
DATA_KEYS: Final = _table(
    "data_keys", "id subject wrapped wrapped_by created_at purpose", "id", contents="wrapped"
)
ENTRIES: Final = _table(
    "entries",
    "id tier owner agent_id namespace key task_id intent_id session_id tags ttl expires_at version"
    " pinned priority sensitivity created_at updated_at accessed_at created_by curated_by"
    " provenance size sealing_key value kind kind_version status state listed subjects edges"
    " due_at",
    "id",
    others=["tier owner namespace key session_id"],
    integers="version pinned priority size kind_version listed",
    contents="value",
)
EVENTS: Final = _table(
    "events",
    "seq format id type timestamp entry_id tier version previous_version task_id intent_id"
    " digest_key digest previous stream agent_id",
    "seq",
    integers="seq format version previous_version",
    contents="digest previous",
)
EVENT_CONTENTS: Final = _table(
    "event_contents", "seq salt content", "seq", integers="seq", contents="salt content"
)
ENTRY_HISTORY: Final = _table(
    "entry_history",
    "entry version replaced_at body value",
    "entry version",
    integers="version",
    contents="value",
)
API_KEYS: Final = _table(
    "api_keys",
    "prefix digest principal kind permissions created_at revoked_at subjects namespaces expires_at"
    " last_used_at successor",
    "prefix",
    contents="digest",
)

_LISTED: Final = (
    TENANTS,
    _table("principals", "id kind created_at", "id"),
    _table(
        "agent_limits",
        "agent episodic_capacity pinned_namespaces",
        "agent",
        integers="episodic_capacity",
    ),
    of_record(TIER_LIMITS),
    DATA_KEYS,
    COUNTERS,
    of_record(NAMESPACES),
    _table(
        "namespace_grants",
        "name place agent access episodic",
        "name agent",
        integers="place episodic",
    ),
    of_record(VALUE_SCHEMAS),
    of_record(GROUPS),
    of_record(GROUP_MEMBERS),
    ENTRIES,
    ENTRY_HISTORY,
    of_record(SESSION_COUNTERS),
    _table(
        "entry_uses",
        "entry uses used_at succeeded failed helped harmed",
        "entry",
        integers="uses succeeded failed helped harmed",
    ),
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
    of_record(INTENTS),
    _table("intent_needs", "needed intent_id", "needed intent_id"),
    of_record(INTENT_GRANTS),
    of_record(TASKS),
    of_record(COORDINATORS),
    of_record(ATTACHMENTS),
    _table(
        "attachment_pieces",
        "attachment_id place content",
        "attachment_id place",
        integers="place",
        contents="content",
    ),
    EVENTS,
    EVENT_CONTENTS,
    API_KEYS,
)  # fmt: skip


def tables() -> tuple[Table, ...]:
    """Returns every copied table, in order. A declared record that is not listed above comes before
    the events."""
    known = {table.name for table in _LISTED}
    others = [of_record(spec) for name, spec in RECORDS.items() if name not in known]
    last = _LISTED.index(EVENTS)
    return (*_LISTED[:last], *others, *_LISTED[last:])


TABLES: Final = tables()
"""The result of `tables` at program start."""

EMBEDDED: Final = (ENTRIES, EVENTS)
"""Tables whose changes restart embedding."""

DERIVED: Final = frozenset(
    {
        "tags",
        "entry_tags",
        "edges",
        "usage",
        "heads",
        "entry_vectors",
        "embedding_positions",
        "index_segments",
    }
)
"""Tables that are written with the tables they are derived from, or by the server later."""

LOCAL: Final = frozenset({"writers", "legacy_events", "jobs", "restores"})
"""Tables of the communication between a server and its database, and of data that a server moves
before it accepts requests: `legacy_events` is empty from then on. A target deletes its own `jobs`,
because the progress of a job does not apply to other rows. `restores` marks the tenants of a
restore that is not finished."""

NOT_CHAINED: Final = (
    "the event log has not been taken into its hash chain; start the server of this version on it"
    " once"
)


UNFINISHED_RESTORE: Final = (
    "a restore into this database is running or was interrupted; run `memorywall restore` again to"
    " complete it"
)


class CopyRowDigest(NamedTuple):
    """The digest of a row.

    digest: SHA-256 of its canonical bytes
    size: the number of canonical bytes
    """

    key: Key
    digest: bytes
    size: int


class TableDigest(NamedTuple):
    """The digest of a table of a tenant.

    digest: SHA-256 over the digests of the rows, in key order, in hexadecimal
    """

    tenant: str
    table: str
    rows: int
    digest: str


def canonical(row: Row) -> bytes:
    """Returns the canonical bytes of a row, identical on every backend: length and content of each
    column.

    An integer is written in decimal. A dash, which is no length, represents NULL.
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


def digest_row(table: Table, row: Row) -> CopyRowDigest:
    """Returns the digest of the row."""
    content = canonical(row)
    return CopyRowDigest(table.key_of(row), hashlib.sha256(content).digest(), len(content))


class CopySide(Protocol):
    """One side of a copy."""

    async def tenants(self) -> list[str]:
        """Returns all tenants' names, sorted by code point."""
        ...

    async def count(self, table: Table, tenant: str) -> int:
        """Returns the number of the tenant's rows in a table."""
        ...

    async def lines(self, table: Table, tenant: str, after: Key | None) -> list[CopyRowDigest]:
        """Returns the next row digests in the order of the key, texts by code point: up to `PAGE`,
        none at the end.

        after: the preceding key; None for the start
        """
        ...

    async def rows(self, table: Table, tenant: str, keys: Sequence[Key]) -> list[Row]:
        """Returns the rows with these keys, in any order. Keys without a row are ignored."""
        ...

    async def end_of_log(self, tenant: str) -> int:
        """Returns the last `seq` of the tenant's events; 0 if there is none."""
        ...

    async def close(self) -> None:
        """Releases all resources."""
        ...


class CopySource(CopySide, Protocol):
    """The source, on one snapshot from its opening on, also while servers run."""

    async def changed(self) -> bool:
        """Returns whether anything was committed since the snapshot. Ends the snapshot."""
        ...


class BackupSource(CopySource, Protocol):
    """A backup as the source."""

    origin: BackupOrigin


class CopyTarget(CopySide, Protocol):
    """The target, on which no server runs.

    is_unfinished: whether the target has only the rows of an interrupted restore, which nobody can
        have used
    """

    is_unfinished: bool

    async def apply(
        self, table: Table, tenant: str, put: Sequence[Row], remove: Sequence[Key]
    ) -> None:
        """Deletes rows, then inserts or replaces rows by key, in one transaction.

        A row that conflicts with an inserted row in a unique column is deleted, because the source
        has no such row. Derived rows change in the same transaction. Absent keys to delete are
        ignored.
        """
        ...

    async def finish(self, tables: Sequence[TableDigest]) -> None:
        """Makes the target durable after everything was copied and compared.

        tables: the digests of all its tables
        """
        ...
