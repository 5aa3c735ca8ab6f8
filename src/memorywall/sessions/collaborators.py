"""Functions of other packages on the content of turns: estimates of tokens, detection of personal
data, and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memorywall.kinds.sessions import PersonalData, Turn, content_text
from memorywall.records.errors import ValidationError


@dataclass(frozen=True, slots=True)
class SummaryText:
    """A summary; see `Summary`."""

    text: str
    tokens: int
    must_keep: int = 0
    kept: int = 0
    fallback: bool = False


def estimate(text: str) -> int:
    """Returns the estimated number of tokens of a text."""
    return len(text) // 4 + 1


def screen(
    policy: PersonalData, content: str | list[dict[str, Any]]
) -> tuple[str | list[dict[str, Any]], tuple[str, ...]]:
    """Returns the content as the policy stores it, and the kinds of personal data in it.

    Raises ValidationError for a policy that this server cannot apply.
    """
    if policy != "keep":
        raise ValidationError("`policy.personal_data` must be `keep`: there are no detectors")
    return content, ()


def summarize(turns: Sequence[Turn], budget: int, previous: str) -> SummaryText:
    """Returns a summary of turns and of the previous summary.

    budget: the most tokens
    """
    lines = [f"{turn.role}: {content_text(turn.content)}" for turn in turns]
    text = "\n".join([previous, *lines] if previous else lines)[-4 * budget :]
    return SummaryText(text, estimate(text))
