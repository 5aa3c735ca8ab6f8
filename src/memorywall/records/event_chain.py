"""The hash chain of a tenant's event log: the one place where its bytes are made and checked.

An event is stored as an envelope and a content, each a row of its own. The content holds what may
have to be erased: names, tags, data. The envelope holds a keyed digest of the content, and chains
the events of a tenant:

    digest(n)  = HMAC-SHA-256(content key, salt(n) || content(n))
    leaf(n)    = SHA-256(0x00 || envelope(n))
    hash(n)    = SHA-256(0x01 || hash(n - 1) || leaf(n)),  hash(0) = 32 zero bytes

`envelope(n)` is the JSON array of its fields as RFC 8785 writes it, `content(n)` the bytes as they
are stored. The salt is random and stands in the row of the content: after both are deleted nothing
tells what the content was, and the chain still verifies. Leaf and node hashes are prefixed as in
RFC 9162 section 2.1, so that a proof for one event shows of the others nothing but hashes.

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
"""The number of the format of envelopes; it is the first field that is hashed."""
ROW_FORMAT: Final = 1
"""The number of the format of row digests that are made now."""
ROW_FIELDS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "tenant", "id", "tier", "owner", "agent_id", "namespace", "key", "scope", "tags", "ttl",
        "expires_at", "version", "pinned", "priority", "sensitivity", "created_at", "updated_at",
        "created_by", "curated_by", "provenance", "size", "sealing_key", "value", "kind",
        "kind_version", "status", "state", "listed", "subjects", "edges", "due_at",
    )
}  # fmt: skip
"""The fields of a stored entry that a row digest covers, by format: all but the last access."""
NO_HASH: Final = bytes(32)
"""Stands for the hash before the first event."""

_SALT_BYTES, _ID_BYTES = 16, 16
_RANDOM_ID = re.compile(r"[a-z]+_[0-9A-HJKMNP-TV-Z]{26}").fullmatch
_encode = msgspec.json.Encoder().encode
_sha256 = hashlib.sha256
_cells = {number: attrgetter(*fields) for number, fields in ROW_FIELDS.items()}


_NO_DATA: Final = msgspec.Raw()


class EventContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What an event says and may have to be erased.

    task_name, intent_name: what the event is bound to, where that is a name that a client chose; a
        random id stands in the envelope
    row: the digest of the row of the entry as the event left it
    data: JSON; empty where there is none
    """

    stream: str = ""
    agent_id: str = ""
    actor: str = ""
    namespace: str = ""
    key: str = ""
    tags: tuple[str, ...] = ()
    task_name: str | None = None
    intent_name: str | None = None
    row: RowDigest | None = None
    data: msgspec.Raw = _NO_DATA


_decode_content = msgspec.json.Decoder(EventContent).decode
_NO_CONTENT = EventContent()


class Envelope(NamedTuple):
    """What stays of an event whatever is erased.

    id: 128 random bits in hexadecimal
    task_id, intent_id: what the event is bound to. A name that a client chose is not hashed
    digest_key: the id of the data key that the digest is keyed with
    digest: of the salt and the content
    previous: the hash of the event before
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


class StoredEvent(NamedTuple):
    """An event as a store keeps it; `hash` is not kept with it.

    stream, agent_id: whose the event is, for queries; they repeat the content and go with it
    salt, content: None after the content has been erased
    """

    envelope: Envelope
    stream: str
    agent_id: str
    salt: bytes | None
    content: bytes | None


class Mac:
    """HMAC-SHA-256 (RFC 2104) under one key, of which the part that hashes the key is done once.

    key: at most 64 bytes
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

    def __call__(self, message: bytes) -> bytes:
        """The digest of a message, 32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


@dataclass(frozen=True, slots=True)
class DigestKey:
    """A data key with the purpose of digests, ready to use.

    id: names the data key
    of_content, of_row: keyed with what is derived from it, each for one use
    """

    id: str
    of_content: Mac
    of_row: Mac

    @classmethod
    def derive(cls, key_id: str, key: bytes) -> DigestKey:
        """The keys that follow from a data key of 32 bytes."""
        return cls(
            key_id,
            Mac(hmac.digest(key, b"memorywall event content", "sha256")),
            Mac(hmac.digest(key, b"memorywall entry row", "sha256")),
        )


def seal_event(
    event: Event, head: LogHead, key: DigestKey, stored: Entry | None = None
) -> StoredEvent:
    """The event as the next one after `head`. One that has a `seq` keeps it.

    stored: the entry as the event leaves it in its row, sealed where it is sealed
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
            row=None if stored is None else RowDigest(ROW_FORMAT, row_digest(stored, key)),
            data=_NO_DATA if event.data is None else msgspec.Raw(event.data),
        )
    )
    envelope = Envelope(
        event.tenant,
        event.seq or head.seq + 1,
        FORMAT,
        random[_SALT_BYTES:].hex(),
        str(event.type),
        event.timestamp,
        event.entry_id,
        "" if event.tier is None else event.tier.value,
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
    """The hash of an event, which the next one names as `previous`."""
    return _sha256(b"\x01" + envelope.previous + leaf_of(envelope)).digest()


def leaf_of(envelope: Envelope) -> bytes:
    """The hash of the envelope alone."""
    return _sha256(b"\x00" + envelope_bytes(envelope)).digest()


def envelope_bytes(envelope: Envelope) -> bytes:
    """The bytes of an envelope that are hashed."""
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
    """The digest of a content that its envelope holds."""
    return key.of_content(salt + content)


def row_digest(entry: Entry, key: DigestKey, row_format: int = ROW_FORMAT) -> bytes:
    """The keyed digest of an entry as it is stored: its value encrypted where it is sealed.

    Raises KeyError for a format that is not known.
    """
    return key.of_row(_encode((row_format, *_cells[row_format](entry))))


def read_content(content: bytes | None) -> EventContent:
    """What a content says; nothing where it has been erased or cannot be read."""
    if content is None:
        return _NO_CONTENT
    try:
        return _decode_content(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _NO_CONTENT


def is_client_name(reference: str | None) -> bool:
    """Whether a task or intent is named by a client's word and not by a random id."""
    return reference is not None and not _RANDOM_ID(reference)


def with_client_names(contents: Iterable[tuple[int, bytes]]) -> tuple[list[int], list[int]]:
    """Of contents by `seq`: those that name a task, and those that name an intent, by a client's
    word, which is to be erased with the content."""
    read = [(seq, read_content(content)) for seq, content in contents]
    return (
        [seq for seq, content in read if content.task_name is not None],
        [seq for seq, content in read if content.intent_name is not None],
    )


def repeats_content(stored: StoredEvent) -> bool:
    """Whether the columns for queries say what the content says."""
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
