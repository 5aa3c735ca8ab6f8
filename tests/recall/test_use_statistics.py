"""What uses and searches leave for later: intervals of reuse, and a sample of query vectors."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from memorywall.jobs.flush import flush_queries, flush_uses
from memorywall.records.query_vector import QueryVector
from memorywall.records.recall import Mode
from memorywall.records.reuse import MOST_BUCKETS, add_interval, bucket_of
from memorywall.records.tier import Tier
from memorywall.service.entries.record_writes import open_record
from memorywall.service.erasure import query_sample
from memorywall.service.erasure.entry_erasure import forget
from memorywall.service.erasure.subject_erasure import erase_subject
from memorywall.service.requests import query_notes
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.query_notes import QueryNotes
from memorywall.service.runner.operation_runner import run_read
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import QUERY_VECTORS, REUSE_HISTOGRAMS
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder
from tests.support.rounds import sweep

pytestmark = pytest.mark.anyio

ADA, BOB = agent("ada"), agent("bob")
TENANT = ADA.tenant


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


async def _counts(recall: RecallService) -> dict[str, dict[str, list[int]]]:
    found = await recall.services.store.read(TENANT, lambda to: to.records(REUSE_HISTOGRAMS).page())
    return {one.namespace: one.counts for one in found}


async def _queries(recall: RecallService) -> list[QueryVector]:
    async def script(context: OperationContext) -> list[QueryVector]:
        context.decide_by_row()
        rows = await context.transaction.records(QUERY_VECTORS).page()
        return [await open_record(context, one) for one in rows]

    return await run_read(recall.services, ADA, script)


def test_buckets_double_from_a_minute_on() -> None:
    minutes = [-5, 0, 0.99, 1, 1.99, 2, 3.99, 4, 60, 60 * 24 * 30, 60 * 24 * 365 * 9]
    found = [bucket_of(round(one * 60_000)) for one in minutes]
    assert found == [0, 0, 0, 1, 1, 2, 2, 3, 6, 16, MOST_BUCKETS - 1]
    counts = {"a": [1]}
    add_interval(counts, "a", 2, 3)
    add_interval(counts, "b", 0)
    assert counts == {"a": [1, 0, 3], "b": [1]}


async def test_intervals_between_uses_are_counted_by_kind_and_namespace(
    recall: RecallService,
) -> None:
    one = await recall.write(ADA, "kitten", namespace="pets")
    two = await recall.write(ADA, {"state": "active", "text": "x"}, namespace="work")
    unused = await recall.write(ADA, "sofa", namespace="home")
    recall.clock.advance(5 * 60)
    await recall.get(ADA, one)
    await flush_uses(recall.services)
    assert await _counts(recall) == {"pets": {"": [0, 0, 0, 1]}}
    recall.clock.advance(90)
    for _ in range(3):
        await recall.get(ADA, one)
    await recall.get(ADA, two)
    await flush_uses(recall.services)
    # Three uses in one flush: one interval since the flush before, and two below a minute.
    assert await _counts(recall) == {"pets": {"": [2, 1, 0, 1]}, "work": {"": [0, 0, 0, 1]}}
    await flush_uses(recall.services)
    recall.clock.advance(-600)
    await recall.get(ADA, unused)
    await flush_uses(recall.services)
    assert (await _counts(recall))["home"] == {"": [1]}
    # What is erased leaves no counts.
    await forget(recall.services, TENANT, "ada")
    assert await _counts(recall) == {}


async def test_erasure_of_a_person_removes_the_counts_of_its_namespaces(
    recall: RecallService,
) -> None:
    about = await recall.write(ADA, "kitten", namespace="pets", subjects=["ann"])
    other = await recall.write(ADA, "sofa", namespace="home")
    for one in (about, other):
        await recall.get(ADA, one)
    await flush_uses(recall.services)
    await erase_subject(recall.services, TENANT, "ann")
    assert set(await _counts(recall)) == {"home"}


async def test_vectors_of_searches_are_sampled_and_their_texts_are_not(
    recall: RecallService,
) -> None:
    await recall.write(ADA, "kitten by the window")
    await recall.embed()
    await recall.search(ADA, "secret kitten")
    await recall.search(ADA, "by words alone", mode=Mode.LEXICAL)
    assert await _queries(recall) == []
    await flush_queries(recall.services)
    (found,) = await _queries(recall)
    assert (found.agent_id, found.model, found.subjects) == ("ada", recall.index.embedder.model, ())  # type: ignore[union-attr]
    vector = np.frombuffer(b64decode(found.vector), "<f2")
    expected = WordEmbedder().embed(["secret kitten"])[0]
    assert np.allclose(vector, expected, atol=1e-3)

    async def stored(to: Transaction) -> QueryVector:
        return (await to.records(QUERY_VECTORS).page())[0]

    row = await recall.services.store.read(TENANT, stored)
    assert row.vector == ""
    assert row.sealed is not None
    assert found.vector.encode() not in row.sealed.content
    recall.clock.advance(7 * 24 * 3_600 - 1)
    await sweep(recall.services)
    assert await _queries(recall) == [found]
    recall.clock.advance(1)
    await sweep(recall.services)
    assert await _queries(recall) == []


async def test_the_sample_has_a_limit_and_does_not_depend_on_the_flushes(
    recall: RecallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (query_notes, query_sample):
        monkeypatch.setattr(module, "SAMPLE_SIZE", 8)
    ids = [recall.services.ids.next("query") for _ in range(40)]
    for number, one in enumerate(ids, 1):
        recall.services.query_notes.add(TENANT, one, "ada", recall.services.now(), "m", (), b"v")
        if number % 15 == 0:
            await flush_queries(recall.services)
    await flush_queries(recall.services)
    expected = sorted(sorted(ids, key=query_notes.rank_of)[:8])
    assert [one.id for one in await _queries(recall)] == expected
    notes = QueryNotes()
    for one in ids:
        notes.add(TENANT, one, "ada", "", "m", (), b"v")
    assert sorted(one.id for one in notes.drain()[TENANT]) == expected


async def test_erasure_removes_the_searches_of_an_agent_and_of_a_person(
    recall: RecallService,
) -> None:
    await recall.write(ADA, "kitten", subjects=["ann"])
    await recall.write(BOB, "kitten", Tier.SESSION)

    def note(agent_id: str, *subjects: str) -> None:
        recall.services.query_notes.add(
            TENANT,
            recall.services.ids.next("query"),
            agent_id,
            recall.services.now(),
            "m",
            subjects,
            agent_id.encode(),
        )

    note("ada", "ann")
    note("ada")
    note("bob", "ann")
    note("bob", "nobody-known")
    await flush_queries(recall.services)
    found = await _queries(recall)
    assert [(one.agent_id, len(one.subjects)) for one in found] == [
        ("ada", 1), ("ada", 0), ("bob", 1)
    ]  # fmt: skip
    assert "ann" not in str(found)
    note("bob", "ann")
    await erase_subject(recall.services, TENANT, "ann")
    # The search was noted before the erasure and is stored after it.
    await flush_queries(recall.services)
    note("bob")
    assert [(one.agent_id, one.subjects) for one in await _queries(recall)] == [("ada", ())]
    note("ada")
    await forget(recall.services, TENANT, "ada")
    await flush_queries(recall.services)
    assert [(one.agent_id, one.subjects) for one in await _queries(recall)] == [("bob", ())]
