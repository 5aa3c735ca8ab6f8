"""The relevance of results and replies, and the searches that say nothing rather than noise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memorywall.recall.relevance import ANSWERED
from memorywall.records.recall import Mode, SearchPage
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN, BOB = agent("ann"), agent("bob")
TEXTS = (
    "The kitten sleeps on the sofa by the window.",
    "Grace pays the invoice on monday.",
    "The volcano erupted in march.",
    "The train to Graz leaves at noon.",
)


@pytest.fixture(params=[True, False], ids=["with a model", "by words"])
async def recall(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder() if request.param else None) as opened:
        for text in TEXTS:
            await opened.write(ANN, text)
        if opened.embedder is not None:
            await opened.embed()
        yield opened


async def _search(recall: RecallService, query: str, **asked: Any) -> SearchPage:
    return await recall.search(ANN, query, explain=True, **asked)


async def test_relevance_tells_an_answer_from_what_is_merely_best(recall: RecallService) -> None:
    good = await _search(recall, "where does the kitten sleep?")
    assert good.answered
    assert good.relevance >= ANSWERED[recall.embedder is not None]
    assert good.hits[0].relevance > 0.3
    poor = await _search(recall, "which animal bit the cartons of the refund clerk near a window?")
    assert poor.relevance < good.relevance
    assert all(hit.relevance < good.hits[0].relevance for hit in poor.hits)


async def test_relevance_does_not_depend_on_the_other_results(recall: RecallService) -> None:
    query = "where does the kitten sleep?"
    whole = await _search(recall, query)
    few = await _search(recall, query, limit=1)
    assert few.hits[0].relevance == whole.hits[0].relevance
    evidence = whole.hits[0].evidence
    assert evidence is not None
    assert evidence.words == pytest.approx(1.0)
    assert (evidence.meaning is None) is (recall.embedder is None)


async def test_hits_below_the_least_relevance_are_left_out_and_counted(
    recall: RecallService,
) -> None:
    query = "the kitten by the window, and the train"
    whole = await _search(recall, query)
    least = sorted(hit.relevance for hit in whole.hits)[-1]
    cut = await _search(recall, query, min_relevance=least)
    assert [hit.entry.id for hit in cut.hits] == [
        hit.entry.id for hit in whole.hits if hit.relevance >= least
    ]
    assert cut.left_out == len(whole.hits) - len(cut.hits)
    assert whole.left_out == 0


async def test_nothing_is_said_when_nothing_answers(recall: RecallService) -> None:
    query = "puppy, refund, cartons, boxes, tree, brown, black, animal and train?"
    plain = await _search(recall, query)
    assert plain.hits
    assert not plain.answered
    for asked in ({"only_answers": True}, {"strict": True}):
        silent = await _search(recall, query, **asked)
        assert silent.hits == []
        assert silent.left_out == len(plain.hits)
        assert silent.relevance == plain.relevance


async def test_no_results_have_no_relevance(recall: RecallService) -> None:
    nothing = await recall.search(BOB, "kitten")
    assert (nothing.relevance, nothing.answered, nothing.left_out) == (0.0, False, 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("k8s", {"cluster"}),
        ("the kubernetes", {"cluster"}),
        ("what about kubernets?", {"cluster"}),
        ("KUBE news", {"cluster"}),
        ("What does Kubernetes cost a month?", {"cluster", "costs"}),
        ("redis cache", {"cache", "owner"}),
        ("how are the swarms doing?", {"swarm"}),
    ],
)
async def test_a_strict_search_returns_what_is_about_the_named_thing(
    recall: RecallService, query: str, found: set[str]
) -> None:
    things: dict[str, dict[str, Any]] = {
        "cluster": {
            "text": "Runs on three nodes.",
            "name": "kubernetes",
            "aliases": ["k8s", "kube"],
        },
        "costs": {"text": "Kubernetes costs 400 a month."},
        "swarm": {"text": "The old cluster ran on three nodes of swarm.", "name": "swarm"},
        "cache": {"text": "Evicts the least used key.", "name": "redis"},
        "owner": {"text": "Ada maintains it.", "subject": "redis", "object": "Ada"},
    }
    for key, value in things.items():
        await recall.write(ANN, value, Tier.SEMANTIC, "things", key=key)
    if recall.embedder is not None:
        await recall.embed()
    strict = await _search(recall, query, strict=True)
    assert {hit.entry.key for hit in strict.hits} == found
    assert strict.answered


async def test_a_name_that_the_caller_may_not_read_is_none(recall: RecallService) -> None:
    secret = {"text": "Runs on three nodes.", "name": "window", "aliases": ["sofa"]}
    await recall.write(BOB, secret)
    strict = await _search(recall, "the kitten on the sofa by the window", strict=True)
    assert [hit.entry.value for hit in strict.hits][:1] == [b'{"text":"%s"}' % TEXTS[0].encode()]


@pytest.mark.parametrize("embedder", [None, WordEmbedder()], ids=["none", "lexical"])
async def test_a_question_of_which_only_the_author_is_known_finds_what_the_author_said(
    tmp_path: Path, embedder: WordEmbedder | None
) -> None:
    async with open_recall(tmp_path, embedder) as recall:
        said = {"text": "I got a Fiat.", "author": "Amara"}
        facts = Tier.SEMANTIC, "facts"
        await recall.write(ANN, said, *facts, key="own")
        await recall.write(ANN, {"text": "Amara came by.", "author": "Bea"}, *facts, key="other")
        await recall.write(ANN, {"text": "It rains.", "author": "Bea"}, *facts, key="none")
        mode = Mode.HYBRID if embedder is None else Mode.LEXICAL
        found = await recall.search(ANN, "What did Amara buy?", mode=mode, explain=True)
        assert {hit.entry.key for hit in found.hits} == {"own", "other"}
        signals = {hit.entry.key: hit.signals for hit in found.hits}
        assert signals["own"] is not None
        assert signals["own"].author > 0
        assert signals["own"].date == 0
