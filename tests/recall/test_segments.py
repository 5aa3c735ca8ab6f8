"""Shards that are loaded from index segments are those that are loaded entry by entry."""

from __future__ import annotations

import hashlib
import random
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from memorywall.jobs import write_segments
from memorywall.jobs.flush import flush_uses
from memorywall.jobs.job_runner import StepResult, run_in_tenant
from memorywall.jobs.write_segments import SEGMENTS_JOB, choose_run
from memorywall.recall import segments
from memorywall.recall.analyzer import Analyzer
from memorywall.recall.document import DEFAULT_FIELDS, AuthorDateFields
from memorywall.recall.index_shard import IndexShard
from memorywall.recall.inverted_index import COUNT_BITS
from memorywall.recall.links import NOTHING
from memorywall.recall.packed_documents import Documents
from memorywall.recall.sentence_digests import SentenceDigests, digests_at
from memorywall.recall.stored_vectors import FACTOR_BYTES
from memorywall.records.entry import Entry
from memorywall.records.principal import Maintenance
from memorywall.records.recall import StoredSegment
from memorywall.records.tier import Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.maintenance import inspect
from memorywall.settings import DATABASE_NAME, DEFAULT_TENANT
from memorywall_testing.base import make_entry
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.recall.test_index_shards import AGENTS, A, fill, replies
from tests.support.damage import verified
from tests.support.embedder import WordEmbedder
from tests.support.extent import extent
from tests.support.stored import change

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_segments, "SEGMENT_SIZE", 6)
    monkeypatch.setattr(write_segments, "_LEAST", 2)
    monkeypatch.setattr(write_segments, "_SETTLED_MILLISECONDS", 5_000)


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


async def _write_segments(recall: RecallService) -> int:
    job = await run_in_tenant(recall.services, DEFAULT_TENANT, SEGMENTS_JOB, early=True)
    return 0 if job is None else job.done


def anew(recall: RecallService, *, segments_too: bool) -> RecallService:
    """The service of a new process, which may read segments."""
    fresh = recall.anew()
    if not segments_too:
        fresh.index._loader._form = ""
    return fresh


async def _contents(recall: RecallService) -> list[bytes]:
    """The segments of all owners, oldest first."""
    form = segments.form_of(DEFAULT_FIELDS)

    async def read(context: OperationContext) -> list[bytes]:
        found = []
        for owner, tier in [*((one.id, Tier.EPISODIC) for one in AGENTS), ("", Tier.SEMANTIC)]:
            after, following = "", context.transaction.recall.next_segment
            while one := await following(tier, owner, form, after):
                found.append(one.content)
                after = one.last
        return found

    return await inspect(recall.services, DEFAULT_TENANT, Maintenance.INDEX, read)


def described(shard: IndexShard) -> dict[str, Any]:
    """Everything a shard says of its documents, by their ids."""
    documents = list(shard.documents)
    ids = [document.entry_id if document is not None else "" for document in documents]
    authors = {number: author for author, number in shard.author_numbers.items()}
    words, links, vectors = shard.words, shard.links, shard.vectors
    assert vectors is not None
    vectors.settle()

    def named(number: int) -> str:
        return "" if number == NOTHING else ids[number]

    def postings(lists: Any, bits: int = 0) -> dict[Any, list[Any]]:
        pairs = {
            key: sorted(
                (ids[one >> bits], one & ((1 << bits) - 1)) for one in listed if ids[one >> bits]
            )
            for key, listed in lists.items()
        }
        return {key: listed for key, listed in pairs.items() if listed}

    return {
        "documents": {
            document.entry_id: (
                document,
                shard.number(document.entry_id) == number,
                shard.version(document.entry_id),
                shard.alive[number],
                named(links.previous[number]),
                named(links.next[number]),
                words.lengths[number],
                words.questions[number],
                authors[shard.authors[number]],
                shard.standings[number],
                shard.codes[number],
                shard.uses.get(number),
                number in shard.aside,
                document.entry_id in shard.missing,
                vectors._numbers[number].tobytes(),
                vectors._scales[number],
                vectors._lengths[number],
                vectors.passages(number, np.ones(len(vectors._numbers[number]), np.float32)),
            )
            for number, document in enumerate(documents)
            if document is not None
        },
        "threads": {thread: named(last) for thread, last in links._last.items()},
        "ends": {named(last): thread for last, thread in links._threads.items()},
        "own": postings(words.own, COUNT_BITS),
        "aside": postings(words.aside),
        "places": postings(shard.places.lists),
        "months": postings({month: shard.at(("month", month)) for month in range(13)}),
        "named": {word: +count for word, count in shard.named.items() if +count},
        "expiries": sorted((at, ids[one]) for at, one in shard.expiries if ids[one]),
        "missing": {one: ids[number] for one, number in shard.missing.items()},
        "sums": (words.total, len(shard), shard.code_count(None)),
    }


async def _change_some(recall: RecallService, entries: list[Entry], chance: random.Random) -> None:
    """Changes some of these entries and deletes others."""
    for entry in chance.sample(entries, 6):
        owner = agent(entry.agent_id)
        entries.remove(entry)
        if chance.random() < 0.5:
            await recall.remove(owner, entry)
        else:
            entries.append(await recall.change(owner, entry, value={"text": "a kitten and a sofa"}))


async def test_both_ways_of_loading_give_the_same_shards(recall: RecallService) -> None:
    seed = secrets.randbits(32)
    print("seed", seed)
    chance = random.Random(seed)
    for step in range(extent(1, long=8)):
        entries = await fill(recall, seed + step, 90)
        for number in range(8):
            who, scope = AGENTS[number % 2], {"session_id": "chat"}
            text = f"kitten {number}?" * 3 ** (number % 5)
            value = {"text": text, "author": "Ada Lee", "date": "2025-03-04"}
            lifetime = {"ttl": f"duration:PT{step + 2}H"} if number % 3 else {}
            made = await recall.write(who, value, Tier.SESSION, scope=scope, **lifetime)
            entries.append(made)
        if step % 2 == 0:
            await recall.embed()
        recall.clock.advance(60)
        assert await _write_segments(recall)
        await _change_some(recall, entries, chance)
        loaded, plain = anew(recall, segments_too=True), anew(recall, segments_too=False)
        for _ in range(2):
            assert await replies(loaded) == await replies(plain)
            shards = loaded.index.tenant_index(DEFAULT_TENANT).shards
            others = plain.index.tenant_index(DEFAULT_TENANT).shards
            assert shards.keys() == others.keys()
            for owner in shards:
                assert described(shards[owner]) == described(others[owner])
            # The loaded shards follow changes of entries that came with segments.
            await _change_some(recall, entries, chance)
            await flush_uses(recall.services)
            recall.clock.advance(3_600)
        loaded.close()
        plain.close()


async def test_a_shard_is_loaded_from_segments(recall: RecallService) -> None:
    for number in range(13):
        await recall.write(A, f"kitten {number}")
    recall.clock.advance(60)
    assert await _write_segments(recall) == 2
    assert len(await recall.ids(A, "kitten", limit=50)) == 13
    shard = recall.index.tenant_index(DEFAULT_TENANT).shards[A.id]
    assert len(shard.documents._packs) == 2
    assert len(shard.documents) == 13


async def test_no_segment_contains_a_word_of_what_was_deleted_or_changed(
    recall: RecallService,
) -> None:
    entries = [
        await recall.write(A, text)
        for text in ("kitten", "a xylophone", "tree", "a zeppelin", "sofa", "budget")
    ]
    recall.clock.advance(60)
    assert await _write_segments(recall) == 1
    (content,) = await _contents(recall)
    assert b"xylophon" in content
    assert b"zeppelin" in content
    await recall.remove(A, entries[1])
    assert await _contents(recall) == []
    await recall.change(A, entries[3], value={"text": "a balloon"})
    await recall.write(A, "window")
    recall.clock.advance(60)
    assert await _write_segments(recall) == 1
    (content,) = await _contents(recall)
    assert b"balloon" in content
    assert b"xylophon" not in content
    assert b"zeppelin" not in content
    assert await recall.ids(A, "xylophone zeppelin", mode="lexical") == []


async def test_sealed_entries_are_in_no_segment(recall: RecallService) -> None:
    entries = [await recall.write(A, "kitten", sensitivity="restricted") for _ in range(7)]
    open_one = await recall.write(A, "a kitten")
    recall.clock.advance(60)
    assert await _write_segments(recall) == 1
    (content,) = await _contents(recall)
    assert len(content) == segments._CHECKSUM_BYTES
    assert await anew(recall, segments_too=True).ids(A, "kitten") == [open_one.id]
    await recall.change(A, entries[0], sensitivity="public")
    assert await _contents(recall) == []


async def test_an_interrupted_run_is_continued(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await recall.write(A, f"kitten {number}")
    recall.clock.advance(60)
    stored = 0

    def result(*arguments: Any) -> StepResult:
        # The transaction has stored the segment already.
        nonlocal stored
        stored += 1
        if stored > 1:
            raise ArithmeticError
        return StepResult(*arguments)

    with monkeypatch.context() as broken:
        broken.setattr(write_segments, "StepResult", result)
        with pytest.raises(ArithmeticError):
            await _write_segments(recall)
    assert len(await _contents(recall)) == 1
    assert await _write_segments(recall) == 2
    contents = await _contents(recall)
    assert len(contents) == 3
    assert await _write_segments(recall) == 0
    assert await _contents(recall) == contents


async def test_segments_of_another_form_are_replaced(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await recall.write(A, f"kitten {number}")
    recall.clock.advance(60)
    with monkeypatch.context() as older:
        older.setattr(segments, "_FORMAT", 0)
        assert await _write_segments(recall) == 1
    assert await _contents(recall) == []
    assert len(await anew(recall, segments_too=True).ids(A, "kitten")) == 6
    assert await _write_segments(recall) == 1
    assert len(await _contents(recall)) == 1
    assert segments.form_of(DEFAULT_FIELDS) != segments.form_of(AuthorDateFields(author="by"))


def test_another_analysis_has_another_form() -> None:
    values: list[dict[str, Any]] = [
        {"text": "Cats and kittens sat by 5kg of paintbrushes.", "author": "Ada Lee"},
        {"text": "Die Katzen sitzen auf den Fensterb\u00e4nken.", "language": "de"},
        {"text": "What did readFile say?", "role": "user", "date": "2025-03-04"},
        {"note": "\u732b\u306f\u5bdd\u3066\u3044\u308b", "valid_until": "2027-01-01"},
    ]
    entries = [
        make_entry(id=f"mem_{number}", key="a-key", tags=("one",), value=msgspec.json.encode(value))
        for number, value in enumerate(values)
    ]
    content = segments.build(entries, DEFAULT_FIELDS, Analyzer())
    form = segments.form_of(DEFAULT_FIELDS)
    segment = segments.load(StoredSegment(entries[0].id, entries[-1].id, form, content), 0)
    assert segment is not None
    documents = Documents(bytearray(b"\1" * len(entries)))
    documents.append_pack(segment.documents)
    # Without the compression of documents, which depends on the version of zlib.
    packed = msgspec.msgpack.encode(msgspec.structs.replace(segment, documents=list(documents)))
    digest = hashlib.sha256(packed).hexdigest()[:8]
    assert (segments._FORMAT, digest) == (9, "35a2e3f7"), "raise `_FORMAT`, note the digest"


def test_sentences_are_found_by_their_digests_in_segments_too() -> None:
    texts = ["Ana likes tea. Ben walks.", "Ben walks.\n\n- Ana likes tea", "", "Ben walks"]
    added, absorbed = SentenceDigests(), SentenceDigests()
    for number, text in enumerate(texts):
        added.add(number, text)
    for base in (0, len(texts)):
        absorbed.absorb(added.columns(), base)
        absorbed.merge()
    assert absorbed.lengths == added.lengths == {2, 3}
    for said, expected in (("ana likes tea", [0, 1]), ("ben walks", [0, 1, 3]), ("ana", [])):
        words = tuple(said.split())
        for length, digest in digests_at(words, 0, range(1, 9)):
            wanted = expected if length == len(words) else []
            assert sorted(added.at(digest)) == wanted
            assert absorbed.at(digest) == [*wanted, *(len(texts) + one for one in wanted)]


def test_other_content_is_no_segment() -> None:
    entry, other = make_entry(), make_entry(id="mem_other")
    whole = segments.build([entry], DEFAULT_FIELDS, Analyzer())

    def stored(content: bytes) -> StoredSegment:
        return StoredSegment(entry.id, entry.id, segments.form_of(DEFAULT_FIELDS), content)

    read = segments.load(stored(whole), 0)
    assert read is not None
    assert read.ids
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    for content in (
        b"",
        bytes(4),
        b"other",
        whole[:-1],
        bytes(damaged),
        segments.build([other], DEFAULT_FIELDS, Analyzer()),
    ):
        assert not segments.fits(stored(content))
        with pytest.raises(ValueError, match="segment"):
            segments.load(stored(content), 0)


DAMAGE: dict[str, Callable[[list[bytes]], bytes]] = {
    "flipped": lambda contents: contents[0][:20] + b"\0" + contents[0][21:],
    "cut": lambda contents: contents[0][:-3],
    "empty": lambda contents: b"",
    "zeros": lambda contents: bytes(4),
    "of another range": lambda contents: contents[1],
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_segment_is_reported_dropped_and_written_anew(
    recall: RecallService, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    for number in range(18):
        await recall.write(A, f"kitten {number}")
    recall.clock.advance(60)
    assert await _write_segments(recall) == 3
    expected = await anew(recall, segments_too=True).ids(A, "kitten", limit=50)
    assert len(expected) == 18
    assert not verified(tmp_path / DATABASE_NAME).problems
    content = DAMAGE[damage](await _contents(recall))
    first = "first = (SELECT min(first) FROM index_segments)"
    change(tmp_path, f"UPDATE index_segments SET content = ? WHERE {first}", content)
    (problem,) = verified(tmp_path / DATABASE_NAME).problems
    assert "the index segment" in problem
    assert await anew(recall, segments_too=True).ids(A, "kitten", limit=50) == expected
    assert "is damaged" in caplog.text
    assert len(await _contents(recall)) == 2
    assert not verified(tmp_path / DATABASE_NAME).problems
    assert await _write_segments(recall) == 1
    assert await anew(recall, segments_too=True).ids(A, "kitten", limit=50) == expected


@pytest.mark.parametrize(
    "vector", [b"", b"cut", b"\xff" * (WordEmbedder().dimensions + FACTOR_BYTES)]
)
async def test_an_entry_with_a_damaged_vector_is_found_by_its_words(
    recall: RecallService, tmp_path: Path, vector: bytes
) -> None:
    for number in range(6):
        await recall.write(A, f"kitten {number}")
    recall.clock.advance(60)
    await recall.embed()
    assert await _write_segments(recall) == 1
    first = "entry = (SELECT min(entry) FROM entry_vectors)"
    change(tmp_path, f"UPDATE entry_vectors SET vector = ? WHERE {first}", vector)
    for segments_too in (False, True):
        assert len(await anew(recall, segments_too=segments_too).ids(A, "kitten")) == 6


@pytest.mark.parametrize(
    ("settled", "is_cut", "chosen", "rest"),
    [
        ("", False, "", None),
        ("11111", False, "", None),
        ("11111", True, "01234", 4),
        ("111111", False, "012345", 5),
        ("1", True, "", None),
        ("0110", False, "12", 2),
        ("010110", False, "34", 4),
        ("011111", False, "", 0),
        ("000000", True, "", 5),
        ("100010", True, "", 5),
        ("110111", True, "01", 1),
    ],
)
def test_settled_entries_in_a_row_become_a_segment(
    settled: str, is_cut: bool, chosen: str, rest: int | None
) -> None:
    entries: list[Entry] = [make_entry() for _ in settled]
    flags = [one == "1" for one in settled]
    found, after = choose_run(entries, flags, is_cut=is_cut)
    assert list(found) == [entries[int(place)] for place in chosen]
    assert after == (None if rest is None else entries[rest].id)
