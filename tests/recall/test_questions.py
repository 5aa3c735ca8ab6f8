"""Several questions in one query: separate ones are searched for each, and their results merged."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.json import decode

from memorywall.recall.questions import Question, questions_of
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.recall import Hit, Mode
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN = agent("ann")
KITTEN, TRAIN = "Where does a grey kitten sleep?", "When is the early train to Lyon?"
SLEEPS, LEAVES = "grey kitten sleep sofa", "early train Lyon nine"


@pytest.fixture(params=[True, False], ids=["embedder", "words"])
async def recall(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RecallService]:
    embedder = WordEmbedder() if request.param else None
    async with open_recall(tmp_path, embedder) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"{KITTEN} {TRAIN}", [Question(KITTEN), Question(TRAIN)]),
        (f"{KITTEN}\n\n{TRAIN}\n", [Question(KITTEN, is_earlier=True), Question(TRAIN)]),
        ("貓睡在哪裡？火車幾點開？", [Question("貓睡在哪裡？"), Question("火車幾點開？")]),  # noqa: RUF001
        ("Really?! Where?", [Question("Really?!"), Question("Where?")]),
        (KITTEN, []),
        ("", []),
        (f"I looked everywhere. {KITTEN} {TRAIN}", []),
        (f"{KITTEN} {TRAIN} Thank you!", []),
        (f"{KITTEN} Hurry! {TRAIN}", []),
        (f"{KITTEN}\nIt was here\n{TRAIN}", []),
        ("a? b? c? d? e? f? g?", []),
        ("Is it at https://example.org/?a=1&b=2", []),
    ],
)
def test_the_questions_of_a_query_are_those_of_a_query_of_nothing_else(
    query: str, found: list[Question]
) -> None:
    assert questions_of(query) == found


async def _stored(recall: RecallService) -> None:
    """The answers, and notes that have as many words of both questions together."""
    mixed = [
        f"{words} {n}" for words in ("grey kitten early train", "sleep Lyon") for n in range(3)
    ]
    for text in (SLEEPS, LEAVES, *mixed):
        await recall.write(ANN, {"text": text}, Tier.SEMANTIC, "notes")
    await _embed(recall)


async def _embed(recall: RecallService) -> None:
    if recall.embedder is not None:
        await recall.embed()


async def _hits(recall: RecallService, query: str, mode: Mode = Mode.HYBRID) -> list[Hit]:
    """Asserts that the parts of each score add up to it."""
    hits = (await recall.search(ANN, query, mode=mode, explain=True)).hits
    for hit in hits:
        one = hit.signals
        assert one is not None
        parts = one.lexical + one.dense + one.thread + one.author + one.date
        factors = one.prior * one.superseded * one.earlier_question
        assert hit.score == pytest.approx(parts * factors, abs=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return hits


def _asked(hits: list[Hit]) -> dict[str, tuple[str | None, float] | None]:
    """The question that each text was found for, and its factor."""
    return {
        decode(hit.entry.value)["text"]: hit.signals
        and (hit.signals.question, hit.signals.earlier_question)
        for hit in hits
    }


def _places(found: dict[str, object]) -> int:
    """The sum of the places of the two answers."""
    texts = list(found)
    return texts.index(SLEEPS) + texts.index(LEAVES)


async def test_each_of_two_questions_finds_its_answer(recall: RecallService) -> None:
    await _stored(recall)
    modes = [Mode.HYBRID, Mode.LEXICAL] if recall.embedder is None else list(Mode)
    for mode in modes:
        found = _asked(await _hits(recall, f"{KITTEN} {TRAIN}", mode))
        assert (found[SLEEPS], found[LEAVES]) == ((KITTEN, 1.0), (TRAIN, 1.0)), mode
        together = _asked(await _hits(recall, f"Please tell me: {KITTEN} {TRAIN}", mode))
        assert _places(found) < _places(together), mode


async def test_a_question_on_an_earlier_line_counts_less(recall: RecallService) -> None:
    await _stored(recall)
    third = "Who wrote an invoice about volcano boxes?"
    await recall.write(ANN, {"text": "invoice about volcano boxes"}, Tier.SEMANTIC, "notes")
    await _embed(recall)
    one_line = _asked(await _hits(recall, f"{KITTEN} {TRAIN} {third}"))
    assert (one_line[SLEEPS], one_line[LEAVES]) == ((KITTEN, 1.0), (TRAIN, 1.0))
    lines = _asked(await _hits(recall, f"{KITTEN}\n{TRAIN}\n{third}"))
    earlier = DEFAULT_WEIGHTS.earlier_question
    assert lines[SLEEPS] == (KITTEN, earlier)
    assert next(iter(lines)) == "invoice about volcano boxes"


@pytest.mark.parametrize(
    "query",
    [
        "Where does a grey kitten sleep? Does the kitten sleep at night?",
        f"{KITTEN} Is it?",
        f"Tell me this. {KITTEN} {TRAIN}",
        KITTEN,
    ],
    ids=["one matter", "no words", "a statement", "one question"],
)
async def test_other_queries_are_searched_for_as_a_whole(recall: RecallService, query: str) -> None:
    await _stored(recall)
    assert set(_asked(await _hits(recall, query)).values()) == {(None, 1.0)}


async def test_successive_questions_about_one_matter_are_searched_for_together(
    recall: RecallService,
) -> None:
    await _stored(recall)
    asked = f"{KITTEN} Does a grey kitten sleep?"
    hits = _asked(await _hits(recall, f"{asked} {TRAIN}"))
    assert (hits[SLEEPS], hits[LEAVES]) == ((asked, 1.0), (TRAIN, 1.0))


async def test_each_question_has_the_author_that_it_names(recall: RecallService) -> None:
    for number, (author, text) in enumerate((("Ada", "the sofa"), ("Grace", "the volcano"))):
        await recall.write(ANN, {"text": text, "author": author, "order": number})
    hits = await _hits(recall, "Does Ada like a sofa? Is Grace near this volcano?")
    assert [hit.signals and hit.signals.author > 0 for hit in hits] == [True, True]


async def test_hidden_entries_change_no_score(recall: RecallService) -> None:
    await _stored(recall)
    before = [(hit.entry.id, hit.score) for hit in await _hits(recall, f"{KITTEN} {TRAIN}")]
    for text in ("kitten kitten sleep", "train to Lyon"):
        await recall.write(agent("bob"), {"text": text})
    assert [(hit.entry.id, hit.score) for hit in await _hits(recall, f"{KITTEN} {TRAIN}")] == before
