"""Converts records to rows and rows to records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, get_args

import msgspec

from memorywall.records.entry import (
    EMPTY_SCOPE,
    PRIORITY_RANK,
    Entry,
    EntryState,
    Provenance,
    Scope,
)
from memorywall.records.event import ENDINGS, EntryChange, Event, EventType, LogEvent, WorkEventType
from memorywall.records.event_chain import Envelope, StoredEvent, read_content
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import ApiKey, Permission, PrincipalKind
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits
from memorywall.storage.sql.access import RowReader

_PRIORITIES = {rank: name for name, rank in PRIORITY_RANK.items()}
_TIERS = {tier.value: tier for tier in Tier}
# Shared objects, so that responses can detect default values by identity.
_STATES: dict[str, EntryState] = {state: state for state in get_args(EntryState)}
_EVENT_TYPES: dict[str, str] = {
    **{kind.value: kind for kind in EventType},
    **{kind.value: kind for kind in WorkEventType},
    **{kind.value: kind for kind in LogEvent},
}
_encode = msgspec.json.Encoder().encode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_provenance = msgspec.json.Decoder(Provenance).decode
# A few writers occur in nearly all entries, so their provenance is cached.
_decode_writer = lru_cache(maxsize=1024)(_decode_provenance)
_decode_edges = msgspec.json.Decoder(tuple[tuple[str, str], ...]).decode
_LONGEST_WRITER = 160
# The entries of a session are about the same person, so a page repeats few subjects and edges.
_decode_subjects = lru_cache(maxsize=64)(_decode_names)
_decode_shared_edges = lru_cache(maxsize=64)(_decode_edges)

Row = tuple[Any, ...]
Decoded = TypeVar("Decoded")

_DECODED_AT_ONCE = 8
"""Records of some hundred kilobytes each, which take few milliseconds."""

NOTHING_SET = AgentLimits()


async def decode_rows(
    reader: RowReader, rows: Iterable[Sequence[Any]], decode: Callable[[Any], Decoded]
) -> list[Decoded]:
    """Returns decoded rows. Gives way between them, because there may be many large ones."""
    decoded: list[Decoded] = []
    for row in rows:
        decoded.append(decode(row))
        if len(decoded) % _DECODED_AT_ONCE == 0:
            await reader.give_way()
    return decoded


@lru_cache(maxsize=1024)
def _encode_writer(provenance: Provenance) -> str:
    return _encode(provenance).decode()


def encode_provenance(provenance: Provenance) -> str:
    """Converts a provenance to the JSON text of its column."""
    if provenance.derived_from or provenance.fencing_token is not None or _is_unique(provenance):
        # Unique provenances would evict the shared ones from the cache.
        return _encode(provenance).decode()
    return _encode_writer(provenance)


def _is_unique(provenance: Provenance) -> bool:
    """Returns whether a provenance contains more than the writer, such as sources."""
    return (
        provenance.session is not None
        or provenance.task is not None
        or provenance.source is not None
        or provenance.context is not None
        or provenance.superseded_by is not None
        or provenance.correction is not None
        or provenance.withdrawal is not None
        or provenance.source_tier is not None
    )


def decode_provenance(text: str) -> Provenance:
    """Converts the JSON text of a row to a provenance."""
    # Parts that differ between entries of one writer come last and are no strings, or make the text
    # long.
    if len(text) <= _LONGEST_WRITER and text[-2:] == '"}':
        return _decode_writer(text)
    return _decode_provenance(text)


def encode_names(names: Collection[str]) -> str:
    """Converts tags and similar lists to the JSON text of their column."""
    return _encode(names).decode() if names else "[]"


def decode_names(text: str) -> tuple[str, ...]:
    """Converts the JSON text of a row to tags and similar lists."""
    return () if text == "[]" else _decode_names(text)


def decode_edges(text: str) -> tuple[tuple[str, str], ...]:
    """Converts the JSON text of a row to edges: pairs of a relation and a target."""
    return () if text == "[]" else _decode_edges(text)


def encode_edges(edges: Collection[tuple[str, str]]) -> str:
    """Converts edges to the JSON text of their column."""
    return _encode(edges).decode() if edges else "[]"


def encode_grants(grants: Iterable[Grant]) -> str:
    """Converts the grants of a namespace to the binding of the statement `add_grants`."""
    return _encode([(one.agent, one.access, int(one.episodic)) for one in grants]).decode()


def entry_from_row(row: Sequence[Any]) -> Entry:
    """Converts a row with the statement's `columns` to an entry."""
    scope = EMPTY_SCOPE
    if row[7] is not None or row[8] is not None or row[9] is not None:
        scope = Scope(task_id=row[7], intent_id=row[8], session_id=row[9])
    # Each argument by name would be looked up among all fields.
    return Entry(
        row[0],
        row[1],
        _TIERS[row[2]],
        row[3],
        row[4],
        row[5],
        row[6],
        row[24],
        row[22],
        row[17],
        row[18],
        row[19],
        decode_provenance(row[21]),
        row[23],
        scope,
        () if row[10] == "[]" else _decode_names(row[10]),
        row[11],
        row[12],
        row[13],
        row[14] == 1,
        _PRIORITIES[row[15]],  # type: ignore[arg-type]
        row[16],
        row[20],
        row[25],
        row[26],
        row[27],
        _STATES[row[28]],
        row[29] == 1,
        () if row[30] == "[]" else _decode_subjects(row[30]),
        () if row[31] == "[]" else _decode_shared_edges(row[31]),
        row[32],
    )


def entry_to_row(entry: Entry, accessed_at: str) -> Row:
    """Returns the bindings of the statement `insert`."""
    scope = entry.scope
    return (
        entry.tenant,
        entry.id,
        entry.tier,
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
        *_kind_cells(entry),
        accessed_at,
    )


def _kind_cells(entry: Entry) -> Row:
    """Returns the bindings for the kind, the state and the subjects of an entry."""
    return (
        entry.kind,
        entry.kind_version,
        entry.status,
        entry.state,
        int(entry.listed),
        encode_names(entry.subjects),
        encode_edges(entry.edges),
        entry.due_at,
    )


def replacement_row(old: Entry, new: Entry) -> Row:
    """Returns the bindings of the statement `replace`."""
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
        *_kind_cells(new),
        old.version,
    )


def event_from_row(row: Sequence[Any]) -> Event:
    """Converts a row of the statements of `events.sql` to an event."""
    content = read_content(row[10])
    return Event(
        tenant=row[0],
        seq=row[1],
        type=_EVENT_TYPES.get(row[2]) or row[2],
        stream=content.stream,
        agent_id=content.agent_id,
        actor=content.actor,
        entry_id=row[3],
        tier=_TIERS[row[4]] if row[4] else None,
        namespace=content.namespace,
        key=content.key,
        version=row[5],
        previous_version=row[6],
        tags=content.tags,
        task_id=row[7],
        intent_id=row[8],
        timestamp=row[9],
        data=bytes(content.data) or None,
        kind=content.kind,
        subjects=content.subjects,
        session=content.session,
        row=content.row,
    )


def stored_event_from_row(row: Sequence[Any]) -> StoredEvent:
    """Converts a row of the statements `last_envelope` and `log` to an event, byte for byte."""
    return StoredEvent(Envelope(*row[:15]), *row[15:])


def change_from_row(row: Sequence[Any]) -> EntryChange:
    """Converts a row of the statement `list_of_entries` to the change of an entry."""
    return EntryChange(
        seq=row[0],
        entry_id=row[1],
        tier=_TIERS[row[2]],
        agent_id=row[3],
        version=row[4],
        ended=row[5] in ENDINGS,
        kind=row[6],
    )


def envelope_to_row(stored: StoredEvent) -> Row:
    """Returns the bindings of the statement `append`."""
    return (*stored.envelope, stored.stream, stored.agent_id)


def content_to_row(stored: StoredEvent) -> Row:
    """Returns the bindings of the statement `append_content`."""
    envelope = stored.envelope
    return (envelope.tenant, envelope.seq, stored.salt, stored.content)


def legacy_event_from_row(row: Sequence[Any]) -> Event:
    """Converts a row of the log before the chain to an event."""
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


def key_from_row(row: Sequence[Any]) -> ApiKey:
    """Converts a row of the statements of `identities.sql` to an API key. Equal rows mostly give
    the same object, because a key is read again after each commit."""
    return _key_from_row(tuple(row))


@lru_cache(maxsize=1024)
def _key_from_row(row: tuple[Any, ...]) -> ApiKey:
    return ApiKey(
        prefix=row[0],
        digest=row[1],
        tenant=row[2],
        principal=row[3],
        kind=PrincipalKind(row[4]),
        permissions=frozenset(Permission(name) for name in row[5].split(",") if name),
        created_at=row[6],
        revoked_at=row[7],
        subjects=decode_names(row[8]),
        namespaces=decode_names(row[9]) if row[9] else (),
        expires_at=row[10],
        last_used_at=row[11],
        successor=row[12],
    )


def key_to_row(key: ApiKey) -> Row:
    """Returns the bindings of the statement `add_key`."""
    return (
        key.prefix,
        key.digest,
        key.tenant,
        key.principal,
        key.kind.value,
        ",".join(sorted(key.permissions)),
        key.created_at,
        key.revoked_at,
        encode_names(key.subjects),
        encode_names(key.namespaces) if key.namespaces else None,
        key.expires_at,
        key.last_used_at,
        key.successor,
    )


def limits_from_row(row: Sequence[Any] | None) -> AgentLimits:
    """Converts a row of the statement `limits` to an agent's limits; no limits if there is no
    row."""
    if row is None:
        return NOTHING_SET
    return AgentLimits(episodic_capacity=row[0], pinned_namespaces=decode_names(row[1]))


def namespace_from_row(row: Sequence[Any], grants: Iterable[Sequence[Any]]) -> Namespace:
    """Converts the first columns of a row of the statements `get` and `list_for` to a namespace,
    with those of `grants` that name an agent."""
    return Namespace(
        tenant=row[0],
        name=row[1],
        default=Access(row[2]),
        version=row[3],
        created_at=row[4],
        updated_at=row[5],
        last_write_wins=bool(row[6]),
        schemas=row[7],
        indexes=row[8],
        grants=tuple(
            Grant(agent=agent, access=Access(level), episodic=bool(episodic))
            for agent, level, episodic in grants
            if agent is not None
        ),
    )


def reply_from_row(
    tenant: str, principal: str, key: str, row: Sequence[Any], links: Iterable[Sequence[Any]]
) -> IdempotencyRecord:
    """Converts a row of the statement `get` of `replies.sql` and the rows of `links` to a stored
    response."""
    return IdempotencyRecord(
        tenant=tenant,
        principal=principal,
        key=key,
        fingerprint=row[0],
        status=row[1],
        reply=row[2],
        sealing_key=row[3],
        created_at=row[4],
        entry_ids=tuple(link[0] for link in links),
    )


def reply_to_row(kept: IdempotencyRecord) -> Row:
    """Returns the bindings of the statement `put` of `replies.sql`."""
    return (
        kept.tenant,
        kept.principal,
        kept.key,
        kept.fingerprint,
        kept.status,
        kept.reply,
        kept.sealing_key,
        kept.created_at,
    )
