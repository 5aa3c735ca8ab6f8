"""Embedding off the path of writes: it gets done, by one at a time, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorywall.jobs import embed as pipeline
from memorywall.jobs.embed import EmbeddingJob
from memorywall.recall import loading
from memorywall.records.entry import Entry
from memorywall.records.errors import UnavailableError
from memorywall.records.recall import Mode
from memorywall.storage.port import Transaction
from tests.recall.room import Room, agent, open_room
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

A, B = agent("a"), agent("b")
TURN_SECONDS = pipeline._TURN_MILLISECONDS / 1000 + 1
"""After which somebody else goes on."""


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, WordEmbedder()) as opened:
        yield opened


def the_embedder(room: Room) -> WordEmbedder:
    assert room.embedder is not None
    return room.embedder


async def kept(room: Room, model: str, entries: list[Entry], tenant: str = "default") -> set[str]:
    """Which entries have a vector of a model in the store."""

    async def script(transaction: Transaction) -> set[str]:
        ids = [entry.id for entry in entries]
        return set(await transaction.recall.vectors(model, ids))

    return await room.context.store.read(tenant, script)


async def behind(room: Room) -> int:
    """How much embedding has left to do, counted by a process that has just begun."""
    fresh = room.anew()
    try:
        backlog = await fresh.index.backlog()
        assert backlog.model == the_embedder(room).model
        return backlog.changes
    finally:
        fresh.close()


async def write_many(room: Room, count: int) -> list[Entry]:
    return [await room.write(A, f"kitten {number}") for number in range(count)]


async def test_the_backlog_falls_to_nothing_and_words_answer_meanwhile(room: Room) -> None:
    entries = await write_many(room, 150)
    assert await behind(room) == 150
    found = await room.search(A, "kitten", limit=100)
    assert (len(found.hits), found.pending) == (100, 150)
    assert found.model == the_embedder(room).model
    assert (await room.search(A, "kitten", mode=Mode.DENSE)).hits == []
    assert await room.embed() == 150
    assert await behind(room) == 0
    assert await kept(room, the_embedder(room).model, entries) == {one.id for one in entries}
    found = await room.search(A, "kitten", limit=100, mode=Mode.DENSE)
    assert (len(found.hits), found.pending) == (100, 0)
    assert await room.embed() == 0
    assert len(the_embedder(room).texts) == 150 + 3  # and the queries


async def test_half_of_it_embedded_is_used_at_once(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 10)
    await write_many(room, 30)
    embedder = the_embedder(room)
    embedder.held.clear()
    working = asyncio.ensure_future(room.embed())
    assert (await room.search(A, "kitten", mode=Mode.LEXICAL)).pending == 30
    embedder.held.set()
    assert await working == 30
    assert (await room.search(A, "kitten")).pending == 0


async def test_a_crash_costs_one_batch(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 10)
    entries = await write_many(room, 35)
    embedder = the_embedder(room)

    class Dies(WordEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            if self.calls == 2:
                raise SystemError("killed")
            return super().embed(texts)

    dying = Dies()
    first = EmbeddingJob(room.context, dying, room.index.fields)
    with pytest.raises(SystemError):
        await first.embed_some()
    first.close()
    assert len(await kept(room, embedder.model, entries)) == 20
    assert await behind(room) == 15
    # Nobody knows yet that the first is gone.
    assert await room.embed() == 0
    room.clock.advance(TURN_SECONDS)
    assert await room.embed() == 15
    assert len(embedder.texts) == 15
    assert await kept(room, embedder.model, entries) == {one.id for one in entries}


async def test_of_two_side_by_side_one_has_the_turn(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 5)
    entries = await write_many(room, 40)
    embedders = [WordEmbedder(), WordEmbedder()]
    both = [EmbeddingJob(room.context, one, room.index.fields) for one in embedders]
    done = await asyncio.gather(*(one.embed_some() for one in both))
    assert sorted(done) == [0, 40]
    assert sorted(len(one.texts) for one in embedders) == [0, 40]
    assert await kept(room, embedders[0].model, entries) == {one.id for one in entries}
    for one in both:
        one.close()


async def test_one_that_lost_its_turn_writes_nothing(room: Room) -> None:
    entries = await write_many(room, 3)
    slow = WordEmbedder()
    slow.held.clear()
    late = EmbeddingJob(room.context, slow, room.index.fields)
    working = asyncio.ensure_future(late.embed_some())
    async with asyncio.timeout(20):
        while await room.embed() == 0:
            room.clock.advance(TURN_SECONDS)
            await asyncio.sleep(0.01)
    await room.change(A, entries[0], value={"text": "puppy"})
    slow.held.set()
    await working
    late.close()
    # What it had made was of the text before.
    assert await kept(room, slow.model, entries) == {one.id for one in entries[1:]}
    room.clock.advance(TURN_SECONDS)
    await room.embed()
    assert await room.ids(A, "puppy", mode=Mode.DENSE, limit=1) == [entries[0].id]


async def test_new_model_embeds_everything_and_removes_old_vectors(
    tmp_path: Path,
) -> None:
    old, new = WordEmbedder("old"), WordEmbedder("other one")
    async with open_room(tmp_path, old) as room:
        entries = await write_many(room, 20)
        await room.embed()
        assert len(await kept(room, old.model, entries)) == 20
        changed = Room(room.context, room.clock, new)
        # None of the vectors of the old model is looked at under the new one.
        found = await changed.search(A, "kitten", mode=Mode.DENSE)
        assert (found.hits, found.pending, found.model) == ([], 20, new.model)
        assert len((await changed.search(A, "kitten", limit=100)).hits) == 20
        assert (await changed.index.backlog()).changes == 20
        assert await changed.embed() == 20
        assert await kept(room, old.model, entries) == set()
        assert await kept(room, new.model, entries) == {one.id for one in entries}
        assert len((await changed.search(A, "kitten", mode=Mode.DENSE, limit=100)).hits) == 20
        changed.close()


async def test_while_one_embeds_under_a_new_model_the_other_leaves_the_old_vectors(
    tmp_path: Path,
) -> None:
    """Two servers with the new model, of which one has the turn: until it is done, a server that
    still runs with the old model has something to search with."""
    old, new = WordEmbedder("old"), WordEmbedder("other one")
    async with open_room(tmp_path, old) as room:
        entries = await write_many(room, 5)
        await room.embed()
        new.held.clear()
        first = EmbeddingJob(room.context, new, room.index.fields)
        working = asyncio.ensure_future(first.embed_some())
        async with asyncio.timeout(20):
            while not await turn_is_taken(room, new.model):
                await asyncio.sleep(0.01)
        second = EmbeddingJob(room.context, WordEmbedder("other one"), room.index.fields)
        assert await second.embed_some() == 0
        assert len(await kept(room, old.model, entries)) == 5
        new.held.set()
        assert await working == 5
        assert await kept(room, old.model, entries) == set()
        first.close()
        second.close()


async def turn_is_taken(room: Room, model: str) -> bool:
    """Whether somebody embeds under a model."""

    async def script(transaction: Transaction) -> int | None:
        return await transaction.recall.take_turn(model, "nobody", "0", "0")

    return await room.context.store.write("default", script) is None


async def test_an_embedder_that_fails_stops_nothing_else(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await room.write(A, "kitten")
    embedder = the_embedder(room)
    embedder.failures = 1_000
    with pytest.raises(UnavailableError):
        await room.embed()
    assert await room.ids(A, "kitten") == [entry.id]
    assert (await room.search(A, "kitten")).pending == 1
    other = await room.write(A, "another kitten")
    await room.remove(A, entry)
    assert await room.ids(A, "kitten") == [other.id]
    embedder.failures = 0
    room.clock.advance(TURN_SECONDS)
    fresh = room.anew()
    assert await fresh.embed() == 1
    assert await room.ids(A, "kitten", mode=Mode.DENSE) == [other.id]
    fresh.close()


async def test_sealed_or_removed_entry_gets_no_vector(room: Room) -> None:
    sealed = await room.write(A, "kitten secret", sensitivity="restricted")
    gone = await room.write(A, "kitten gone")
    await room.remove(A, gone)
    label = await room.write(A, "kitten label")
    stays = await room.write(A, "kitten stays")
    assert await room.embed() == 2
    texts = the_embedder(room).texts
    assert texts == ["kitten label", "kitten stays"]
    everything = [sealed, gone, label, stays]
    model = the_embedder(room).model
    assert await kept(room, model, everything) == {label.id, stays.id}
    label = await room.change(A, label, sensitivity="confidential")
    await room.remove(A, stays)
    assert await kept(room, model, everything) == set()
    assert await room.embed() == 0
    await room.change(A, label, sensitivity="internal")
    assert await room.embed() == 1
    assert await kept(room, model, everything) == {label.id}


async def test_vector_remains_when_other_fields_change(room: Room) -> None:
    entry = await room.write(A, "kitten")
    await room.embed()
    entry = await room.change(A, entry, tags=["t"])
    assert await kept(room, the_embedder(room).model, [entry]) == {entry.id}
    assert (await room.search(A, "kitten", mode=Mode.DENSE)).pending == 0
    assert await room.embed() == 0


async def test_entry_changed_during_embedding_is_embedded_again(room: Room) -> None:
    entry = await room.write(A, "kitten")
    embedder = the_embedder(room)
    embedder.held.clear()
    working = asyncio.ensure_future(room.embed())
    async with asyncio.timeout(20):
        while not await turn_is_taken(room, embedder.model):
            await asyncio.sleep(0.01)
    await room.change(A, entry, value={"text": "puppy"})
    embedder.held.set()
    await working
    assert embedder.texts[-1] == "puppy"
    (hit,) = (await room.search(A, "puppy", mode=Mode.DENSE, explain=True)).hits
    assert hit.signals is not None
    assert hit.signals.dense > 0


async def test_every_tenant_gets_its_turn(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_CHANGES", 4)
    await room.tenant("other")
    ours = await write_many(room, 20)
    theirs = [await room.write(agent("a", "other"), "puppy") for _ in range(4)]
    assert await room.embed() == 24
    model = the_embedder(room).model
    assert await kept(room, model, theirs, "other") == {one.id for one in theirs}
    assert await kept(room, model, ours, "other") == set()
    assert "puppy" in the_embedder(room).texts[:12]


async def test_finished_job_releases_its_lease(room: Room) -> None:
    """A server that is started anew goes on at once."""
    await room.write(A, "kitten")
    assert await room.embed() == 1
    await room.write(A, "puppy")
    fresh = room.anew()
    assert await fresh.embed() == 1
    await room.write(A, "sofa")
    assert await room.embed() == 1
    fresh.close()


async def test_many_vectors_are_looked_for_by_one_search_after_another(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_PAGE", 2)
    monkeypatch.setattr(loading, "_MOST_LOOKED_FOR", 4)
    monkeypatch.setattr(loading, "_FEW", 0)
    await write_many(room, 10)
    assert (await room.search(A, "kitten")).pending == 10
    await room.embed()
    assert [(await room.search(A, "kitten")).pending for _ in range(3)] == [6, 2, 0]


async def test_while_much_is_written_embedding_rests(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(pipeline, "_BUSY", 0)
    monkeypatch.setattr(asyncio, "sleep", rest)
    await room.write(A, "kitten")
    assert await room.embed() == 1
    assert rests == [], "there was nothing to compare with yet"
    await room.write(A, "puppy")
    assert await room.embed() == 1
    (seconds,) = rests
    assert 0 < seconds <= pipeline._LONGEST_PAUSE
