"""The processing of the content of turns: estimates of tokens, and summaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.kinds.sessions import (
    OPENING_SHARE,
    PART_TOKENS,
    Summary,
    Turn,
    content_text,
)
from memorywall.summaries import SourceTurn, Summarized
from memorywall.summaries import summarize as summarize_turns
from memorywall.summaries.kept import known_statements
from memorywall.tokens.estimate import estimate


def count_tokens(turn: Turn) -> int:
    """Returns the estimated number of tokens of a turn."""
    tokens = estimate(content_text(turn.content))
    if not isinstance(turn.content, str):
        tokens += PART_TOKENS * sum("text" not in part for part in turn.content)
    for call in turn.tool_calls:
        tokens += estimate(call.name) + estimate(msgspec.json.encode(call.arguments).decode())
    return tokens


def summarize(turns: Sequence[Turn], budget: int, previous: Summary | None) -> Summarized:
    """Returns a summary of turns and of the previous summary.

    budget: the most tokens
    previous: its statements are used as they were read; without them its text is read again
    """
    known = "" if previous is None else known_statements(previous.text, previous.statements)
    return summarize_turns(
        source_turns(turns), budget, count=estimate, previous=known, opening=OPENING_SHARE
    )


def source_turns(turns: Sequence[Turn]) -> list[SourceTurn]:
    """Returns turns as summarizers read them."""
    return [
        SourceTurn(turn.sequence, turn.role, content_text(turn.content), turn.trusted)
        for turn in turns
    ]
