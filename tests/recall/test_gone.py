"""What is sealed is never found, and what is gone is gone from the next search on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorywall.jobs import write_segments
from memorywall.jobs.job_runner import run_in_tenant
from memorywall.jobs.write_segments import SEGMENTS_JOB
from memorywall.recall.stored_vectors import FACTOR_BYTES
from memorywall.records.entry import Entry
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from tests.http.checks import until_erased
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import DIMENSIONS, WordEmbedder
from tests.support.rounds import sweep
from tests.support.service import RunningService
from tests.support.stored import places_holding
from tests.work.crew import crew_of, ok

pytestmark = pytest.mark.anyio

A, B = agent("a"), agent("b")
SEALED = ["confidential", "restricted"]


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder(), episodic_capacity=5) as opened:
        yield opened


async def found(recall: RecallService, query: str) -> list[str]:
    """What words and meaning find, which must be the same; a process that has just begun finds it
    as well."""
    by_words = await recall.ids(A, query, mode=Mode.LEXICAL)
    fresh = recall.anew()
    assert await fresh.ids(A, query, mode=Mode.LEXICAL) == by_words
    await recall.embed()
    assert await recall.ids(A, query, mode=Mode.DENSE) == by_words
    assert await fresh.ids(A, query, mode=Mode.DENSE) == by_words
    fresh.close()
    return by_words


@pytest.mark.parametrize("sensitivity", SEALED)
@pytest.mark.parametrize("tier", [Tier.WORKING, Tier.EPISODIC, Tier.SEMANTIC])
async def test_sealed_entry_is_never_found(
    recall: RecallService, sensitivity: str, tier: Tier
) -> None:
    await recall.write(A, "kitten", tier, sensitivity=sensitivity, tags=["kitten"], key="kitten")
    assert await found(recall, "kitten") == []
    assert recall.index.measure()["entries"] == 0


@pytest.mark.parametrize("sensitivity", SEALED)
async def test_a_label_takes_an_entry_out_and_puts_it_back(
    recall: RecallService, sensitivity: str
) -> None:
    entry = await recall.write(A, "kitten")
    beside = await recall.write(A, "sofa")
    for _ in range(3):
        assert await found(recall, "kitten") == [entry.id, beside.id]
        entry = await recall.change(A, entry, sensitivity=sensitivity)
        assert await found(recall, "kitten") == []
        entry = await recall.change(A, entry, sensitivity="public")


async def test_deletion_removes_the_entry_and_reveals_nothing(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten")
    beside = await recall.write(A, "sofa")
    assert await found(recall, "kitten") == [entry.id, beside.id]
    await recall.remove(A, entry)
    assert await found(recall, "kitten") == []
    assert await found(recall, "sofa") == [beside.id]


@pytest.mark.parametrize("end", ["deleted", "sealed", "changed"])
async def test_no_byte_of_a_passage_outlives_its_text(
    recall: RecallService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Neither the vectors of the passages nor their words, in rows, files and replies."""
    monkeypatch.setattr(write_segments, "SEGMENT_SIZE", 2)
    filler = "The weather in the harbour was mild and the boats lay still. "
    text = f"{filler * 20}A xylophone fell from the window. {filler * 20}A zeppelin is black."
    long, beside = await recall.write(A, text), await recall.write(A, "a sofa in the harbour")
    await recall.embed()
    recall.clock.advance(3_600)
    job = await run_in_tenant(recall.services, A.tenant, SEGMENTS_JOB, early=True)
    assert job is not None
    assert job.done == 1
    assert "zeppelin" in (await _highlights(recall, "black zeppelin"))[0]
    vectors = await _vectors(recall, long)
    width = DIMENSIONS + FACTOR_BYTES
    rows = [vectors[start : start + width] for start in range(0, len(vectors), width)]
    marks = [*rows, b"xylophon", b"zeppelin"]
    assert len(rows) > 4
    assert all(places_holding(tmp_path, mark) for mark in marks)
    if end == "deleted":
        await recall.remove(A, long)
    elif end == "sealed":
        await recall.change(A, long, sensitivity="restricted")
    else:
        await recall.change(A, long, value={"text": "brown boxes"})
    assert not any("zeppelin" in shown for shown in await _highlights(recall, "black zeppelin"))
    fresh = recall.anew()
    assert not any("zeppelin" in shown for shown in await _highlights(fresh, "black zeppelin"))
    fresh.close()
    assert beside.id in await recall.ids(A, "sofa", mode=Mode.LEXICAL)
    await until_erased(RunningService(recall.services, recall.clock))
    # A sealed entry has its words in its ciphertext only.
    assert [mark for mark in marks if places_holding(tmp_path, mark)] == []


async def _highlights(recall: RecallService, query: str) -> list[str]:
    found = (await recall.search(A, query)).hits
    return [hit.highlight.text for hit in found if hit.highlight is not None]


async def _vectors(recall: RecallService, entry: Entry) -> bytes:
    assert recall.embedder is not None
    model = recall.embedder.model
    ids = [entry.id]
    kept = await recall.services.store.read(A.tenant, lambda to: to.recall.vectors(model, ids))
    return kept[entry.id]


async def test_expired_entry_is_invisible_before_and_after_the_sweep(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten", ttl="duration:PT10M")
    assert await found(recall, "kitten") == [entry.id]
    recall.clock.advance(599)
    assert await found(recall, "kitten") == [entry.id]
    # A new time to live begins anew.
    entry = await recall.change(A, entry, ttl="duration:PT10M")
    recall.clock.advance(599)
    assert await found(recall, "kitten") == [entry.id]
    recall.clock.advance(1)
    assert await found(recall, "kitten") == []
    await sweep(recall.services)
    assert await found(recall, "kitten") == []
    assert recall.index.measure()["entries"] == 0


async def test_evicted_entry_is_removed(recall: RecallService) -> None:
    first = await recall.write(A, "kitten 0")
    assert await found(recall, "kitten") == [first.id]
    for number in range(1, 6):
        recall.clock.advance(1)
        await recall.write(A, f"sofa {number}")
    assert not await recall.can_find(A, first, "kitten")
    assert recall.index.measure()["entries"] == 5


async def test_archived_entry_is_removed(service: RunningService) -> None:
    crew = await crew_of(service)
    recall = RecallService(service.services, service.clock)
    task = await crew.task(assigned_agent="a")
    scope = {"task_id": task["id"]}
    entry = await recall.write(A, "kitten", Tier.WORKING, scope=scope)
    assert await recall.ids(A, "kitten") == [entry.id]
    ok(await crew.try_change(crew.chief, task["id"], status="cancelled"))
    assert await recall.ids(A, "kitten") == []
    recall.close()


async def test_a_changed_text_is_found_by_its_new_words_only(recall: RecallService) -> None:
    entry = await recall.write(A, {"text": "kitten", "note": "old"}, tags=["black"], key="animal")
    assert await found(recall, "kitten") == [entry.id]
    entry = await recall.change(A, entry, value={"text": "puppy"})
    assert await found(recall, "kitten") == []
    assert await found(recall, "puppy") == [entry.id]
    assert await recall.ids(A, "black", mode=Mode.LEXICAL) == [entry.id]
    entry = await recall.change(A, entry, tags=["brown"])
    assert await recall.ids(A, "black", mode=Mode.LEXICAL) == []
    assert await recall.ids(A, "brown animal", mode=Mode.LEXICAL) == [entry.id]
    assert await found(recall, "puppy") == [entry.id]


async def test_what_moves_to_another_thread_helps_there_and_here_no_more(
    recall: RecallService,
) -> None:
    first = await recall.write(A, "kitten", Tier.SESSION, scope={"session_id": "x"})
    here = await recall.write(A, "sofa", Tier.SESSION, scope={"session_id": "x"})
    there = await recall.write(A, "tree", Tier.SESSION, scope={"session_id": "y"})
    assert set(await recall.ids(A, "kitten", mode=Mode.LEXICAL)) == {first.id, here.id}
    await recall.change(A, first, scope={"session_id": "y"})
    assert set(await recall.ids(A, "kitten", mode=Mode.LEXICAL)) == {first.id, there.id}
    fresh = recall.anew()
    assert await fresh.ids(A, "kitten", mode=Mode.LEXICAL) == await recall.ids(
        A, "kitten", mode=Mode.LEXICAL
    )
    fresh.close()
