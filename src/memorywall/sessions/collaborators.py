"""The processing of the content of turns: estimates of tokens, and summaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.kinds.content_parts import count_content, spoken_text
from memorywall.kinds.sessions import OPENING_SHARE, Summary, Turn, speaker_of
from memorywall.summaries import SourceTurn, Summarized
from memorywall.summaries import summarize as summarize_turns
from memorywall.summaries.kept import known_statements
from memorywall.tokens.estimate import estimate

_COUNTED = 200_000
"""The characters of a text that are counted: some 60 milliseconds."""


def count_tokens(turn: Turn) -> int:
    """Returns the estimated number of tokens of a turn. Of a long text the beginning is counted."""
    tokens = count_content(turn.content, _estimate_long)
    for call in turn.tool_calls:
        tokens += estimate(call.name) + estimate(msgspec.json.encode(call.arguments).decode())
    if turn.extra:
        tokens += estimate(msgspec.json.encode(turn.extra).decode())
    return tokens


def _estimate_long(text: str) -> int:
    if len(text) <= _COUNTED:
        return estimate(text)
    return estimate(text[:_COUNTED]) * len(text) // _COUNTED


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
        SourceTurn(
            turn.sequence, turn.role, spoken_text(turn.content), turn.trusted, speaker_of(turn)
        )
        for turn in turns
    ]
