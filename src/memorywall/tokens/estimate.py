"""The estimated number of tokens of a text, without a tokenizer.

The estimate adds the calibrated numbers of tokens of the pieces of the text. `make bench-tokens`
calibrates `coefficients.json` with the vocabulary `o200k_base` and prints the errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib import resources

import msgspec

from memorywall.tokens.pieces import features_of, split

TokenCounter = Callable[[str], int]
"""The number of tokens of a text."""


class Coefficients(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a calibration.

    vocabulary: the vocabulary of the exact counts
    date: the day of the calibration
    margin: the factor of every estimate that keeps it from being too small
    tokens: the tokens of one occurrence of each feature
    """

    vocabulary: str
    date: str
    margin: float
    tokens: dict[str, float]


COEFFICIENTS = msgspec.json.decode(
    resources.files(__package__).joinpath("coefficients.json").read_bytes(), type=Coefficients
)
_TOKENS = {name: tokens * COEFFICIENTS.margin for name, tokens in COEFFICIENTS.tokens.items()}


_LONGEST_WORD = 32
"""The most characters of what is between two spaces and whose tokens are remembered."""


@lru_cache(maxsize=32_768)
def _tokens_of(piece: str) -> float:
    return sum(_TOKENS[name] * number for name, number in features_of(piece).items())


def _tokens_of_pieces(text: str) -> float:
    return sum(map(_tokens_of, split(text)))


@lru_cache(maxsize=32_768)
def _tokens_of_word(word: str) -> float:
    return _tokens_of_pieces(f" {word}")


def estimate(text: str) -> int:
    """Returns the estimated number of tokens of a text, 0 for an empty one.

    The estimate is rather too large than too small: docs/context.md has its errors.
    """
    first, *others = text.split(" ")
    if "  " in text or max(map(len, others), default=0) > _LONGEST_WORD:
        return math.ceil(_tokens_of_pieces(text))
    # A piece begins at every single space, so that the tokens of words add up, and most are known.
    return math.ceil(_tokens_of_pieces(first) + sum(map(_tokens_of_word, others)))
