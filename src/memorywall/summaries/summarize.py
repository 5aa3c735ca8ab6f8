"""Summaries of conversations by extraction: a statement is kept verbatim or left out."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.summaries.corrections import apply_corrections
from memorywall.summaries.select import Selection, render
from memorywall.summaries.source import SourceTurn, Summarized, TokenCounter
from memorywall.summaries.statements import Statement, read_statements


def summarize(
    turns: Sequence[SourceTurn],
    budget: int,
    *,
    count: TokenCounter,
    previous: str | Sequence[Statement] = "",
    opening: float = 0.0,
) -> Summarized:
    """Summarizes turns, together with the summary of the turns before them.

    The same arguments give the same text. Its statements are verbatim those of the turns, without
    greetings at their start.

    budget: the most tokens of the text, by `count`
    previous: the statements of an earlier summary, which compete for the budget with the new ones;
        its text, to classify them again
    opening: the share of the budget that what the user says first, mostly the problem, may take
        before everything else
    """
    start = 0 if isinstance(previous, str) else len(previous)
    statements = apply_corrections(read_statements(turns, previous), start)
    selection = Selection(budget, count, opening)
    chosen = selection.choose(statements)
    return Summarized(
        text=render(chosen),
        tokens=selection.size(chosen),
        must_keep=sum(one.must_keep for one in statements),
        kept=sum(one.must_keep for one in chosen),
        statements=tuple(chosen),
    )
