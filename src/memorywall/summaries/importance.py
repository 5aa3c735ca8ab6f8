"""The importance of statements and of turns: tables of classes and their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of a class of statements.

    weight: 0 to 1; of two statements of the same length, the one with the larger weight is kept
    must_keep: whether a statement of the class is kept before every statement of other classes
    """

    weight: float
    must_keep: bool = True


STATEMENTS: Final[Mapping[str, Importance]] = {
    "correction": Importance(1.0),
    "constraint": Importance(0.95),
    "decision": Importance(0.9),
    "problem": Importance(0.9),
    "conditional": Importance(0.85),
    "promise": Importance(0.85),
    "outcome": Importance(0.8),
    "open": Importance(0.8),
    "negation": Importance(0.75),
    "amount": Importance(0.75),
    "date": Importance(0.75),
    "number": Importance(0.7),
    "name": Importance(0.65),
    "sentiment": Importance(0.4, must_keep=False),
    "context": Importance(0.2, must_keep=False),
    "chitchat": Importance(0.0, must_keep=False),
}
"""The classes of statements, the most important first. A statement has the first that applies."""

TURNS: Final[Mapping[str, float]] = {
    "system": 1.0,
    "first_user": 0.95,
    "correction": 0.9,
    "user": 0.5,
    "tool_result": 0.6,
    "assistant": 0.4,
    "chitchat": 0.1,
}
"""The weights of turns, for a context that selects whole turns by importance."""

RECENCY_BONUS: Final = 0.2
"""The bonus of the newest turn; it falls linearly to 0 for the oldest."""
