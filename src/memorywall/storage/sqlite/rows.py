"""Between records and rows."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import msgspec

from memorywall.records.entry import EMPTY_SCOPE, PRIORITY_RANK, Entry, Provenance, Scope
from memorywall.records.event import Event, EventType, WorkEvent
from memorywall.records.tier import Tier

_PRIORITIES = {rank: name for name, rank in PRIORITY_RANK.items()}
_TIERS = {tier.value: tier for tier in Tier}
_EVENT_TYPES: dict[str, str] = {
    **{kind.value: kind for kind in EventType},
    **{kind.value: kind for kind in WorkEvent},
}
_encode = msgspec.json.Encoder().encode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_provenance = msgspec.json.Decoder(Provenance).decode
# The same few writers stand behind nearly all entries.
_decode_writer = lru_cache(maxsize=1024)(_decode_provenance)

Row = tuple[Any, ...]


@lru_cache(maxsize=1024)
def _encode_writer(provenance: Provenance) -> str:
    return _encode(provenance).decode()


def encode_provenance(provenance: Provenance) -> str:
    """A provenance as the JSON text that stands in a row."""
    if provenance.derived_from or provenance.fencing_token is not None:
        # There are as many of these as entries: they would push each other out.
        return _encode(provenance).decode()
    return _encode_writer(provenance)


def decode_provenance(text: str) -> Provenance:
    """The provenance of a row."""
    # What tells entries of one writer apart comes last, and is no string.
    return _decode_writer(text) if text.endswith('"}') else _decode_provenance(text)


def encode_names(names: Collection[str]) -> str:
    """Tags and the like as the JSON text that stands in a row."""
    return _encode(names).decode() if names else "[]"


def decode_names(text: str) -> tuple[str, ...]:
    """The tags of a row, and the like."""
    return () if text == "[]" else _decode_names(text)


def encode_body(record: msgspec.Struct) -> str:
    """A record that is kept whole, as the JSON text that stands in its row."""
    return _encode(record).decode()


def entry_from_row(row: Row) -> Entry:
    """The entry in a row of the statement's `columns`."""
    scope = EMPTY_SCOPE
    if row[8] is not None or row[9] is not None or row[10] is not None:
        scope = Scope(task_id=row[8], intent_id=row[9], session_id=row[10])
    return Entry(
        tenant=row[1],
        id=row[2],
        tier=_TIERS[row[3]],
        owner=row[4],
        agent_id=row[5],
        namespace=row[6],
        key=row[7],
        scope=scope,
        tags=decode_names(row[11]),
        ttl=row[12],
        expires_at=row[13],
        version=row[14],
        pinned=row[15] == 1,
        priority=_PRIORITIES[row[16]],  # type: ignore[arg-type]
        sensitivity=row[17],
        created_at=row[18],
        updated_at=row[19],
        created_by=row[20],
        curated_by=row[21],
        provenance=decode_provenance(row[22]),
        size=row[23],
        sealing_key=row[24],
        value=row[25],
    )


def entry_to_row(entry: Entry, accessed_at: str) -> Row:
    """The bindings of the statement `insert`."""
    scope = entry.scope
    return (
        entry.tenant,
        entry.id,
        entry.tier.value,
        entry.owner,
        entry.agent_id,
        entry.namespace,
        entry.key,
        scope.task_id,
        scope.intent_id,
        scope.session_id,
        encode_names(entry.tags),
        entry.ttl,
        entry.expires_at,
        entry.version,
        int(entry.pinned),
        PRIORITY_RANK[entry.priority],
        entry.sensitivity,
        entry.created_at,
        entry.updated_at,
        entry.created_by,
        entry.curated_by,
        encode_provenance(entry.provenance),
        entry.size,
        entry.sealing_key,
        entry.value,
        accessed_at,
    )


def replacement_row(old: Entry, new: Entry) -> Row:
    """The bindings of the statement `replace`."""
    scope = new.scope
    return (
        old.tenant,
        old.id,
        scope.task_id,
        scope.intent_id,
        scope.session_id,
        encode_names(new.tags),
        new.ttl,
        new.expires_at,
        new.version,
        int(new.pinned),
        PRIORITY_RANK[new.priority],
        new.sensitivity,
        new.updated_at,
        new.curated_by,
        encode_provenance(new.provenance),
        new.size,
        new.sealing_key,
        new.value,
        old.version,
    )


def event_from_row(row: Row) -> Event:
    """The event in a row of the statements of `events.sql`."""
    return Event(
        tenant=row[0],
        seq=row[1],
        type=_EVENT_TYPES.get(row[2]) or row[2],
        stream=row[3],
        agent_id=row[4],
        actor=row[5],
        entry_id=row[6],
        tier=_TIERS[row[7]] if row[7] else None,
        namespace=row[8],
        key=row[9],
        version=row[10],
        previous_version=row[11],
        tags=decode_names(row[12]),
        task_id=row[13],
        intent_id=row[14],
        timestamp=row[15],
        data=row[16],
    )


def event_to_row(event: Event) -> Row:
    """The bindings of the statement `append`."""
    return (
        event.tenant,
        event.seq,
        str(event.type),
        event.stream,
        event.agent_id,
        event.actor,
        event.entry_id,
        "" if event.tier is None else event.tier.value,
        event.namespace,
        event.key,
        event.version,
        event.previous_version,
        encode_names(event.tags),
        event.task_id,
        event.intent_id,
        event.timestamp,
        event.data,
    )
