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
from typing import Any, Final, NamedTuple, Protocol

from memorywall.storage.sql.record_spec import ColumnType, RecordSpec
from memorywall.storage.sql.record_table import (
    ATTACHMENTS,
    COORDINATORS,
    INTENT_GRANTS,
    INTENTS,
    NAMESPACES,
    RECORDS,
    TASKS,
    TIER_LIMITS,
)

PAGE: Final = 512
"""How many lines are asked for at a time."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""How much is written in one transaction, unless one row alone is larger."""

Key = tuple[Any, ...]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every backend has it.

    key: the columns, after the tenant, that tell the rows of a tenant apart and give their order
    others: other sets of columns of which a tenant has no two rows alike
    integers, contents: which columns are not text
    raw_texts: which of the contents are text where the database takes every character
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
    """Where in a row each column stands."""

    def __post_init__(self) -> None:
        self.indexes.update({name: index for index, name in enumerate(self.columns)})

    def kind(self, column: str) -> ColumnType:
        """What a column holds."""
        if column in self.integers:
            return ColumnType.INTEGER
        return ColumnType.BYTES if column in self.contents else ColumnType.TEXT

    def key_of(self, row: Row) -> Key:
        """The key of one of its rows."""
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
    """The table of a declared record."""
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
API_KEYS: Final = _table(
    "api_keys",
    "prefix digest principal kind permissions created_at revoked_at subjects",
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
    _table("namespace_grants", "name place agent access", "name agent", integers="place"),
    ENTRIES,
    _table(
        "entry_history",
        "entry version replaced_at body value",
        "entry version",
        integers="version",
        contents="value",
    ),
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
    """Every table that is copied, in order. A declared record that is not listed above comes before
    the events."""
    known = {table.name for table in _LISTED}
    others = [of_record(spec) for name, spec in RECORDS.items() if name not in known]
    last = _LISTED.index(EVENTS)
    return (*_LISTED[:last], *others, *_LISTED[last:])


TABLES: Final = tables()
"""What `tables` gives when the program starts."""

EMBEDDED: Final = (ENTRIES, EVENTS)
"""Tables after whose change embedding begins again."""

DERIVED: Final = frozenset(
    {"tags", "entry_tags", "edges", "usage", "heads", "entry_vectors", "embedding_positions"}
)
"""Tables that are written with those they are derived from, or by the server in its own time."""

LOCAL: Final = frozenset({"writers", "legacy_events", "jobs"})
"""Tables of the traffic between a server and its database, which are of no use elsewhere, and of
what a server moves into the others before it takes requests: `legacy_events` is empty from then.
Of `jobs` a target forgets what it has: how far a job has come says nothing of other rows."""

NOT_CHAINED: Final = (
    "the event log has not been taken into its hash chain; start the server of this version on it"
    " once"
)


class CopyRowDigest(NamedTuple):
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


def digest_row(table: Table, row: Row) -> CopyRowDigest:
    """The line of a row."""
    content = canonical(row)
    return CopyRowDigest(table.key_of(row), hashlib.sha256(content).digest(), len(content))


class CopySide(Protocol):
    """One side of a copy."""

    async def tenants(self) -> list[str]:
        """All tenants' names, sorted by code point."""
        ...

    async def count(self, table: Table, tenant: str) -> int:
        """How many rows of a table are the tenant's."""
        ...

    async def lines(self, table: Table, tenant: str, after: Key | None) -> list[CopyRowDigest]:
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


class CopySource(CopySide, Protocol):
    """The side that is read, on one snapshot from its opening on, beside running servers too."""

    async def changed(self) -> bool:
        """Whether anything was committed since the snapshot, which ends with this call."""
        ...


class CopyTarget(CopySide, Protocol):
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
