"""The summary of a session within the room of a context."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.context.item import ContextItem
from memorywall.context.rendering import tokens_of
from memorywall.summaries import SourceTurn, summarize
from memorywall.tokens.estimate import TokenCounter, estimate

_PART = 5
"""A summary has at most this part of the room, one fifth."""


def shorten(item: ContextItem, room: int, count: TokenCounter) -> ContextItem:
    """Returns a summary with the statements that fit a fifth of the room.

    room: the tokens for the whole context
    """
    # The estimate decides for every counter, so that the context can be shown again.
    if estimate(item.text) <= room // _PART:
        return item
    made = summarize([SourceTurn(0, "user", "")], room // _PART, count=estimate, previous=item.text)
    shorter = replace(item, content=made.text, reason="summary_shortened", tokens=0)
    return replace(shorter, tokens=tokens_of(shorter, count))
