"""Statements: the sentences of turns and of an earlier summary, with their classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memorywall.summaries import cues
from memorywall.summaries.carriers import Carriers, carriers
from memorywall.summaries.classify import claims_a_speaker, classify, classify_data, plain
from memorywall.summaries.importance import STATEMENTS, Importance
from memorywall.summaries.lines import Line, read_lines
from memorywall.summaries.sentences import sentences
from memorywall.summaries.source import SourceTurn

_OPENING = 3
"""The sentences of the first user turn that may state the problem."""
_CARRIED = frozenset({"amount", "date", "number", "name"})
_LONGEST = 2_000
"""The most characters of a statement; what is longer is a data dump, and is left out."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that is kept verbatim or left out.

    place: its position among all statements
    superseded: whether a user corrected it
    tokens: those of a summary of this statement alone; 0 if they are not counted yet
    """

    place: int
    role: str
    trusted: bool
    text: str
    category: str
    carried: Carriers
    superseded: bool = False
    tokens: int = 0

    @property
    def importance(self) -> Importance:
        """The importance of its class."""
        return STATEMENTS[self.category]

    @property
    def must_keep(self) -> bool:
        """Whether it must be kept verbatim."""
        return self.importance.must_keep and not self.superseded


def read_statements(
    turns: Sequence[SourceTurn], previous: str | Sequence[Statement]
) -> list[Statement]:
    """The statements of an earlier summary and of the turns after it, each once, in order.

    previous: the statements of the summary; its text, to classify them again
    """
    lines = [_line(turn) for turn in turns]
    found: list[Statement] = []
    if isinstance(previous, str):
        lines[:0] = read_lines(previous)
    else:
        found += [
            one if one.place == place else replace(one, place=place)
            for place, one in enumerate(previous)
        ]
    seen = {(one.role, one.trusted, one.text) for one in found}
    known = {value for one in found if one.trusted for value in one.carried.values}
    opened = any(one.role == "user" and one.trusted for one in found)
    for line in lines:
        opening = _OPENING if line.role == "user" and line.trusted and not opened else 0
        opened = opened or bool(opening)
        for statement in _of_line(line, opening):
            key = (statement.role, statement.trusted, statement.text)
            if key in seen:
                continue
            seen.add(key)
            if _restates(statement, known):
                statement = replace(statement, category="context")
            if statement.trusted:
                known |= statement.carried.values
            found.append(replace(statement, place=len(found)))
    return found


def _restates(statement: Statement, known: set[str]) -> bool:
    """Whether an assistant only repeats values, as in an acknowledgement."""
    if statement.role != "assistant" or statement.category not in _CARRIED:
        return False
    return not statement.carried.words and statement.carried.values <= known


def turn_class(turn: SourceTurn, *, is_first_user: bool) -> str:
    """The class of a whole turn, a key of `TURNS`. Only trusted turns of the user are corrections.

    is_first_user: whether it is the first turn of the user in the session
    """
    line = _line(turn)
    if turn.role == "system" and line.trusted:
        return "system"
    if not line.trusted:
        return "tool_result"
    categories = [one.category for one in _of_line(line, _OPENING if is_first_user else 0)]
    if all(category == "chitchat" for category in categories):
        return "chitchat"
    if turn.role != "user":
        return "assistant"
    if is_first_user:
        return "first_user"
    return "correction" if "correction" in categories else "user"


def _line(turn: SourceTurn) -> Line:
    return Line(turn.role, turn.trusted and turn.role != "tool", turn.text, turn.speaker)


def _of_line(line: Line, opening: int) -> Iterator[Statement]:
    for text in _units(sentences(line.text), line):
        if len(text) > _LONGEST:
            continue
        carried = carriers(text)
        trusted = line.trusted and not claims_a_speaker(text)
        if not trusted:
            category = classify_data(text, carried)
        elif line.role == "summary":
            # What a model wrote in an earlier summary is never more than context.
            category = "context"
        elif line.role == "user" and _corrects(text, carried):
            category = "correction"
        else:
            category = classify(text, line.role, carried, states_problem=opening > 0)
        if category not in {"chitchat", "correction"}:
            opening -= 1
        named = f"{line.speaker}: {text}" if line.speaker else text
        yield Statement(0, line.role, trusted, named, category, carried)


def _units(parts: Iterable[str], line: Line) -> Iterator[str]:
    """The sentences, with one that only announces a correction joined to the one it announces."""
    announced = ""
    for part in parts:
        is_user = line.role == "user" and line.trusted
        if announced:
            yield f"{announced} {part}"
            announced = ""
        elif is_user and _announces(part):
            announced = part
        else:
            yield part
    if announced:
        yield announced


def _announces(text: str) -> bool:
    if len(text) > cues.CORRECTION_ALONE or text.endswith("?"):
        return False
    text = plain(text)
    if not (cues.CORRECTION.search(text) or cues.CORRECTION_START.fullmatch(text + " ")):
        return False
    return not carriers(text).values


def _corrects(text: str, carried: Carriers) -> bool:
    text = plain(text)
    if re.search(r"\?\W*$", text):
        return False
    if cues.CORRECTION.search(text):
        return True
    if (carried.values or carried.words) and cues.CORRECTION_START.search(text):
        return True
    return bool((carried.numbers or carried.dates) and cues.CONTRAST.search(text))
