"""The estimated number of tokens of a text, without a tokenizer.

The estimate adds the calibrated numbers of tokens of the pieces of the text. `make bench-tokens`
calibrates `coefficients.json` with the vocabulary `o200k_base` and prints the errors.
"""

from __future__ import annotations

import math
import re
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
_ULID = re.compile("_[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Za-z])")
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_SOME_ULID, _SOME_UUID = "_01KAY7QM3X8T4CZN5RPW2VJ6DH", "0199f301-6028-7d55-9b86-3f214c4d5e60"
"""What every generated id counts as. These have somewhat more tokens than most."""


@lru_cache(maxsize=32_768)
def _tokens_of(piece: str) -> float:
    return sum(_TOKENS[name] * number for name, number in features_of(piece).items())


def _tokens_of_pieces(text: str) -> float:
    # Two runs that differ in random ids alone must have the same numbers of tokens.
    text = _ULID.sub(_SOME_ULID, text)
    if "-7" in text:
        text = _UUID.sub(_SOME_UUID, text)
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
