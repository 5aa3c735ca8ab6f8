"""Divides a conversation into segments where its topic changes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memorywall.summaries.source import SourceTurn
from memorywall.summaries.words import content_words

_SHORTEST, _LONGEST = 4, 40
_WINDOW = 4
_FEWEST_WORDS = 4
_COHESION = 0.1
_NEW_TOPIC = re.compile(
    r"^\W*(?:(?:ok|okay|thanks|great|anyway|by the way|btw|alright)[,.! ]+)*"
    r"(?:another (?:thing|question|topic)|(?:on|to) (?:a|another) (?:different|new|other) "
    r"|(?:different|new|next|unrelated) (?:topic|question|subject|issue)|something else"
    r"|(?:can|could) we (?:also )?(?:talk|switch|move) )",
    re.IGNORECASE,
)


def segments(turns: Sequence[SourceTurn]) -> list[tuple[SourceTurn, ...]]:
    """The segments of a conversation in order: of 4 to 40 turns, the last one of any length.

    A segment ends before a turn of the user that names a new topic, or whose turn and the turns
    after it share hardly any words with those before it.
    """
    found: list[tuple[SourceTurn, ...]] = []
    start = 0
    for place, turn in enumerate(turns):
        length = place - start
        if length < _SHORTEST or turn.role != "user":
            continue
        if length >= _LONGEST or _is_new_topic(turns, start, place):
            found.append(tuple(turns[start:place]))
            start = place
    if start < len(turns):
        found.append(tuple(turns[start:]))
    return found


def _is_new_topic(turns: Sequence[SourceTurn], start: int, place: int) -> bool:
    turn = turns[place]
    if turn.trusted and _NEW_TOPIC.search(turn.text):
        return True
    own = content_words(turn.text)
    if len(own) < _FEWEST_WORDS:
        return False
    before = _words(turns[max(start, place - 2 * _WINDOW) : place])
    after = _words(turns[place : place + _WINDOW])
    smaller = min(len(before), len(after))
    if not smaller or own & before:
        return False
    return len(before & after) / smaller < _COHESION


def _words(turns: Sequence[SourceTurn]) -> frozenset[str]:
    return frozenset[str]().union(*(content_words(turn.text) for turn in turns))
