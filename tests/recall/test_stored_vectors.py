"""The stored form of vectors, and what the index makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from memorywall.recall.links import Links
from memorywall.recall.stored_vectors import FACTOR_BYTES, decode, encode, quantize
from memorywall.recall.vectors import Vectors
from memorywall.recall.weights import DEFAULT_WEIGHTS

DIMENSIONS = 24


def _rows(count: int) -> np.ndarray:
    rows = np.random.default_rng(count).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_stored_form_is_that_of_the_index(count: int) -> None:
    rows = _rows(count)
    stored = encode(rows)
    assert [len(one) for one in stored] == [DIMENSIONS + FACTOR_BYTES] * count
    numbers, factors = decode(b"".join(stored), DIMENSIONS)
    expected, scales = quantize(rows.astype(np.float16).astype(np.float32))
    assert np.array_equal(numbers, expected)
    assert np.array_equal(factors, scales)
    assert numbers * factors[:, None] == pytest.approx(rows, abs=0.01)


def test_the_stored_form_does_not_depend_on_the_machine() -> None:
    (stored,) = encode(np.array([[1, -0.5, 0, 0.25]], np.float32))
    assert stored == bytes([127, 192, 0, 32]) + np.array(1 / 127, "<f4").tobytes()


def test_a_text_without_meaning_has_zeros() -> None:
    numbers, factors = decode(encode(np.zeros((1, 3), np.float32))[0], 3)
    assert not numbers.any()
    assert not factors.any()


def test_many_vectors_at_once_are_the_same_as_one_by_one() -> None:
    links = Links()
    for number in range(9):
        links.insert("thread", number - 1, -1)
    at_once, singly = (Vectors(links, DIMENSIONS, DEFAULT_WEIGHTS) for _ in range(2))
    rows = encode(_rows(20))
    # Two of the texts are long and have vectors of their passages.
    stored = {0: rows[0], 2: b"".join(rows[1:5]), 3: rows[5], 7: b"".join(rows[6:9]), 8: rows[9]}
    at_once.put_many(stored)
    for document, vector in stored.items():
        singly.put(document, vector)
    query = _rows(1)[0]
    for vectors in (at_once, singly):
        vectors.settle()
    assert np.array_equal(at_once.similarities(query, None), singly.similarities(query, None))
    for document in range(9):
        own, other = at_once.of(document), singly.of(document)
        assert (own is None) == (other is None) == (document not in stored)
        assert own is None or np.array_equal(own, other)
        assert at_once.passages(document, query) == singly.passages(document, query)
    assert len(at_once.passages(2, query)) == 3
