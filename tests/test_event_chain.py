"""The bytes of the hash chain, made again by other means."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.event import Event, EventType
from memorywall.records.event_chain import (
    NO_HASH,
    ROW_FIELDS,
    ROW_FORMAT,
    DigestKey,
    LogHead,
    Mac,
    StoredEvent,
    hash_of,
    read_content,
    repeats_content,
    row_digest,
    seal_event,
)
from memorywall_testing.base import make_entry, make_event

_SECRET = bytes(range(32))
_KEY = DigestKey.derive("dek_1", _SECRET)
_INTENT = "int_01J9ZK3V6Q0000000000000000"


def _expected_hash(stored: StoredEvent) -> bytes:
    """The hash as the module's docstring defines it, by the standard library."""
    one = stored.envelope
    fields = [
        one.format, one.tenant, one.seq, one.id, one.type, one.timestamp, one.entry_id, one.tier,
        one.version, one.previous_version, None, one.intent_id, one.digest_key,
        base64.b64encode(one.digest).decode(),
    ]  # fmt: skip
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    leaf = hashlib.sha256(b"\x00" + text).digest()
    return hashlib.sha256(b"\x01" + one.previous + leaf).digest()


@pytest.mark.parametrize("kind", [EventType.CREATED, 'a "word"\\\n\x01\u2028\U0001f44d'])
def test_the_hash_is_made_as_it_is_defined(kind: str) -> None:
    event = make_event(kind, task_id="a client's name", intent_id=_INTENT, previous_version=3)
    stored = seal_event(event, LogHead(7, hashlib.sha256(b"before").digest()), _KEY)
    assert stored.envelope.seq == 8
    assert hash_of(stored.envelope) == _expected_hash(stored)


def test_the_digest_of_a_content_is_keyed_and_salted() -> None:
    first, second = (seal_event(make_event(), LogHead(0, NO_HASH), _KEY) for _ in range(2))
    assert first.content == second.content
    assert first.envelope.digest != second.envelope.digest
    derived = hmac.digest(_SECRET, b"memorywall event content", "sha256")
    assert first.salt is not None
    assert first.content is not None
    digest = hmac.digest(derived, first.salt + first.content, "sha256")
    assert first.envelope.digest == digest
    assert first.envelope.digest_key == "dek_1"


def test_a_mac_is_that_of_the_standard_library() -> None:
    seed = random.randrange(2**32)
    source = random.Random(seed)
    for length in (0, 1, 55, 64, 65, 1000):
        key, message = source.randbytes(source.randrange(1, 65)), source.randbytes(length)
        assert Mac(key)(message) == hmac.digest(key, message, "sha256"), f"seed {seed}"


def test_the_envelope_holds_nothing_that_may_have_to_be_erased() -> None:
    event = make_event(
        stream="Ann", agent_id="Ann", actor="Ann", namespace="Ann", key="Ann", tags=("Ann",),
        task_id="Ann", intent_id="Ann", data=b'{"name":"Ann"}',
    )  # fmt: skip
    stored = seal_event(event, LogHead(0, NO_HASH), _KEY)
    bare = stored.envelope._replace(task_id=None, intent_id=None)
    assert hash_of(bare) == hash_of(stored.envelope)
    assert "Ann" not in repr(bare)
    assert repeats_content(stored)
    assert not repeats_content(stored._replace(stream="Eve"))
    assert not repeats_content(stored._replace(envelope=bare))


def test_content_contains_all_event_fields() -> None:
    event = make_event(namespace="n", key="k", tags=("a", "b"), data=b'{"n": [1, null]}')
    content = read_content(seal_event(event, LogHead(0, NO_HASH), _KEY).content)
    assert (content.namespace, content.key, content.tags) == ("n", "k", ("a", "b"))
    assert bytes(content.data) == b'{"n": [1, null]}'
    assert content.row is None


def test_undecodable_content_is_empty() -> None:
    for content in (b"", b"7", b"\xff", b'{"tags":7}'):
        assert read_content(content) == read_content(None)


def test_the_digest_of_a_row_covers_every_field_of_an_entry() -> None:
    """A field that an entry gets later must be taken into a format of its own."""
    assert set(ROW_FIELDS[ROW_FORMAT]) == set(Entry.__struct_fields__)
    entry = make_entry()
    digests = {row_digest(entry, _KEY)}
    for name in Entry.__struct_fields__:
        other = "other" if getattr(entry, name) != "other" else "another"
        digests.add(row_digest(msgspec.structs.replace(entry, **{name: other}), _KEY))
    assert len(digests) == len(Entry.__struct_fields__) + 1
    stored = seal_event(make_event(), LogHead(0, NO_HASH), _KEY, entry)
    row = read_content(stored.content).row
    assert row is not None
    assert (row.format, row.digest) == (ROW_FORMAT, row_digest(entry, _KEY))


def test_legacy_event_keeps_its_number() -> None:
    event: Event = make_event(seq=9)
    assert seal_event(event, LogHead(4, NO_HASH), _KEY).envelope.seq == 9
