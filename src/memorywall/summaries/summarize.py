"""Summaries of conversations by extraction: sentences are kept verbatim or left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A turn to summarize.

    sequence: its position in the session, from 1
    role: system, user, assistant or tool
    trusted: false for content of documents and tools
    """

    sequence: int
    role: str
    text: str
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Summarized:
    """A summary and its quality.

    tokens: of the text, by the caller's counter
    must_keep, kept: statements that must be kept verbatim, and how many of them the text has
    fallback: whether the extractive summary replaced the text of a model
    """

    text: str
    tokens: int
    must_keep: int
    kept: int
    fallback: bool = False


def summarize(
    turns: Sequence[SourceTurn],
    budget: int,
    *,
    count: Callable[[str], int],
    previous: str = "",
) -> Summarized:
    """Summarizes turns, and the summary of the turns before them, within a budget of tokens."""
    kept: list[str] = []
    lines = previous.splitlines()
    lines += [f"{turn.role.capitalize()}: {' '.join(turn.text.split())}" for turn in turns]
    for line in reversed(lines):
        if count("\n".join([line, *kept])) > budget:
            break
        kept.insert(0, line)
    text = "\n".join(kept)
    return Summarized(text, count(text) if text else 0, len(lines), len(kept))
