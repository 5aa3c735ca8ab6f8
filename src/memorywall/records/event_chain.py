"""The hash chain of a tenant's event log: the only module that makes and checks its bytes.

An event is stored as an envelope and a content, in separate rows. The content has the data that may
have to be erased: names, tags, data. The envelope has a keyed digest of the content, and chains the
events of a tenant:

    digest(n)  = HMAC-SHA-256(content key, salt(n) || content(n))
    leaf(n)    = SHA-256(0x00 || envelope(n))
    hash(n)    = SHA-256(0x01 || hash(n - 1) || leaf(n)),  hash(0) = 32 zero bytes

`envelope(n)` is the JSON array of its fields in RFC 8785 form, `content(n)` the stored bytes. The
salt is random and stored with the content: after both are deleted the content cannot be guessed,
and the chain still verifies. Leaf and node hashes are prefixed as in RFC 9162 section 2.1, so that
a proof for one event reveals only hashes of the others.

The envelope names the digest key by its id. Digest keys are data keys of the tenant that are
retired by rotation and never destroyed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from memorywall.records.entry import Entry
from memorywall.records.event import Event, RowDigest

FORMAT: Final = 1
"""The number of the envelope format; it is the first hashed field."""
ROW_FORMAT: Final = 1
"""The number of the current format of row digests."""
ROW_FIELDS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "tenant", "id", "tier", "owner", "agent_id", "namespace", "key", "scope", "tags", "ttl",
        "expires_at", "version", "pinned", "priority", "sensitivity", "created_at", "updated_at",
        "created_by", "curated_by", "provenance", "size", "sealing_key", "value", "kind",
        "kind_version", "status", "state", "listed", "subjects", "edges", "due_at",
    )
}  # fmt: skip
"""The fields of a stored entry that a row digest covers, by format: all except the last access."""
NO_HASH: Final = bytes(32)
"""The hash that precedes the first event."""

_SALT_BYTES, _ID_BYTES = 16, 16
_RANDOM_ID = re.compile(r"[a-z]+_[0-9A-HJKMNP-TV-Z]{26}").fullmatch
_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256
_cells = {number: attrgetter(*fields) for number, fields in ROW_FIELDS.items()}


_NO_DATA: Final = msgspec.Raw()


class EventContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The part of an event that may have to be erased.

    task_name, intent_name: the task or intent id, if a client chose it; the envelope then has a
        random id
    kind, subjects, session: see `Event`
    row: the digest of the entry's row after the event
    data: JSON; empty if there is none
    """

    stream: str = ""
    agent_id: str = ""
    actor: str = ""
    namespace: str = ""
    key: str = ""
    tags: tuple[str, ...] = ()
    task_name: str | None = None
    intent_name: str | None = None
    kind: str | None = None
    subjects: tuple[str, ...] | None = None
    session: str | None = None
    row: RowDigest | None = None
    data: msgspec.Raw = _NO_DATA


_decode_content = msgspec.json.Decoder(EventContent).decode
_NO_CONTENT = EventContent()


class Envelope(NamedTuple):
    """The permanent part of an event.

    id: 128 random bits in hexadecimal
    task_id, intent_id: the task and intent of the event, without ids that a client chose
    digest_key: the id of the data key of the digest
    digest: the digest of the salt and the content
    previous: the hash of the previous event
    """

    tenant: str
    seq: int
    format: int
    id: str
    type: str
    timestamp: str
    entry_id: str
    tier: str
    version: int
    previous_version: int | None
    task_id: str | None
    intent_id: str | None
    digest_key: str
    digest: bytes
    previous: bytes


class LogHead(NamedTuple):
    """The end of a tenant's log: the `seq` and the hash of its last event."""

    seq: int
    hash: bytes


NO_EVENTS: Final = LogHead(0, NO_HASH)
"""The end of a log without events."""


class StoredEvent(NamedTuple):
    """An event in its stored form; `hash` is not stored with it.

    stream, agent_id: query columns that repeat the content and are erased with it
    salt, content: None after the content has been erased
    """

    envelope: Envelope
    stream: str
    agent_id: str
    salt: bytes | None
    content: bytes | None


class Mac:
    """HMAC-SHA-256 (RFC 2104) under one key, which is hashed once.

    key: at most 64 bytes
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, message: bytes) -> bytes:
        """Returns the digest of a message, 32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


@dataclass(frozen=True, slots=True)
class DigestKey:
    """An unwrapped data key for digests.

    id: the id of the data key
    of_content, of_row: separate derived keys for the two uses
    """

    id: str
    of_content: Mac
    of_row: Mac

    @classmethod
    def derive(cls, key_id: str, key: bytes) -> DigestKey:
        """Derives the keys from a data key of 32 bytes."""
        return cls(
            key_id,
            Mac(hmac.digest(key, b"memorywall event content", "sha256")),
            Mac(hmac.digest(key, b"memorywall entry row", "sha256")),
        )


def seal_event(
    event: Event, head: LogHead, key: DigestKey, stored: Entry | None = None
) -> StoredEvent:
    """Returns the event that follows `head`. An event with a `seq` keeps it.

    stored: the entry's row after the event, sealed if its sensitivity requires it
    """
    random = os.urandom(_SALT_BYTES + _ID_BYTES)
    salt = random[:_SALT_BYTES]
    task, intent = event.task_id, event.intent_id
    content = _encode(
        EventContent(
            stream=event.stream,
            agent_id=event.agent_id,
            actor=event.actor,
            namespace=event.namespace,
            key=event.key,
            tags=event.tags,
            task_name=None if task is None or _RANDOM_ID(task) else task,
            intent_name=None if intent is None or _RANDOM_ID(intent) else intent,
            kind=event.kind,
            subjects=event.subjects,
            session=event.session,
            row=None if stored is None else RowDigest(ROW_FORMAT, row_digest(stored, key)),
            data=_NO_DATA if event.data is None else msgspec.Raw(event.data),
        )
    )
    envelope = Envelope(
        event.tenant,
        event.seq or head.seq + 1,
        FORMAT,
        random[_SALT_BYTES:].hex(),
        event.type,
        event.timestamp,
        event.entry_id,
        event.tier or "",
        event.version,
        event.previous_version,
        task,
        intent,
        key.id,
        content_digest(salt, content, key),
        head.hash,
    )
    return StoredEvent(envelope, event.stream, event.agent_id, salt, content)


def hash_of(envelope: Envelope) -> bytes:
    """Returns the hash of an event, which the next event contains as `previous`."""
    return _sha256(b"\x01" + envelope.previous + leaf_of(envelope)).digest()


def leaf_of(envelope: Envelope) -> bytes:
    """Returns the hash of the envelope alone."""
    return _sha256(b"\x00" + envelope_bytes(envelope)).digest()


def envelope_bytes(envelope: Envelope) -> bytes:
    """Returns the hashed bytes of an envelope."""
    task, intent = envelope.task_id, envelope.intent_id
    return _encode(
        (
            envelope.format,
            envelope.tenant,
            envelope.seq,
            envelope.id,
            envelope.type,
            envelope.timestamp,
            envelope.entry_id,
            envelope.tier,
            envelope.version,
            envelope.previous_version,
            task if task is None or _RANDOM_ID(task) else None,
            intent if intent is None or _RANDOM_ID(intent) else None,
            envelope.digest_key,
            envelope.digest,
        )
    )


def content_digest(salt: bytes, content: bytes, key: DigestKey) -> bytes:
    """Returns the digest of a content for its envelope."""
    return key.of_content(salt + content)


def row_digest(entry: Entry, key: DigestKey, row_format: int = ROW_FORMAT) -> bytes:
    """Returns the keyed digest of an entry in its stored form, with a sealed value encrypted.

    Raises KeyError for an unknown format.
    """
    return key.of_row(_encode((row_format, *_cells[row_format](entry))))


def read_content(content: bytes | None) -> EventContent:
    """Returns the decoded content; an empty one if it has been erased or cannot be decoded."""
    if content is None:
        return _NO_CONTENT
    try:
        return _decode_content(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _NO_CONTENT


def is_client_name(reference: str | None) -> bool:
    """Returns whether a client chose the id of a task or intent, which then is not a random id."""
    return reference is not None and not _RANDOM_ID(reference)


def with_client_names(contents: Iterable[tuple[int, bytes]]) -> tuple[list[int], list[int]]:
    """Returns the `seq` of the contents that name a task, and of those that name an intent, by an
    id that a client chose, which is erased with the content."""
    read = [(seq, read_content(content)) for seq, content in contents]
    return (
        [seq for seq, content in read if content.task_name is not None],
        [seq for seq, content in read if content.intent_name is not None],
    )


def repeats_content(stored: StoredEvent) -> bool:
    """Returns whether the query columns match the content."""
    content = read_content(stored.content)
    envelope = stored.envelope
    task, intent = envelope.task_id, envelope.intent_id
    said: tuple[Any, ...] = (
        content.stream,
        content.agent_id,
        content.task_name,
        content.intent_name,
    )
    return said == (
        stored.stream,
        stored.agent_id,
        task if is_client_name(task) else None,
        intent if is_client_name(intent) else None,
    )
