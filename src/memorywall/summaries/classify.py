"""The class of a statement: a pure function of its text, its role and whether it is trusted."""

from __future__ import annotations

import re

from memorywall.records.words import QUESTION_MARKS
from memorywall.summaries import cues
from memorywall.summaries.carriers import Carriers

_SPECIFIC = re.compile(
    r"\b(?:i|we|you|he|she|they|my|our|your|his|her|their|i'\w+|we'\w+|please|let's)\b"
    r"|^the \w+ (?:does|do|is|has|can)(?:n't| not)\b|^(?:the|an?) best\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?:^|[\s\"“(\[<])(?:user|human|system|assistant|developer|tool)\s*:", re.I)
_FIRST = re.compile(r"\b(?:i|we)\b")
_ADVICE = re.compile(r"\byou\b|(?:^|, )(?:it|that|this|things|everything|there|one)\b")
_CONSEQUENCE = re.compile(r"\b(?:will|must|then|please|can|cannot|won't)\b")
_POLITE = 90
"""The most characters of a sentence that is chitchat because of a polite phrase."""
_ASCII = re.compile(r"[A-Za-z]")


def claims_a_speaker(text: str) -> bool:
    """Whether a text has a speaker's label, which could be read as another turn."""
    return bool(_SPEAKER.search(text))


def classify_data(text: str, carried: Carriers) -> str:
    """The class of a statement that is not trusted: never one that a speaker's intent makes."""
    plain_text = plain(text)
    if cues.INSTRUCTION.search(plain_text):
        return "chitchat"
    if claims_a_speaker(text):
        return "context"
    return "outcome" if carried.values or cues.OUTCOME.search(plain_text) else "context"


def classify(text: str, role: str, carried: Carriers, *, states_problem: bool) -> str:
    """The class of a trusted statement, except that of a correction.

    states_problem: whether the statement belongs to the first turn of the user
    """
    text = plain(text)
    if not carried.values and _is_chitchat(text):
        return "chitchat"
    if text.rstrip(" \"')").endswith(QUESTION_MARKS):
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


def _is_chitchat(text: str) -> bool:
    if cues.CHITCHAT.search(text):
        return True
    is_short = len(text) <= _POLITE and not re.search(r"\bbut\b", text)
    return is_short and bool(cues.POLITENESS.search(text)) and not cues.NEGATION.search(text)


def plain(text: str) -> str:
    """The text in small letters and with straight apostrophes, as the patterns have them."""
    return text.replace("\u2019", "'").lower()


def _of_question(text: str, carried: Carriers, *, states_problem: bool) -> str:
    if states_problem and cues.PROBLEM.search(text):
        return "problem"
    if not carried.values and cues.OFFER.search(text):
        return "context"
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
    if conditional and _is_consequential(text, role, carried):
        return "conditional"
    if cues.DECISION.search(text):
        return "decision"
    if cues.PROMISE.search(text) or (carried.values and cues.NAMED_PROMISE.search(text)):
        return "promise"
    if role != "assistant" and _is_constraint(text, carried):
        return "constraint"
    negated = bool(cues.NEGATION.search(text)) and not cues.IDLE_NEGATION.search(text)
    if negated and (role != "assistant" or carried.values or _SPECIFIC.search(text)):
        return "negation"
    if _is_outcome(text, carried) and not conditional:
        return "outcome"
    if role == "assistant" and carried.values and cues.CONSTRAINT.search(text):
        return "constraint"
    return None


def _is_constraint(text: str, carried: Carriers) -> bool:
    if cues.CONSTRAINT.search(text):
        return True
    is_measured = carried.numbers or carried.dates or carried.words
    return bool(is_measured and cues.LIMIT.search(text))


def _is_outcome(text: str, carried: Carriers) -> bool:
    happened = bool(carried.values) or bool(cues.HAPPENED.search(text))
    return happened and bool(cues.OUTCOME.search(text))


def _is_general(text: str, carried: Carriers) -> bool:
    if carried.values or cues.STRONG_CONDITION.search(text):
        return False
    return bool(cues.GENERAL.search(text)) or not (
        _SPECIFIC.search(text) or cues.OUTCOME.search(text) or cues.OPEN.search(text)
    )


def _is_consequential(text: str, role: str, carried: Carriers) -> bool:
    """Whether a condition decides something: it has a value, or a consequence for somebody.

    An assistant's conditions without a value are advice, unless they bind the speakers.
    """
    if carried.values or carried.words or not _ASCII.search(text):
        return True
    bound = _FIRST.search(text) or cues.STRONG_CONDITION.search(text)
    if role == "assistant" and not bound and _ADVICE.search(text):
        return False
    return "," in text or bool(_CONSEQUENCE.search(text))


def _of_carriers(carried: Carriers) -> str | None:
    if carried.amounts:
        return "amount"
    if carried.dates:
        return "date"
    if carried.numbers or carried.identifiers or carried.words:
        return "number"
    return "name" if carried.names else None
