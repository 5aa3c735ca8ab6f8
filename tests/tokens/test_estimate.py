"""The estimate of tokens on texts that its calibration has not seen, and exact counts."""

from __future__ import annotations

import random

import pytest

from benchmarks.tokens.corpus import load
from memorywall.tokens.estimate import COEFFICIENTS, estimate
from memorywall.tokens.exact import ExactCounter
from memorywall.tokens.models import PRESETS
from memorywall.tokens.pieces import FEATURES, split


@pytest.fixture(scope="module")
def exact() -> ExactCounter:
    counter = ExactCounter()
    counter.load()
    assert counter.is_exact
    return counter


def test_the_total_of_a_corpus_is_within_ten_percent(exact: ExactCounter) -> None:
    texts = [text for found in load(held_out=True).values() for text in found[:80]]
    assert abs(sum(map(estimate, texts)) / sum(map(exact, texts)) - 1) < 0.1


def test_a_text_is_hardly_ever_estimated_too_low(exact: ExactCounter) -> None:
    ratios = []
    for texts in load(held_out=True).values():
        for text in texts[:80]:
            if (tokens := exact(text)) >= 200:
                ratios.append(estimate(text) / tokens)
    # Four of 341 parts of source code, with tables of codes and formulas, are below 0.95.
    assert sum(ratio < 0.95 for ratio in ratios) / len(ratios) < 0.03
    assert min(ratios) > 0.85
    assert sum(ratio - 1 for ratio in ratios) / len(ratios) < 0.15


def test_pieces_together_are_the_text() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    source = random.Random(seed)
    letters = "aZé_ \n\t9.,{}/北か한ع\u0301😀ßЖ\r\0"
    for _ in range(300):
        text = "".join(source.choices(letters, k=source.randrange(200)))
        assert "".join(split(text)) == text
        assert estimate(text) >= 0


def test_longer_texts_have_no_fewer_tokens() -> None:
    assert estimate("") == 0
    assert estimate("word " * 100) > estimate("word " * 50)
    assert estimate("x" * 1_000_000) > 10_000


def test_a_counter_estimates_until_it_is_loaded(exact: ExactCounter) -> None:
    counter = ExactCounter("cl100k_base")
    assert not counter.is_exact
    assert counter("one two three") == estimate("one two three")
    assert exact("<|endoftext|>") > 1


def test_data_is_complete() -> None:
    assert set(COEFFICIENTS.tokens) == set(FEATURES)
    assert all(0 < one.reserve < one.window for one in PRESETS.models.values())


def test_the_tokens_of_words_add_up_to_those_of_the_text() -> None:
    source = random.Random(4)
    words = [
        "Add",
        "tokens",
        "1,000",
        "x+y",
        "I'm",
        "“so”",
        "a/b/",
        "42.",
        "日本語",
        "\n",
        "end.\nNew",
        "_",
    ]
    for _ in range(300):
        text = " ".join(source.choices(words, k=source.randrange(1, 9)))
        # With a double space the text is divided as a whole.
        assert abs(estimate(text) - (estimate(f"{text}  ") - estimate("  "))) <= 1, text
