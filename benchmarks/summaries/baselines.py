"""Simple methods to compare with: truncation, recency and TextRank."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from memorywall.summaries import SourceTurn, TokenCounter
from memorywall.summaries.lines import Line, write_lines
from memorywall.summaries.sentences import sentences
from memorywall.summaries.words import content_words

_DAMPING = 0.85
_ITERATIONS = 30


def truncation(turns: Sequence[SourceTurn], budget: int, count: TokenCounter) -> str:
    """The beginning of the conversation, sentence by sentence."""
    return _first_that_fit(_lines(turns), budget, count)


def recency(turns: Sequence[SourceTurn], budget: int, count: TokenCounter) -> str:
    """The end of the conversation, sentence by sentence."""
    lines = _lines(turns)
    for start in range(len(lines)):
        text = write_lines(lines[start:])
        if count(text) <= budget:
            return text
    return ""


def textrank(turns: Sequence[SourceTurn], budget: int, count: TokenCounter) -> str:
    """The sentences with the highest TextRank (Mihalcea and Tarau, 2004) that fit, in order."""
    # A sentence that is repeated would link to itself and win.
    lines = list(dict.fromkeys(_lines(turns)))
    words = [content_words(line.text) for line in lines]
    ranks = _rank(words)
    chosen: list[int] = []
    spent = 0
    for place in sorted(range(len(lines)), key=lambda one: -ranks[one]):
        cost = count(write_lines([lines[place]])) + 1
        if spent + cost <= budget:
            chosen.append(place)
            spent += cost
    return write_lines(lines[place] for place in sorted(chosen))


BASELINES: dict[str, Callable[[Sequence[SourceTurn], int, TokenCounter], str]] = {
    "truncation": truncation,
    "recency": recency,
    "TextRank": textrank,
}


def _lines(turns: Sequence[SourceTurn]) -> list[Line]:
    return [Line(turn.role, turn.trusted, text) for turn in turns for text in sentences(turn.text)]


def _first_that_fit(lines: list[Line], budget: int, count: TokenCounter) -> str:
    text = ""
    for end in range(1, len(lines) + 1):
        longer = write_lines(lines[:end])
        if count(longer) > budget:
            break
        text = longer
    return text


def _rank(words: list[frozenset[str]]) -> list[float]:
    links: list[list[tuple[int, float]]] = [[] for _ in words]
    for one in range(len(words)):
        for other in range(one):
            common = len(words[one] & words[other])
            if common:
                length = math.log(len(words[one]) + 1) + math.log(len(words[other]) + 1)
                links[one].append((other, common / length))
                links[other].append((one, common / length))
    weights = [sum(weight for _, weight in linked) for linked in links]
    ranks = [1.0] * len(words)
    for _ in range(_ITERATIONS):
        ranks = [
            1 - _DAMPING + _DAMPING * sum(ranks[o] * w / weights[o] for o, w in linked)
            for linked in links
        ]
    return ranks
