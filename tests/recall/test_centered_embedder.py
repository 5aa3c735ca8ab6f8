"""Models of other ranges of cosines follow the rules that were made for one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from memorywall.recall.embedders.centered import CenteredEmbedder
from memorywall.recall.weights import DEFAULT_WEIGHTS
from tests.support.embedder import WordEmbedder

NOTES = (
    "the budget for the train is monday", "the invoice of ada", "a black kitten on the sofa",
    "the volcano erupted in march", "grace moved the boxes", "a refund for the window",
    "the brown puppy under the tree", "cartons of the animal",
)  # fmt: skip


class NarrowEmbedder(WordEmbedder):
    """Its vectors share a direction, so that all cosines lie between .7 and 1."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of words beside a common part that is larger."""
        rows = super().embed(texts)
        known = rows.any(axis=1)
        rows[known, -1] += 2.0
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _cosines(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    between: npt.NDArray[np.float32] = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    return between


@pytest.mark.parametrize("plain", [WordEmbedder(), NarrowEmbedder()])
def test_strangers_are_no_copies_whatever_the_range_of_the_model(plain: WordEmbedder) -> None:
    centered = CenteredEmbedder(plain)
    assert abs(float(_cosines(centered.embed(NOTES)).mean())) < 0.2
    assert float(_cosines(centered.embed(NOTES)).max()) < DEFAULT_WEIGHTS.near_copy
    same = centered.embed(
        ["the budget for the train is monday", "the budget for the train is march"]
    )
    assert float(same[0] @ same[1]) > float(_cosines(centered.embed(NOTES)).max())


def test_the_narrow_model_would_take_strangers_for_copies() -> None:
    assert float(_cosines(NarrowEmbedder().embed(NOTES)).mean()) > 0.7
    assert float(_cosines(NarrowEmbedder().embed(NOTES)).max()) > DEFAULT_WEIGHTS.near_copy


def test_queries_and_documents_have_their_prefixes() -> None:
    plain = WordEmbedder()
    centered = CenteredEmbedder(plain, query_prefix="query: ", document_prefix="passage: ")
    centered.embed(["kitten", " "])
    assert plain.texts[:2] == ["passage: kitten", ""]
    centered.embed_queries(["kitten"])
    assert plain.texts[-1] == "query: kitten"


def test_the_model_id_names_what_the_vectors_of_documents_depend_on() -> None:
    plain = WordEmbedder()
    ids = {
        CenteredEmbedder(plain).model,
        CenteredEmbedder(plain, document_prefix="passage: ").model,
        plain.model,
    }
    assert len(ids) == 3
    with_query = CenteredEmbedder(plain, query_prefix="query: ").model
    assert with_query == CenteredEmbedder(plain).model


def test_an_empty_text_stays_without_a_vector() -> None:
    assert not CenteredEmbedder(WordEmbedder()).embed([""]).any()
