"""What sessions do with the content of turns: estimates of tokens, policies of personal data, and
summaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memorywall.kinds.sessions import ToolCall, Turn, content_text
from memorywall.redaction.personal_data import apply
from memorywall.summaries import SourceTurn, Summarized
from memorywall.summaries import summarize as summarize_turns
from memorywall.tokens.estimate import estimate


def count_tokens(turn: Turn) -> int:
    """Returns the estimated number of tokens of a turn."""
    tokens = estimate(content_text(turn.content))
    for call in turn.tool_calls:
        tokens += estimate(call.name) + estimate(msgspec.json.encode(call.arguments).decode())
    return tokens


def screen(policy: str, turn: Turn) -> Turn:
    """Returns the turn as the policy of its session stores it, with the kinds of personal data that
    were found.

    policy: `keep`, `mark` or `mask`
    """
    if policy == "keep":
        return turn
    content, found = apply(policy, turn.content)
    calls: list[ToolCall] = []
    for call in turn.tool_calls:
        arguments, inside = apply(policy, call.arguments)
        calls.append(replace(call, arguments=arguments))
        found = tuple(dict.fromkeys((*found, *inside)))
    return replace(turn, content=content, tool_calls=tuple(calls), personal_data=found)


def summarize(turns: Sequence[Turn], budget: int, previous: str) -> Summarized:
    """Returns a summary of turns and of the previous summary.

    budget: the most tokens
    """
    return summarize_turns(source_turns(turns), budget, count=estimate, previous=previous)


def source_turns(turns: Sequence[Turn]) -> list[SourceTurn]:
    """Returns turns as summarizers read them."""
    return [
        SourceTurn(turn.sequence, turn.role, content_text(turn.content), turn.trusted)
        for turn in turns
    ]
