"""What a context shows of its session whatever else it leaves out: the system text and the message
that the session begins with, and the question that an agent works on."""

from __future__ import annotations

from collections.abc import Sequence

from memorywall.context.item import ContextItem
from memorywall.context.units import Unit

_MOST_OF_OPENING = 0.5
"""The most of the room that the beginning may take. A longer one, such as a document that the user
pasted, is summarized like other turns."""
LAST_CHOICE = 3
"""The choice that pins nothing."""


def is_question(turn: ContextItem) -> bool:
    """Returns whether a turn is one of the user."""
    return turn.role == "user" and turn.trusted


def choose_pinned(
    units: Sequence[Unit], room: int, unread: int, choice: int, *, is_asked: bool
) -> list[Unit]:
    """Returns the turns to pin.

    units: the turns in order
    room: the most tokens of the session
    unread: the sequence of the last turn that was not read; 0 for none
    choice: 0 for the beginning and the question, 1 for the question, 2 for the beginning, 3 for
        none
    is_asked: whether the request has a message of the user, so that no turn is the question
    """
    opening = _opening([one for one in units if not unread or one.first.sequence < unread])
    if sum(unit.tokens for unit in opening) > _MOST_OF_OPENING * room:
        opening = []
    questions = [one for one in units if is_question(one.first)]
    question = [] if is_asked else questions[-1:]
    return [[*opening, *question], question, opening, []][choice]


def _opening(units: Sequence[Unit]) -> list[Unit]:
    """Returns the turns of the system, and the first of the user, that a session begins with."""
    opening: list[Unit] = []
    for unit in units:
        if is_question(unit.first):
            return [*opening, unit]
        if unit.first.role == "system" and unit.first.trusted:
            opening.append(unit)
    return opening
