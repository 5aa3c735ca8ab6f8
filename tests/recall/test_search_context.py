"""A search with the text before the query, and the similarity of two texts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memorywall.recall.similarity import SimilarityMethod, similarity
from memorywall.records.errors import ValidationError
from memorywall.records.recall import LONGEST_QUERY, Mode, SearchPage
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN = agent("ann")
TREE, SOFA = "the kitten sits in the tree", "the puppy sits on the sofa"


@pytest.fixture(params=[True, False], ids=["embedder", "words"])
async def recall(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[RecallService]:
    embedder = WordEmbedder() if request.param else None
    async with open_recall(tmp_path, embedder) as opened:
        yield opened


async def _remember(recall: RecallService, *values: dict[str, Any] | str) -> None:
    for value in values:
        await recall.write(ANN, value, Tier.SEMANTIC)
    if recall.embedding is not None:
        await recall.embedding.embed_some()


def _texts(page: SearchPage) -> list[str]:
    return [json.loads(hit.entry.value)["text"] for hit in page.hits]


@pytest.mark.parametrize("mode", list(Mode))
async def test_context_decides_between_entries_that_fit_a_query_equally(
    recall: RecallService, mode: Mode
) -> None:
    if mode is Mode.DENSE and recall.embedder is None:
        return
    await _remember(recall, TREE, SOFA)
    for context, expected in (("a kitten", TREE), ("a puppy", SOFA)):
        page = await recall.search(ANN, "sits", context=context, mode=mode)
        assert _texts(page)[0] == expected


async def test_a_query_counts_more_than_its_context(recall: RecallService) -> None:
    await _remember(recall, TREE, SOFA)
    page = await recall.search(ANN, "puppy", context="kitten", explain=True)
    assert _texts(page) == [SOFA, TREE]
    assert [hit.signals.terms for hit in page.hits if hit.signals] == [("puppy",), ("kitten",)]


async def test_an_author_of_the_context_is_meant_by_a_query_without_one(
    recall: RecallService,
) -> None:
    said = [{"text": "parcels go to Porto", "author": one} for one in ("Ada", "Grace")]
    await _remember(recall, *said)
    for context in ("Do you know Ada?", "Do you know Grace?"):
        page = await recall.search(ANN, "parcels", context=context)
        author = json.loads(page.hits[0].entry.value)["author"]
        assert author in context
        page = await recall.search(ANN, "parcels of Grace", context=context)
        assert json.loads(page.hits[0].entry.value)["author"] == "Grace"


async def test_context_is_as_long_as_a_query_at_most(recall: RecallService) -> None:
    await recall.search(ANN, "tree", context="x" * LONGEST_QUERY)
    with pytest.raises(ValidationError, match="`context`"):
        await recall.search(ANN, "tree", context="x" * (LONGEST_QUERY + 1))


async def test_similarity_is_a_cosine_or_the_containment_of_words(recall: RecallService) -> None:
    method = SimilarityMethod.CONTAINMENT
    if recall.embedder is not None:
        method = SimilarityMethod.COSINE
    alike = await similarity(recall.index, "a brown kitten", "brown kittens")
    assert alike.method is method
    assert alike.value > 0
    same = await similarity(recall.index, "kitten tree", "tree kitten")
    assert same.value == pytest.approx(1)
    assert (await similarity(recall.index, "kitten", "invoice")).value == pytest.approx(0)
    assert (await similarity(recall.index, "", "invoice")).value == 0


async def test_similarity_uses_words_while_the_embedder_fails(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    embedder.failures = 1
    async with open_recall(tmp_path, embedder) as recall:
        found = await similarity(recall.index, "one kitten", "the kitten in a tree")
        assert found == (1.0, SimilarityMethod.CONTAINMENT)
