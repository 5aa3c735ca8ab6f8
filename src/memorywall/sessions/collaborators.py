"""The processing of the content of turns: estimates of tokens, and summaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.kinds.sessions import (
    PART_TOKENS,
    StoredStatement,
    Summary,
    Turn,
    content_text,
)
from memorywall.summaries import SourceTurn, Summarized
from memorywall.summaries import summarize as summarize_turns
from memorywall.summaries.carriers import Carriers
from memorywall.summaries.statements import Statement
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
    known: str | list[Statement] = "" if previous is None else _statements_of(previous)
    return summarize_turns(source_turns(turns), budget, count=estimate, previous=known)


def source_turns(turns: Sequence[Turn]) -> list[SourceTurn]:
    """Returns turns as summarizers read them."""
    return [
        SourceTurn(turn.sequence, turn.role, content_text(turn.content), turn.trusted)
        for turn in turns
    ]


def kept_statements(made: Summarized) -> tuple[StoredStatement, ...]:
    """Returns the statements of a summary as they are stored with its text."""
    kept: list[StoredStatement] = []
    end = 0
    for one in made.statements:
        # A label before it may have the same characters; the statement found is the same text.
        start = made.text.index(one.text, end)
        end = start + len(one.text)
        kept.append(
            StoredStatement(
                start, len(one.text), one.role, one.trusted, one.category, one.tokens, one.carried
            )
        )
    return tuple(kept)


def _statements_of(summary: Summary) -> str | list[Statement]:
    if not summary.statements:
        return summary.text
    return [
        Statement(
            place=place,
            role=one.role,
            trusted=one.trusted,
            text=summary.text[one.start : one.start + one.length],
            category=one.category,
            carried=Carriers(*one.carried),
            tokens=one.tokens,
        )
        for place, one in enumerate(summary.statements)
    ]
