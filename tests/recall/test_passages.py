"""Long texts: how they are cut, embedded and found, and the passage that a hit shows."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall.recall.passage_vectors import PassageVectors
from memorywall.recall.passages import LONGEST, MOST_PASSAGES, cut, texts_of
from memorywall.recall.stored_vectors import quantize
from memorywall.records.recall import Mode
from tests.http.checks import MEMORY
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

ADA = agent("ada")
FILLER = "The weather in the harbour was mild and the boats lay still. "
LONG = FILLER * 60
ANSWER = "A volcano moved the boxes of the train."
_TEXTS = st.text(
    st.sampled_from("abc déf。.!?\n  #é漢字😀\ud83d"),
    min_size=LONGEST - 5,
    max_size=3 * LONGEST,
)


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder()) as opened:
        yield opened


@given(_TEXTS)
def test_passages_cover_the_text_in_order_and_overlap(text: str) -> None:
    passages = cut(text)
    if len(text) <= LONGEST:
        assert passages == []
        return
    assert passages[0].start == 0
    assert passages[-1].end == len(text)
    for passage in passages:
        assert 0 < passage.end - passage.start <= LONGEST
    for one, other in pairwise(passages):
        assert one.start < other.start <= one.end < other.end


def test_a_passage_ends_with_a_sentence() -> None:
    passages = cut(LONG)
    for passage in passages:
        assert LONG[passage.start : passage.end].strip().startswith("The weather")
        assert LONG[passage.start : passage.end].strip().endswith("still.")


@pytest.mark.parametrize("sentence", [FILLER, "word " * 12, "漢字の文章です。" * 8, "x" * 60])
def test_five_thousand_characters_have_at_most_eight_vectors(sentence: str) -> None:
    text = (sentence * 100)[:5_000]
    assert 1 < len(texts_of(text)) <= 8
    assert len(cut(sentence * 20_000)) == MOST_PASSAGES


def test_titles_and_headings_travel_with_passages() -> None:
    text = f"# Start\n{LONG}\n## Harbours\n{LONG}"
    whole, first, *_, last = texts_of(text, "Report")
    assert whole == text
    assert first.startswith("Report\n# Start\n")
    assert last.startswith("Report\nHarbours\nThe weather")


def test_the_best_passage_of_each_document_counts() -> None:
    rng = np.random.default_rng(7)
    vectors = PassageVectors(16)
    kept: dict[int, np.ndarray] = {}
    for step in range(300):
        document = int(rng.integers(40))
        if rng.random() < 0.3:
            vectors.remove(document)
            kept.pop(document, None)
        else:
            rows = rng.normal(size=(int(rng.integers(1, 6)), 16)).astype(np.float32)
            vectors.put(document, *quantize(rows))
            kept[document] = rows
        assert len(vectors) == len(kept), step
    query = rng.normal(size=16).astype(np.float32)
    asked, (scale,) = quantize(query[None, :])
    best, documents = vectors.best(asked, scale)
    found = {int(one): float(near) for one, near in zip(documents, best, strict=True) if one >= 0}
    assert found.keys() == kept.keys()
    for document, rows in kept.items():
        assert found[document] == pytest.approx(float((rows @ query).max()), abs=0.3)
        assert vectors.of(document, query) == pytest.approx((rows @ query).tolist(), abs=0.3)


async def test_what_stands_at_the_end_of_a_long_text_is_found_by_its_meaning(
    recall: RecallService,
) -> None:
    long = await recall.write(ADA, LONG + ANSWER)
    others = [await recall.write(ADA, f"{FILLER} {number}", namespace="m") for number in range(9)]
    await recall.embed()
    hit, *rest = (await recall.search(ADA, "volcano boxes", mode=Mode.DENSE, explain=True)).hits
    assert hit.entry.id == long.id
    assert {one.entry.id for one in rest} <= {one.id for one in others}
    assert hit.signals is not None
    signals = hit.signals
    parts = signals.lexical + signals.dense + signals.thread + signals.author + signals.date
    assert hit.score == pytest.approx(parts * signals.prior * signals.superseded, abs=1e-6)
    assert hit.highlight is not None
    field, start, end, text = hit.highlight
    assert (field, (LONG + ANSWER)[start:end]) == ("text", text)
    assert text.endswith(ANSWER)


async def test_passages_go_with_their_entry(recall: RecallService) -> None:
    long = await recall.write(ADA, LONG + ANSWER)
    await recall.embed()
    assert await recall.ids(ADA, "volcano boxes", mode=Mode.DENSE) == [long.id]
    changed = await recall.change(ADA, long, value={"text": LONG})
    await recall.embed()
    (hit,) = (await recall.search(ADA, "volcano boxes weather", mode=Mode.DENSE)).hits
    assert hit.highlight is not None
    assert "volcano" not in hit.highlight.text
    await recall.remove(ADA, changed)
    assert await recall.ids(ADA, "weather", mode=Mode.DENSE) == []
    model = recall.embedder.model if recall.embedder else ""
    kept = await recall.services.store.read(
        ADA.tenant, lambda to: to.recall.vectors(model, [long.id])
    )
    assert kept == {}


async def test_without_an_embedder_the_words_choose_the_passage(
    service: RunningService,
) -> None:
    client: httpx.AsyncClient = await service.agent("ada")
    numbers = random.Random(3).sample(range(100), 3)
    text = "".join(f"{LONG[: 61 * 20]}Parcel{number} is at the office. " for number in numbers)
    for value in ({"text": text}, {"pages": [text[:900], text[900:]]}):
        draft = {"namespace": "n", "key": str(len(value)), "memory_type": "episodic"}
        made = await client.post(MEMORY, json={**draft, "key": next(iter(value)), "value": value})
        assert made.status_code == 201, made.text
    short = {"namespace": "n", "key": "short", "memory_type": "episodic"}
    await client.post(MEMORY, json={**short, "value": {"text": "An office."}})
    for number in numbers:
        body = {"query": f"where is parcel{number}"}
        found = (await client.post(f"{MEMORY}/search", json=body)).json()["results"]
        shown = {one["entry"]["key"]: one.get("highlight") for one in found}
        assert f"Parcel{number}" in shown["text"]["text"]
        highlight = shown["text"]
        assert text[highlight["start"] : highlight["end"]] == highlight["text"]
        assert f"Parcel{number}" in shown["pages"]["text"]
        assert shown.get("short") is None
