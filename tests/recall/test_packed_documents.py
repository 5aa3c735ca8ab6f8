"""Documents in packed form are the documents that were packed, and take little room."""

from __future__ import annotations

import random
from datetime import date

import msgspec
import pytest

from memorywall.recall.document import Document
from memorywall.recall.packed_documents import Documents, pack
from memorywall.records.recall import EntryOutcome
from memorywall.records.tier import Tier
from memorywall.records.validity import Validity
from tests.support.extent import extent


def _document(chance: random.Random, number: int) -> Document:
    """A document of a conversation, or one with every field."""
    name = chance.choice(["ada", "grace", "barbara"])
    day = date(2026, 1 + number % 12, 1 + number % 28)
    document = Document(
        entry_id=f"mem_{number:010}{chance.getrandbits(64):016X}",
        version=1,
        tier=Tier.SESSION,
        namespace="talk",
        agent_id="agent-of-all",
        task_id=None,
        intent_id=None,
        session_id=f"session-{number // 20}",
        tags=(),
        pinned=False,
        created_at=f"2026-02-{1 + number % 28:02}T00:00:00.000Z",
        updated_at=f"2026-02-{1 + number % 28:02}T00:00:00.000Z",
        expires_at=None,
        author=name,
        is_named=True,
        moment=1_770_000_000_000 + chance.randrange(10**9),
        day=day,
        outcome=None,
        trust=0.6,
        origin="agent",
    )
    if chance.random() < 0.9:
        return document
    return msgspec.structs.replace(
        document,
        tags=tuple(chance.choices(["one", "two", "\u732b"], k=chance.randrange(4))),
        outcome=EntryOutcome.SUCCESS,
        subjects=(name, "x" * chance.randrange(9_000)),
        validity=Validity("2026-01-01T00:00:00.000Z"),
        state="done",
        listed=False,
        language="de",
        is_dated=True,
    )


@pytest.mark.parametrize("size", [1, 2, 31, 33, 1_000])
@pytest.mark.parametrize("seed", range(extent(2, long=40)))
def test_packed_documents_are_those_that_were_packed(seed: int, size: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    expected = [_document(chance, number) for number in range(2 * size + 1)]
    alive = bytearray(b"\1" * len(expected))
    documents = Documents(alive)
    documents.append_pack(pack(expected[:size]))
    documents.append(expected[size])
    documents.append_pack(pack(expected[size + 1 :]))
    order = chance.sample(range(len(expected)), len(expected))
    for number in order:
        found = documents.find(expected[number].entry_id)
        assert found == (None if number == size else number)
        assert documents[number] == expected[number]
    assert list(documents) == expected
    assert documents[1:-1] == expected[1:-1]
    removed = order[0] if order[0] != size else order[1]
    documents.remove(removed)
    alive[removed] = 0
    assert documents[removed] is None
    assert documents.find(expected[removed].entry_id) is None
    assert [one for one in documents if one is not None] == [
        one for number, one in enumerate(expected) if number != removed
    ]
    assert documents.find("mem_") is None
    assert len(documents) == len(expected)


def test_what_documents_share_is_stored_in_some_of_them() -> None:
    chance = random.Random(1)
    same = [_document(chance, number) for number in range(1_000)]
    documents = [msgspec.structs.replace(one, subjects=()) for one in same]
    packed = pack(documents)
    plain = sum(len(msgspec.msgpack.encode(document)) for document in documents)
    # The ids alone, of which a half is random, take 12 bytes a document.
    assert len(packed.documents) + len(packed.samples) < plain / 3
