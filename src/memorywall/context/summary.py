"""The summary of a session within the room of a context."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memorywall.context.item import ContextItem
from memorywall.context.rendering import tokens_of
from memorywall.kinds.sessions import OPENING_SHARE
from memorywall.summaries import summarize
from memorywall.summaries.kept import known_statements
from memorywall.summaries.statements import Statement
from memorywall.tokens.estimate import TokenCounter, estimate

_SHARE = 0.6
"""The most of what the turns and the summary may take together that a summary takes."""


def largest_summary(room: int, allowance: int | None = None) -> int:
    """Returns the most tokens of a summary.

    The number changes in steps, so that the same summary mostly has the same bytes.

    room: the tokens for the whole context
    allowance: the tokens for the summary and the turns; None for all
    """
    largest = int(room * _SHARE)
    while allowance is not None and largest > max(0, allowance) * _SHARE:
        largest = largest * 5 // 6
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
    quality = (
        None if item.quality is None else replace(item.quality, kept=made.kept, tokens=made.tokens)
    )
    shorter = replace(
        item, content=made.text, statements=(), reason="summary_shortened", tokens=0,
        quality=quality,
    )  # fmt: skip
    return replace(shorter, tokens=tokens_of(shorter, count))


def missing_statements(whole: ContextItem, shown: ContextItem) -> Sequence[Statement]:
    """Returns the statements that must be kept of a summary and that its shorter form lacks."""
    known = known_statements(whole.text, whole.statements)
    if whole is shown or isinstance(known, str):
        return ()
    return [one for one in known if one.trusted and one.must_keep and one.text not in shown.text]
