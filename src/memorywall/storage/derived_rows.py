"""Converts entries to the rows that are derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.rows import Row

_encode = msgspec.json.Encoder().encode
_decode_version = msgspec.json.Decoder(Entry).decode

UsageChange = tuple[str, str, str, int, int, int]
"""The bindings of the statement `add_usage`: a tenant, an owner and a tier, and the changes of the
number of entries, their bytes and the pinned entries."""


def usage_change(old: Entry | None, new: Entry | None) -> list[UsageChange]:
    """Returns the changes of an owner's usage when an entry is added, replaced or removed. Unlisted
    entries do not count."""
    entry = old if new is None else new
    assert entry is not None  # noqa: S101 - one of them is there
    before = (0, 0, 0) if old is None or not old.listed else (1, old.size, int(old.pinned))
    after = (0, 0, 0) if new is None or not new.listed else (1, new.size, int(new.pinned))
    if before == after:
        return []
    entries, size, pinned = after[0] - before[0], after[1] - before[1], after[2] - before[2]
    return [(entry.tenant, entry.owner, entry.tier, entries, size, pinned)]


def edge_rows(entry: Entry, edges: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    """Returns the rows of the edge index for some edges of an entry."""
    return [(entry.tenant, relation, target, entry.id) for relation, target in edges]


def history_to_row(old: Entry, replaced_at: str) -> Row:
    """Returns the bindings of the statement `keep`: a complete version that a change replaces."""
    body = msgspec.structs.replace(old, value=b"")
    return old.tenant, old.id, old.version, replaced_at, _encode(body).decode(), old.value


def entry_from_history(row: Sequence[Any]) -> Entry:
    """Converts the last two columns of a row of `links.sql` to a version of an entry."""
    return msgspec.structs.replace(_decode_version(row[-2]), value=row[-1])


def subjects_of_version(body: str) -> tuple[str, ...]:
    """Returns the subjects of a version in their stored form, from the column `body`."""
    return _decode_version(body).subjects


def usage_by_tier_from_rows(rows: Iterable[Sequence[Any]]) -> dict[Tier, Usage]:
    """Converts the rows of the statement `usage_by_tier`."""
    return {Tier(row[0]): Usage(entries=row[1], bytes=row[2], pinned=row[3]) for row in rows}


def reseal_row(entry: Entry, *, earlier: bool) -> Row:
    """Returns the bindings of the statements `reseal` of `entries.sql` and, for an earlier version,
    of `links.sql`."""
    if not earlier:
        return (entry.tenant, entry.id, entry.version, entry.sealing_key, entry.value)
    tenant, entry_id, version, _, body, value = history_to_row(entry, "")
    return (tenant, entry_id, version, body, value)
