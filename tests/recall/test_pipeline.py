"""Embedding off the path of writes: it gets done, by one at a time, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorywall.jobs import embed as pipeline
from memorywall.jobs.embed import EmbeddingJob
from memorywall.recall import loading
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from memorywall.server import scheduler
from memorywall.storage.port import Transaction
from tests.recall.recall_service import RecallService, agent, open_recall, told
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

A, B = agent("a"), agent("b")
LEASE_SECONDS = pipeline._LEASE_MILLISECONDS / 1000 + 1
"""After which somebody else goes on."""


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


def the_embedder(recall: RecallService) -> WordEmbedder:
    assert recall.embedder is not None
    return recall.embedder


async def kept(
    recall: RecallService, model: str, entries: list[Entry], tenant: str = "default"
) -> set[str]:
    """Which entries have a vector of a model in the store."""

    async def script(transaction: Transaction) -> set[str]:
        ids = [entry.id for entry in entries]
        return set(await transaction.recall.vectors(model, ids))

    return await recall.services.store.read(tenant, script)


async def behind(recall: RecallService) -> int:
    """How much embedding has left to do, counted by a process that has just begun."""
    fresh = recall.anew()
    try:
        backlog = await fresh.index.backlog()
        assert backlog.model == the_embedder(recall).model
        return backlog.changes
    finally:
        fresh.close()


async def write_many(recall: RecallService, count: int) -> list[Entry]:
    return [await recall.write(A, f"kitten {number}") for number in range(count)]


async def test_the_backlog_falls_to_nothing_and_words_answer_meanwhile(
    recall: RecallService,
) -> None:
    entries = await write_many(recall, 150)
    assert await behind(recall) == 150
    found = await recall.search(A, "kitten", limit=100)
    assert (len(found.hits), found.pending) == (100, 150)
    assert found.model == the_embedder(recall).model
    assert (await recall.search(A, "kitten", mode=Mode.DENSE)).hits == []
    assert await recall.embed() == 150
    assert await behind(recall) == 0
    assert await kept(recall, the_embedder(recall).model, entries) == {one.id for one in entries}
    found = await recall.search(A, "kitten", limit=100, mode=Mode.DENSE)
    assert (len(found.hits), found.pending) == (100, 0)
    assert await recall.embed() == 0
    assert len(the_embedder(recall).texts) == 150 + 3  # and the queries


async def test_a_search_embeds_the_newest_entries_with_a_local_model(
    recall: RecallService,
) -> None:
    embedder = the_embedder(recall)
    embedder.is_local = True
    await recall.write(A, "kitten")
    assert (await recall.search(A, "kitten", mode=Mode.LEXICAL)).pending == 1
    found = await recall.search(A, "kitten", mode=Mode.DENSE)
    assert ([hit.entry.key for hit in found.hits] != [], found.pending) == (True, 0)
    embedder.failures = 1
    await recall.write(A, "kitten again")
    found = await recall.search(A, "kitten")
    assert (len(found.hits), found.pending) == (2, 1)
    await recall.embed()
    await write_many(recall, 17)
    assert (await recall.search(A, "kitten")).pending == 17


async def test_half_of_it_embedded_is_used_at_once(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 10)
    await write_many(recall, 30)
    embedder = the_embedder(recall)
    embedder.held.clear()
    working = asyncio.ensure_future(recall.embed())
    assert (await recall.search(A, "kitten", mode=Mode.LEXICAL)).pending == 30
    embedder.held.set()
    assert await working == 30
    assert (await recall.search(A, "kitten")).pending == 0


async def test_a_crash_costs_one_batch(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 10)
    entries = await write_many(recall, 35)
    embedder = the_embedder(recall)

    class Dies(WordEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            if self.calls == 2:
                raise SystemError("killed")
            return super().embed(texts)

    dying = Dies()
    first = EmbeddingJob(recall.services, dying, recall.index.fields)
    with pytest.raises(SystemError):
        await first.embed_some()
    first.close()
    assert len(await kept(recall, embedder.model, entries)) == 20
    assert await behind(recall) == 15
    # Nobody knows yet that the first is gone.
    assert await recall.embed() == 0
    recall.clock.advance(LEASE_SECONDS)
    assert await recall.embed() == 15
    assert len(embedder.texts) == 15
    assert await kept(recall, embedder.model, entries) == {one.id for one in entries}


async def test_of_two_side_by_side_one_has_the_turn(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 5)
    entries = await write_many(recall, 40)
    embedders = [WordEmbedder(), WordEmbedder()]
    both = [EmbeddingJob(recall.services, one, recall.index.fields) for one in embedders]
    done = await asyncio.gather(*(one.embed_some() for one in both))
    assert sorted(done) == [0, 40]
    assert sorted(len(one.texts) for one in embedders) == [0, 40]
    assert await kept(recall, embedders[0].model, entries) == {one.id for one in entries}
    for one in both:
        one.close()


async def test_one_that_lost_its_turn_writes_nothing(recall: RecallService) -> None:
    entries = await write_many(recall, 3)
    slow = WordEmbedder()
    slow.held.clear()
    late = EmbeddingJob(recall.services, slow, recall.index.fields)
    working = asyncio.ensure_future(late.embed_some())
    async with asyncio.timeout(20):
        while await recall.embed() == 0:
            recall.clock.advance(LEASE_SECONDS)
            await asyncio.sleep(0.01)
    await recall.change(A, entries[0], value={"text": "puppy"})
    slow.held.set()
    await working
    late.close()
    # What it had made was of the text before.
    assert await kept(recall, slow.model, entries) == {one.id for one in entries[1:]}
    recall.clock.advance(LEASE_SECONDS)
    await recall.embed()
    assert await recall.ids(A, "puppy", mode=Mode.DENSE, limit=1) == [entries[0].id]


async def test_new_model_embeds_everything_and_removes_old_vectors(
    tmp_path: Path,
) -> None:
    old, new = WordEmbedder("old"), WordEmbedder("other one")
    async with open_recall(tmp_path, old) as recall:
        entries = await write_many(recall, 20)
        await recall.embed()
        assert len(await kept(recall, old.model, entries)) == 20
        changed = RecallService(recall.services, recall.clock, new)
        # None of the vectors of the old model is looked at under the new one.
        found = await changed.search(A, "kitten", mode=Mode.DENSE)
        assert (found.hits, found.pending, found.model) == ([], 20, new.model)
        assert len((await changed.search(A, "kitten", limit=100)).hits) == 20
        assert (await changed.index.backlog()).changes == 20
        assert await changed.embed() == 20
        assert await kept(recall, old.model, entries) == set()
        assert await kept(recall, new.model, entries) == {one.id for one in entries}
        assert len((await changed.search(A, "kitten", mode=Mode.DENSE, limit=100)).hits) == 20
        changed.close()


async def test_while_one_embeds_under_a_new_model_the_other_leaves_the_old_vectors(
    tmp_path: Path,
) -> None:
    """Two servers with the new model, of which one has the turn: until it is done, a server that
    still runs with the old model has something to search with."""
    old, new = WordEmbedder("old"), WordEmbedder("other one")
    async with open_recall(tmp_path, old) as recall:
        entries = await write_many(recall, 5)
        await recall.embed()
        new.held.clear()
        first = EmbeddingJob(recall.services, new, recall.index.fields)
        working = asyncio.ensure_future(first.embed_some())
        async with asyncio.timeout(20):
            while not await turn_is_taken(recall, new.model):
                await asyncio.sleep(0.01)
        second = EmbeddingJob(recall.services, WordEmbedder("other one"), recall.index.fields)
        assert await second.embed_some() == 0
        assert len(await kept(recall, old.model, entries)) == 5
        new.held.set()
        assert await working == 5
        assert await kept(recall, old.model, entries) == set()
        first.close()
        second.close()


async def turn_is_taken(recall: RecallService, model: str) -> bool:
    """Whether somebody embeds under a model."""

    async def script(transaction: Transaction) -> int | None:
        return await transaction.recall.acquire_lease(model, "nobody", "0", "0")

    return await recall.services.store.write("default", script) is None


async def test_an_embedder_that_fails_stops_nothing_else(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await recall.write(A, "kitten")
    embedder = the_embedder(recall)
    embedder.failures = 1_000
    with pytest.raises(UnavailableError):
        await recall.embed()
    assert await recall.ids(A, "kitten") == [entry.id]
    assert (await recall.search(A, "kitten")).pending == 1
    other = await recall.write(A, "another kitten")
    await recall.remove(A, entry)
    assert await recall.ids(A, "kitten") == [other.id]
    embedder.failures = 0
    recall.clock.advance(LEASE_SECONDS)
    fresh = recall.anew()
    assert await fresh.embed() == 1
    assert await recall.ids(A, "kitten", mode=Mode.DENSE) == [other.id]
    fresh.close()


async def test_sealed_or_removed_entry_gets_no_vector(recall: RecallService) -> None:
    sealed = await recall.write(A, "kitten secret", sensitivity="restricted")
    gone = await recall.write(A, "kitten gone")
    await recall.remove(A, gone)
    label = await recall.write(A, "kitten label")
    stays = await recall.write(A, "kitten stays")
    assert await recall.embed() == 2
    texts = the_embedder(recall).texts
    assert texts == ["kitten label", "kitten stays"]
    everything = [sealed, gone, label, stays]
    model = the_embedder(recall).model
    assert await kept(recall, model, everything) == {label.id, stays.id}
    label = await recall.change(A, label, sensitivity="confidential")
    await recall.remove(A, stays)
    assert await kept(recall, model, everything) == set()
    assert await recall.embed() == 0
    await recall.change(A, label, sensitivity="internal")
    assert await recall.embed() == 1
    assert await kept(recall, model, everything) == {label.id}


async def test_vector_remains_when_other_fields_change(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten")
    await recall.embed()
    entry = await recall.change(A, entry, tags=["t"])
    assert await kept(recall, the_embedder(recall).model, [entry]) == {entry.id}
    assert (await recall.search(A, "kitten", mode=Mode.DENSE)).pending == 0
    assert await recall.embed() == 0


async def test_entry_changed_during_embedding_is_embedded_again(recall: RecallService) -> None:
    entry = await recall.write(A, "kitten")
    embedder = the_embedder(recall)
    embedder.held.clear()
    working = asyncio.ensure_future(recall.embed())
    async with asyncio.timeout(20):
        while not await turn_is_taken(recall, embedder.model):
            await asyncio.sleep(0.01)
    await recall.change(A, entry, value={"text": "puppy"})
    embedder.held.set()
    await working
    assert embedder.texts[-1] == "puppy"
    (hit,) = (await recall.search(A, "puppy", mode=Mode.DENSE, explain=True)).hits
    assert hit.signals is not None
    assert hit.signals.dense > 0


async def test_every_tenant_gets_its_turn(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 4)
    await recall.tenant("other")
    ours = await write_many(recall, 20)
    theirs = [await recall.write(agent("a", "other"), "puppy") for _ in range(4)]
    assert await recall.embed() == 24
    model = the_embedder(recall).model
    assert await kept(recall, model, theirs, "other") == {one.id for one in theirs}
    assert await kept(recall, model, ours, "other") == set()
    assert "puppy" in the_embedder(recall).texts[:12]


class _Interrupted(WordEmbedder):
    """Stops while the first batch is embedded."""

    def embed(self, texts):  # type: ignore[no-untyped-def]
        raise SystemError("stopped")


class _Held(WordEmbedder):
    """Waits in the first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.held.clear()

    def embed(self, texts):  # type: ignore[no-untyped-def]
        self.has_begun.set()
        return super().embed(texts)


async def _hold_lease(recall: RecallService) -> EmbeddingJob:
    """A job that ended with work left, whose process holds the lease."""
    ended = EmbeddingJob(recall.services, _Interrupted(), recall.index.fields)
    with pytest.raises(SystemError):
        await ended.embed_some()
    ended.close()
    assert await recall.embed() == 0
    return ended


async def test_a_process_that_stops_releases_its_lease(recall: RecallService) -> None:
    await write_many(recall, 3)
    ended = await _hold_lease(recall)
    await ended.release()
    assert await recall.embed() == 3


async def test_the_only_process_of_a_store_takes_the_lease_of_an_ended_one(
    recall: RecallService,
) -> None:
    await write_many(recall, 3)
    await _hold_lease(recall)
    embedder = the_embedder(recall)
    job = EmbeddingJob(recall.services, embedder, recall.index.fields, is_alone=True)
    assert await job.embed_some() == 3
    job.close()


async def test_jobs_release_the_lease_when_they_stop(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_EMBED_INTERVAL", 0)
    await write_many(recall, 3)
    held = _Held()
    monkeypatch.setattr(recall.index, "embedder", held)
    try:
        async with asyncio.timeout(20), scheduler.run_jobs(recall.services, recall.index):
            while not held.has_begun.is_set():
                await asyncio.sleep(0.01)
    finally:
        held.held.set()
    assert await recall.embed() == 3


async def test_finished_job_releases_its_lease(recall: RecallService) -> None:
    """A server that is started anew goes on at once."""
    await recall.write(A, "kitten")
    assert await recall.embed() == 1
    await recall.write(A, "puppy")
    fresh = recall.anew()
    assert await fresh.embed() == 1
    await recall.write(A, "sofa")
    assert await recall.embed() == 1
    fresh.close()


async def test_many_vectors_are_looked_for_by_one_search_after_another(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_PAGE", 2)
    monkeypatch.setattr(loading, "_MOST_LOOKED_FOR", 4)
    monkeypatch.setattr(loading, "_FEW", 0)
    await write_many(recall, 10)
    assert (await recall.search(A, "kitten")).pending == 10
    await recall.embed()
    assert [(await recall.search(A, "kitten")).pending for _ in range(3)] == [6, 2, 0]


async def test_while_much_is_written_embedding_rests(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        # A sleep of 0 is no rest: it lets other functions run.
        if seconds:
            rests.append(seconds)

    monkeypatch.setattr(pipeline, "_BUSY", 0)
    monkeypatch.setattr(asyncio, "sleep", rest)
    await recall.write(A, "kitten")
    assert await recall.embed() == 1
    assert rests == [], "there was nothing to compare with yet"
    await recall.write(A, "puppy")
    assert await recall.embed() == 1
    (seconds,) = rests
    assert 0 < seconds <= pipeline._LONGEST_PAUSE


@pytest.mark.parametrize(
    ("mode", "weight", "expected"),
    [
        (Mode.HYBRID, None, DEFAULT_WEIGHTS.dense / (1 + DEFAULT_WEIGHTS.dense)),
        (Mode.HYBRID, 3.0, 0.75),
        (Mode.HYBRID, 0.0, 0.0),
        (Mode.DENSE, 0.0, 1.0),
        (Mode.LEXICAL, 3.0, 0.0),
    ],
)
async def test_a_search_chooses_the_weight_of_meaning(
    recall: RecallService, mode: Mode, weight: float | None, expected: float
) -> None:
    await write_many(recall, 3)
    await recall.embed()
    page = await recall.search(A, "kitten", mode=mode, dense_weight=weight, explain=True)
    shares = [hit.signals.dense for hit in page.hits if hit.signals is not None]
    assert max(shares) == pytest.approx(expected)


async def test_words_alone_score_an_entry_whose_vector_is_still_to_be_computed(
    recall: RecallService,
) -> None:
    for text in ("the kitten sleeps by the window", "a kitten and a sofa", "window seats"):
        await recall.write(A, text, Tier.SEMANTIC)
    await recall.embed()
    new = await recall.write(A, "the kitten by the window of Oslo", Tier.SEMANTIC)
    page = await recall.search(A, "kitten window Oslo", explain=True)
    best = page.hits[0]
    assert (best.entry.id, page.pending) == (new.id, 1)
    assert best.signals is not None
    assert best.signals.dense == 0
    assert best.signals.lexical == pytest.approx(1.0)
    assert await recall.embed() == 1
    again = await recall.search(A, "kitten window Oslo", explain=True)
    assert again.hits[0].entry.id == new.id
    assert again.hits[0].signals is not None
    assert again.hits[0].signals.dense > 0
    assert (await recall.search(A, "Oslo", mode=Mode.DENSE)).pending == 0


async def test_a_hidden_entry_without_a_vector_changes_no_score(recall: RecallService) -> None:
    await recall.open_namespace(B, "closed", "none", b="admin")
    await recall.open_namespace(A, "open", "write")
    # The embedder knows no word of the first text, so its vector is zero.
    for text in ("!!!", "a sofa"):
        await recall.write(A, text, Tier.SEMANTIC, "open", tags=["kitten"])
    await recall.embed()
    before = told(await recall.search(A, "kitten on a sofa", explain=True))
    await recall.write(B, "a kitten of others", Tier.SEMANTIC, "closed")
    assert told(await recall.search(A, "kitten on a sofa", explain=True)) == before
