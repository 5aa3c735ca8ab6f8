"""Summaries of conversations by extraction: a statement is kept verbatim or left out."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.summaries.corrections import apply_corrections
from memorywall.summaries.select import render, select
from memorywall.summaries.source import SourceTurn, Summarized, TokenCounter
from memorywall.summaries.statements import read_statements


def summarize(
    turns: Sequence[SourceTurn],
    budget: int,
    *,
    count: TokenCounter,
    previous: str = "",
) -> Summarized:
    """Summarizes turns, together with the summary of the turns before them.

    The same arguments give the same text. Its statements are verbatim those of the turns, without
    greetings at their start.

    budget: the most tokens of the text, by `count`
    previous: the text of an earlier summary; its statements compete for the budget with the new
        ones
    """
    statements = apply_corrections(read_statements(turns, previous))
    chosen = select(statements, budget, count)
    text = render(chosen)
    return Summarized(
        text=text,
        tokens=count(text) if text else 0,
        must_keep=sum(one.must_keep for one in statements),
        kept=sum(one.must_keep for one in chosen),
    )
