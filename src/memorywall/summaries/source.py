"""The input of a summary, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memorywall.summaries.statements import Statement

TokenCounter = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A turn to summarize.

    sequence: its position in the session, from 1
    role: system, user, assistant or tool
    trusted: false for content of documents and tools; a tool's turn is never trusted
    speaker: the name of who said it, where several people or agents speak; "" for none
    """

    sequence: int
    role: str
    text: str
    trusted: bool = True
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary and its quality.

    tokens: of the text, by the caller's counter
    must_keep, kept: statements that must be kept verbatim, and how many of them the text has
    fallback: whether the extractive summary replaced the text of a model
    statements: those of the text, in order; empty for the text of a model
    """

    text: str
    tokens: int
    must_keep: int
    kept: int
    fallback: bool = False
    statements: tuple[Statement, ...] = ()


class Summarizer(Protocol):
    """Summarizes turns outside of transactions."""

    async def summarize(
        self,
        turns: Sequence[SourceTurn],
        budget: int,
        *,
        count: TokenCounter,
        previous: str = "",
    ) -> Summarized:
        """Returns a summary whose statements the turns support; see `summarize`. Never raises
        because of a model."""
        ...
