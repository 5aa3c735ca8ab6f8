"""Summaries by a model of sessions whose policy asks for it.

The job `end_sessions` reads what is to be summarized, asks the model outside of any transaction,
and stores the text only if the turns and the summary before them are still the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memorywall.kinds.sessions import Summary, Turn
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.collaborators import source_turns
from memorywall.sessions.stored import LoadedSession
from memorywall.summaries import Summarized, Summarizer
from memorywall.tokens.estimate import estimate


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """The sources of a summary.

    previous: the newest summary, None without one
    turns: the oldest turns since that summary
    budget: the most tokens of the text
    """

    previous: Summary | None
    turns: Sequence[Turn]
    budget: int

    @property
    def previous_text(self) -> str:
        """The text of the newest summary, "" without one."""
        return "" if self.previous is None else self.previous.text

    def begins(self, other: SummaryInput) -> bool:
        """Returns whether `other` is the same, possibly with further turns."""
        is_same = (self.previous, self.budget) == (other.previous, other.budget)
        return is_same and self.turns == other.turns[: len(self.turns)]


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary by a model, and what it was made of."""

    source: SummaryInput
    made: Summarized


def is_for_model(context: OperationContext, loaded: LoadedSession) -> bool:
    """Returns whether a model summarizes this session."""
    return context.service.summarizer is not None and loaded.value.policy.summarizer == "model"


async def write_summaries(
    summarizer: Summarizer, waiting: Mapping[str, SummaryInput]
) -> dict[str, WrittenSummary]:
    """Returns the summaries of a model, by session. They are written at the same time, so that all
    take as long as the slowest one."""

    async def write(source: SummaryInput) -> WrittenSummary:
        made = await summarizer.summarize(
            source_turns(source.turns), source.budget, count=estimate, previous=source.previous_text
        )
        return WrittenSummary(source, made)

    written = await asyncio.gather(*(write(one) for one in waiting.values()))
    return dict(zip(waiting, written, strict=True))
