"""The summary of a session within the room of a context."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.context.item import ContextItem
from memorywall.context.rendering import tokens_of
from memorywall.kinds.sessions import OPENING_SHARE
from memorywall.summaries import summarize
from memorywall.summaries.kept import known_statements
from memorywall.tokens.estimate import TokenCounter, estimate

_PART = 5
"""A summary has at most this part of the room, one fifth."""


def largest_summary(room: int, allowance: int | None = None) -> int:
    """Returns the most tokens of a summary.

    The number changes in steps, so that the same summary mostly has the same bytes.

    room: the tokens for the whole context
    allowance: the tokens for the summary and the turns, of which the summary takes at most half;
        None for no limit
    """
    largest = room // _PART
    while allowance is not None and largest > max(0, allowance) // 2:
        largest //= 2
    return largest


def shorten(item: ContextItem, largest: int, count: TokenCounter) -> ContextItem:
    """Returns a summary with the statements that fit.

    largest: the most tokens, by the estimate
    """
    # The estimate decides for every counter, so that the context can be shown again.
    if estimate(item.text) <= largest:
        return item
    known = known_statements(item.text, item.statements)
    made = summarize([], largest, count=estimate, previous=known, opening=OPENING_SHARE)
    shorter = replace(item, content=made.text, statements=(), reason="summary_shortened", tokens=0)
    return replace(shorter, tokens=tokens_of(shorter, count))
