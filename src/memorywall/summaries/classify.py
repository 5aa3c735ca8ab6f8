"""The class of a statement: a pure function of its text, its role and whether it is trusted."""

from __future__ import annotations

import re

from memorywall.summaries import cues
from memorywall.summaries.carriers import Carriers

_SPECIFIC = re.compile(
    r"\b(?:i|we|you|he|she|they|my|our|your|his|her|their|i'\w+|we'\w+|please|let's)\b"
    r"|^the \w+ (?:does|do|is|has|can)(?:n't| not)\b|^(?:the|an?) best\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?:^|[\s\"“(\[<])(?:user|human|system|assistant|developer|tool)\s*:", re.I)
_ASCII = re.compile(r"[A-Za-z]")


def claims_a_speaker(text: str) -> bool:
    """Whether a text has a speaker's label, which could be read as another turn."""
    return bool(_SPEAKER.search(text))


def classify_data(text: str, carried: Carriers, *, turn_trusted: bool = False) -> str:
    """The class of a statement that is not trusted: never one that a speaker's intent makes.

    turn_trusted: whether the turn is trusted, and only this statement has the label of a speaker
    """
    if cues.INSTRUCTION.search(text) or (not turn_trusted and claims_a_speaker(text)):
        return "chitchat"
    return "outcome" if carried.values or cues.OUTCOME.search(text) else "context"


def classify(text: str, role: str, carried: Carriers, *, states_problem: bool) -> str:
    """The class of a trusted statement, except that of a correction.

    states_problem: whether the statement belongs to the first turn of the user
    """
    text = plain(text)
    if not carried.values and cues.CHITCHAT.search(text):
        return "chitchat"
    if text.rstrip(" \"')").endswith(("?", "？", "؟")):
        return _of_question(text, carried, states_problem=states_problem)
    found = _of_intent(text, role, carried)
    if role == "user" and (found in {"negation", "outcome"} or found is None):
        sounds_bad = bool(cues.PROBLEM.search(text)), bool(cues.SENTIMENT.search(text))
        if all(sounds_bad) or (states_problem and any(sounds_bad)):
            return "problem"
        if found is None and sounds_bad[1]:
            return "sentiment"
    if found is None and not carried.values and states_problem and len(text.split()) > 4:
        return "problem"
    return found or _of_carriers(carried) or "context"


def plain(text: str) -> str:
    """The text with straight apostrophes, as the patterns have them."""
    return text.replace("\u2019", "'")


def _of_question(text: str, carried: Carriers, *, states_problem: bool) -> str:
    if states_problem and cues.PROBLEM.search(text):
        return "problem"
    if cues.OPEN.search(text) or (
        cues.OPEN_QUESTION.search(text) and (carried.values or re.search(r"\bor\b", text))
    ):
        return "open"
    return "context"


def _of_intent(text: str, role: str, carried: Carriers) -> str | None:
    """The class that the words of intent give; general advice of an assistant has none."""
    if not carried.values and cues.IDLE.search(text):
        return None
    if role == "assistant" and _is_general(text, carried):
        return None
    conditional = bool(cues.CONDITIONAL.search(text))
    if cues.OPEN.search(text):
        return "open"
    if conditional and _is_consequential(text, carried):
        return "conditional"
    if cues.DECISION.search(text):
        return "decision"
    if cues.PROMISE.search(text):
        return "promise"
    if role != "assistant" and cues.CONSTRAINT.search(text):
        return "constraint"
    negated = bool(cues.NEGATION.search(text)) and not cues.IDLE_NEGATION.search(text)
    if negated and (role != "assistant" or _SPECIFIC.search(text)):
        return "negation"
    if cues.OUTCOME.search(text):
        return "outcome"
    if role == "assistant" and carried.values and cues.CONSTRAINT.search(text):
        return "constraint"
    return None


def _is_general(text: str, carried: Carriers) -> bool:
    if carried.values or cues.STRONG_CONDITION.search(text):
        return False
    return bool(cues.GENERAL.search(text)) or not (
        _SPECIFIC.search(text)
        or cues.OUTCOME.search(text)
        or cues.OPEN.search(text)
    )


def _is_consequential(text: str, carried: Carriers) -> bool:
    """Whether a condition decides something: it has a consequence in another clause or a value."""
    if carried.values or carried.words:
        return True
    if not _ASCII.search(text):
        return True
    return "," in text or bool(re.search(r"\b(?:will|must|then|please|can|cannot|won't)\b", text))


def _of_carriers(carried: Carriers) -> str | None:
    if carried.amounts:
        return "amount"
    if carried.dates:
        return "date"
    if carried.numbers or carried.identifiers or carried.words:
        return "number"
    return "name" if carried.names else None
