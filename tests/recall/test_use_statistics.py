"""What uses and searches leave for later: intervals of reuse, and a sample of query vectors."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from memorywall.jobs.expire_entries import sweep
from memorywall.jobs.flush import flush_queries, flush_uses
from memorywall.records.query_vector import QueryVector
from memorywall.records.recall import Mode
from memorywall.records.reuse import MOST_BUCKETS, add_interval, bucket_of
from memorywall.records.tier import Tier
from memorywall.service import query_notes, query_sample
from memorywall.service.erasure import forget
from memorywall.service.operation_context import OperationContext
from memorywall.service.query_notes import QueryNotes
from memorywall.service.record_writes import open_record
from memorywall.service.runner import run_read
from memorywall.service.subject_erasure import erase_subject
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import QUERY_VECTORS, REUSE_HISTOGRAMS
from tests.recall.room import Room, agent, open_room
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ADA, BOB = agent("ada"), agent("bob")
TENANT = ADA.tenant


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, WordEmbedder()) as opened:
        yield opened


async def _counts(room: Room) -> dict[str, dict[str, list[int]]]:
    found = await room.context.store.read(TENANT, lambda to: to.records(REUSE_HISTOGRAMS).page())
    return {one.namespace: one.counts for one in found}


async def _queries(room: Room) -> list[QueryVector]:
    async def script(context: OperationContext) -> list[QueryVector]:
        context.decide_by_row()
        rows = await context.transaction.records(QUERY_VECTORS).page()
        return [await open_record(context, one) for one in rows]

    return await run_read(room.context, ADA, script)


def test_buckets_double_from_a_minute_on() -> None:
    minutes = [-5, 0, 0.99, 1, 1.99, 2, 3.99, 4, 60, 60 * 24 * 30, 60 * 24 * 365 * 9]
    found = [bucket_of(round(one * 60_000)) for one in minutes]
    assert found == [0, 0, 0, 1, 1, 2, 2, 3, 6, 16, MOST_BUCKETS - 1]
    counts = {"a": [1]}
    add_interval(counts, "a", 2, 3)
    add_interval(counts, "b", 0)
    assert counts == {"a": [1, 0, 3], "b": [1]}


async def test_intervals_between_uses_are_counted_by_kind_and_namespace(room: Room) -> None:
    one = await room.write(ADA, "kitten", namespace="pets")
    two = await room.write(ADA, {"state": "active", "text": "x"}, namespace="work")
    unused = await room.write(ADA, "sofa", namespace="home")
    room.clock.advance(5 * 60)
    await room.get(ADA, one)
    await flush_uses(room.context)
    assert await _counts(room) == {"pets": {"": [0, 0, 0, 1]}}
    room.clock.advance(90)
    for _ in range(3):
        await room.get(ADA, one)
    await room.get(ADA, two)
    await flush_uses(room.context)
    # Three uses in one flush: one interval since the flush before, and two below a minute.
    assert await _counts(room) == {"pets": {"": [2, 1, 0, 1]}, "work": {"": [0, 0, 0, 1]}}
    await flush_uses(room.context)
    room.clock.advance(-600)
    await room.get(ADA, unused)
    await flush_uses(room.context)
    assert (await _counts(room))["home"] == {"": [1]}
    # What is erased leaves no counts.
    await forget(room.context, TENANT, "ada")
    assert await _counts(room) == {}


async def test_erasure_of_a_person_removes_the_counts_of_its_namespaces(room: Room) -> None:
    about = await room.write(ADA, "kitten", namespace="pets", subjects=["ann"])
    other = await room.write(ADA, "sofa", namespace="home")
    for one in (about, other):
        await room.get(ADA, one)
    await flush_uses(room.context)
    await erase_subject(room.context, TENANT, "ann")
    assert set(await _counts(room)) == {"home"}


async def test_vectors_of_searches_are_sampled_and_their_texts_are_not(room: Room) -> None:
    await room.write(ADA, "kitten by the window")
    await room.embed()
    await room.search(ADA, "secret kitten")
    await room.search(ADA, "by words alone", mode=Mode.LEXICAL)
    assert await _queries(room) == []
    await flush_queries(room.context)
    (found,) = await _queries(room)
    assert (found.agent_id, found.model, found.subjects) == ("ada", room.index.embedder.model, ())  # type: ignore[union-attr]
    vector = np.frombuffer(b64decode(found.vector), "<f2")
    expected = WordEmbedder().embed(["secret kitten"])[0]
    assert np.allclose(vector, expected, atol=1e-3)

    async def stored(to: Transaction) -> QueryVector:
        return (await to.records(QUERY_VECTORS).page())[0]

    row = await room.context.store.read(TENANT, stored)
    assert row.vector == ""
    assert row.sealed is not None
    assert found.vector.encode() not in row.sealed.content
    room.clock.advance(7 * 24 * 3_600 - 1)
    await sweep(room.context)
    assert await _queries(room) == [found]
    room.clock.advance(1)
    await sweep(room.context)
    assert await _queries(room) == []


async def test_the_sample_has_a_limit_and_does_not_depend_on_the_flushes(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (query_notes, query_sample):
        monkeypatch.setattr(module, "SAMPLE_SIZE", 8)
    ids = [room.context.ids.next("query") for _ in range(40)]
    for number, one in enumerate(ids, 1):
        room.context.query_notes.add(TENANT, one, "ada", room.context.now(), "m", (), b"v")
        if number % 15 == 0:
            await flush_queries(room.context)
    await flush_queries(room.context)
    expected = sorted(sorted(ids, key=query_notes.rank_of)[:8])
    assert [one.id for one in await _queries(room)] == expected
    notes = QueryNotes()
    for one in ids:
        notes.add(TENANT, one, "ada", "", "m", (), b"v")
    assert sorted(one.id for one in notes.drain()[TENANT]) == expected


async def test_erasure_removes_the_searches_of_an_agent_and_of_a_person(room: Room) -> None:
    await room.write(ADA, "kitten", subjects=["ann"])
    await room.write(BOB, "kitten", Tier.SESSION)

    def note(agent_id: str, *subjects: str) -> None:
        room.context.query_notes.add(
            TENANT, room.context.ids.next("query"), agent_id, room.context.now(), "m", subjects,
            agent_id.encode(),
        )  # fmt: skip

    note("ada", "ann")
    note("ada")
    note("bob", "ann")
    note("bob", "nobody-known")
    await flush_queries(room.context)
    found = await _queries(room)
    assert [(one.agent_id, len(one.subjects)) for one in found] == [
        ("ada", 1), ("ada", 0), ("bob", 1)
    ]  # fmt: skip
    assert "ann" not in str(found)
    note("bob", "ann")
    await erase_subject(room.context, TENANT, "ann")
    # The search was noted before the erasure and is stored after it.
    await flush_queries(room.context)
    note("bob")
    assert [(one.agent_id, one.subjects) for one in await _queries(room)] == [("ada", ())]
    note("ada")
    await forget(room.context, TENANT, "ada")
    await flush_queries(room.context)
    assert [(one.agent_id, one.subjects) for one in await _queries(room)] == [("bob", ())]
