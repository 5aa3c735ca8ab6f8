"""Checks the text of a model against the statements that it summarizes."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.summaries import cues
from memorywall.summaries.carriers import Carriers, carriers
from memorywall.summaries.classify import claims_a_speaker, plain
from memorywall.summaries.sentences import sentences
from memorywall.summaries.statements import Statement
from memorywall.summaries.words import content_words

_WITH_VALUES = 0.6
_WITHOUT_VALUES = 0.5
_OF_SUMMARIES = content_words(
    "user customer assistant agent conversation discussed asked said mentioned wants wanted summary"
    " explained talked described request requested"
)


def supported_sentences(text: str, statements: Sequence[Statement]) -> list[str] | None:
    """The sentences of a model's text; None if one of them is not supported.

    A sentence with values (numbers, dates, amounts, identifiers, names) is supported by a single
    trusted statement that nobody corrected, that has all these values and most of its words, and
    that is negated if the sentence is. A sentence without values is supported if the trusted
    statements have half of its words. Speakers' labels and instructions are never supported.
    """
    sources = [one for one in statements if one.trusted and not one.superseded]
    known = frozenset[str]().union(*(content_words(one.text) for one in sources))
    found = list(sentences(text))
    for sentence in found:
        if claims_a_speaker(sentence) or cues.INSTRUCTION.search(plain(sentence)):
            return None
        carried = carriers(sentence)
        words = content_words(sentence) - _OF_SUMMARIES
        if _values(carried):
            if not any(_supports(one, sentence, carried, words) for one in sources):
                return None
        elif len(words & known) < _WITHOUT_VALUES * len(words):
            return None
    return found


def _supports(one: Statement, sentence: str, carried: Carriers, words: frozenset[str]) -> bool:
    own = _values(one.carried)
    if not all(value in own or _is_named(value, one.text) for value in _values(carried)):
        return False
    if _is_negated(sentence) != _is_negated(one.text):
        return False
    return len(words & content_words(one.text)) >= _WITH_VALUES * len(words)


def _values(carried: Carriers) -> frozenset[str]:
    return carried.values | {word.lower() for word in carried.words}


def _is_named(value: str, text: str) -> bool:
    """Whether a text has a value that is no number, such as a name at the start of a sentence."""
    return not any(character.isdigit() for character in value) and value in text.lower()


def _is_negated(text: str) -> bool:
    return bool(cues.NEGATION.search(plain(text)))
