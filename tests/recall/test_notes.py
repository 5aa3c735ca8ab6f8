"""Dated notes: newer versions stand before older ones, and the notes of one day belong together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.entry import Entry
from memorywall.records.recall import Hit, Mode
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN, BOB = agent("ann"), agent("bob")
QUERY = "budget for the train"
TEXT = "the budget for the train is monday"


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


async def _note(
    recall: RecallService,
    text: str,
    date: str | None = None,
    tier: Tier = Tier.SEMANTIC,
    namespace: str = "notes",
) -> Entry:
    value = {"text": text} if date is None else {"text": text, "date": date}
    return await recall.write(ANN, value, tier, namespace)


async def _hits(recall: RecallService, mode: Mode = Mode.HYBRID, **wanted: object) -> list[Hit]:
    return (await recall.search(ANN, QUERY, mode=mode, explain=True, **wanted)).hits


def _factors(hits: list[Hit]) -> dict[str, float]:
    """Asserts that the parts add up to the scores and that the scores descend."""
    found = {}
    for hit in hits:
        one = hit.signals
        assert one is not None
        parts = one.lexical + one.dense + one.thread + one.author + one.date
        assert hit.score == pytest.approx(parts * one.prior * one.superseded, abs=1e-6)
        found[hit.entry.id] = one.superseded
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return found


async def test_a_newer_note_stands_before_an_older_one_that_says_nearly_the_same(
    recall: RecallService,
) -> None:
    march = await _note(recall, f"{TEXT} march", "2026-03-01")
    may = await _note(recall, f"{TEXT} invoice", "2026-05-01", namespace="later")
    other = await _note(recall, "the train has boxes", "2026-06-01")
    await recall.embed()
    hits = await _hits(recall)
    assert _factors(hits) == {may.id: 1.0, march.id: DEFAULT_WEIGHTS.superseded, other.id: 1.0}
    assert hits[0].entry.id == may.id
    # Nothing is compared in a search by words.
    assert set(_factors(await _hits(recall, Mode.LEXICAL)).values()) == {1.0}
    # What the search does not want supersedes nothing.
    assert _factors(await _hits(recall, namespace="notes")) == {march.id: 1.0, other.id: 1.0}


async def test_an_older_note_with_more_of_the_words_keeps_its_place(recall: RecallService) -> None:
    exact = await _note(recall, QUERY, "2026-03-01")
    partial = await _note(recall, "budget for the", "2026-05-01")
    await recall.embed()
    hits = await _hits(recall)
    assert _factors(hits) == {exact.id: 1.0, partial.id: 1.0}
    assert hits[0].entry.id == exact.id


@pytest.mark.parametrize(
    ("date", "tier"),
    [(None, Tier.SEMANTIC), ("2026-03-01", Tier.EPISODIC), ("in spring", Tier.SEMANTIC)],
)
async def test_only_dated_entries_outside_of_threads_are_notes(
    recall: RecallService, date: str | None, tier: Tier
) -> None:
    await _note(recall, f"{TEXT} march", date, tier)
    recall.clock.advance(86_400)
    await _note(recall, f"{TEXT} invoice", date and date.replace("03", "05"), tier)
    await _note(recall, f"{TEXT} refund", "2026-06-01")
    await recall.embed()
    assert set(_factors(await _hits(recall)).values()) == {1.0}


async def test_a_hidden_note_supersedes_nothing(recall: RecallService) -> None:
    older = await _note(recall, f"{TEXT} march", "2026-03-01")
    await recall.open_namespace(BOB, "closed", "none")
    newer = {"text": f"{TEXT} invoice", "date": "2026-05-01"}
    await recall.embed()
    before = await _hits(recall)
    await recall.write(BOB, newer, Tier.SEMANTIC, "closed")
    await recall.embed()
    after = await _hits(recall)
    assert after == before
    assert _factors(after) == {older.id: 1.0}


async def test_notes_of_one_day_belong_together(recall: RecallService) -> None:
    first = await _note(recall, "budget for the train", "2026-03-01")
    same_day = await _note(recall, "budget of a kitten", "2026-03-01")
    other_day = await _note(recall, "budget of a puppy", "2026-03-02")
    undated = await _note(recall, "budget of a window")
    hits = {hit.entry.id: hit.signals for hit in await _hits(recall, Mode.LEXICAL)}
    threads = {one: signals.thread for one, signals in hits.items() if signals is not None}
    assert threads[first.id] == threads[same_day.id] > threads[other_day.id]
    assert threads[other_day.id] == pytest.approx(threads[undated.id], rel=0.1)
