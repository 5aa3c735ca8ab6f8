"""Whether a text is worth keeping: rules as data, which need no model.

The first rule of `RULES` whose test holds decides. A text is divided into sentences; each is talk
of one of the classes in `_TALK`, or a statement. A text without a statement is junk, whatever its
length, and a statement is worth keeping if something in it holds beyond the moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from memorywall.longterm import statement_cues as words
from memorywall.records.entry import Origin
from memorywall.records.recall import GuidanceKind
from memorywall.records.words import NO_SPACES, QUESTION_MARKS
from memorywall.records.worthiness import DUPLICATE, Verdict
from memorywall.summaries import cues
from memorywall.summaries.carriers import Carriers, carriers
from memorywall.summaries.classify import plain
from memorywall.summaries.sentences import sentences

RECORD: Final = "record"
"""The name of the rule about values without a text."""
LONGEST_READ: Final = 16_000
"""The most characters of a text that are judged: its beginning."""
_LEAST_WORDS: Final = 4
"""The least words of a sentence that stands alone. Two characters of Chinese count as one."""
_WITHOUT_SPACES = re.compile(f"[{NO_SPACES}]")
_SHORT = 60
"""The most characters of an exclamation that states nothing."""
_SIGNS: Final = "(){}[]=;<>|"
_MOST_SIGNS: Final = 0.1
_LESSONS: Final = frozenset(GuidanceKind)
_TEXTS: Final = ("text", "content", "message")
_PEOPLE: Final = frozenset({"user", "human"})
_decode_json = msgspec.json.Decoder(dict[str, Any] | list[Any]).decode


class Sentence:
    """A sentence as it was written, and in small letters as `text`."""

    def __init__(self, written: str) -> None:
        self._written = written
        self.text = plain(written)

    @cached_property
    def carried(self) -> Carriers:
        """Its values."""
        return carriers(self._written)


@dataclass(frozen=True, kw_only=True)
class MemoryCandidate:
    """What is judged before it is stored.

    text: what it says; None for a record of fields without a text
    kind: the kind of its value, None for free JSON
    lesson: the type of a lesson, None for anything else
    known: the id of the entry that says the same, as it was looked up before; None without one
    """

    text: str | None
    kind: str | None = None
    lesson: str | None = None
    known: str | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines that no tool printed, unless a tool printed the first one."""
        given = [one for one in (self.text or "")[:LONGEST_READ].split("\n") if one.strip()]
        if not given or _is_printed(given[0]):
            return []
        return [one for one in given if not _is_printed(one)]

    @cached_property
    def talk(self) -> tuple[frozenset[str], list[Sentence]]:
        """The classes of its talk, and its statements."""
        found: set[str] = set()
        stated: list[Sentence] = []
        for one in sentences("\n".join(self.lines)):
            sentence = Sentence(one)
            name = next((rule for rule, test in _TALK.items() if test(sentence)), None)
            if name is None:
                stated.append(sentence)
            else:
                found.add(name)
        return frozenset(found), stated


def _is_printed(line: str) -> bool:
    """Whether a tool printed a line, by its form or by the share of signs that prose hardly has."""
    signs = sum(map(line.count, _SIGNS))
    return signs > _MOST_SIGNS * len(line) or words.NOISE_LINE.search(plain(line))


class Rule(NamedTuple):
    """A rule of worthiness.

    description: one sentence
    test: whether the rule decides about a candidate
    is_worthy: what it decides
    """

    name: str
    description: str
    test: Callable[[MemoryCandidate], bool]
    is_worthy: bool


def judge(candidate: MemoryCandidate) -> Verdict:
    """Returns the verdict of the first rule whose test holds."""
    for rule in RULES:
        if rule.test(candidate):
            return Verdict(rule.is_worthy, rule.name)
    raise LookupError("the last rule decides about every candidate")


def candidate_of(
    value: Mapping[str, Any], kind: str | None = None, known: str | None = None
) -> MemoryCandidate:
    """The candidate of a value; see `MemoryCandidate`."""
    text = next((said for one in _TEXTS if isinstance(said := value.get(one), str)), None)
    lesson = said if isinstance(said := value.get("type"), str) and said in _LESSONS else None
    return MemoryCandidate(text=text, kind=kind, lesson=lesson, known=known)


def is_own_statement(origin: Origin, value: Mapping[str, Any]) -> bool:
    """Whether a person said it: such a text is never refused."""
    return origin == "user" or value.get("role") in _PEOPLE


def _is_json(candidate: MemoryCandidate) -> bool:
    text = (candidate.text or "").strip()
    if text[:1] not in {"{", "["} or text[-1:] not in {"}", "]"}:
        return False
    try:
        _decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_evident(one: Sentence) -> bool:
    """Whether a sentence has words of a durable statement, whatever else it says."""
    return words.DURABLE.search(one.text) or words.STATED.search(one.text)


def _is_question(one: Sentence) -> bool:
    asks = one.text.rstrip(" \"')").endswith(QUESTION_MARKS)
    asks = asks or words.QUESTION_END.search(one.text) or words.REQUEST.search(one.text)
    return asks and not words.STATED.search(one.text)


def _is_transient(one: Sentence) -> bool:
    if words.TRANSIENT.search(one.text):
        return True
    has_value = one.carried.numbers or one.carried.identifiers
    return words.TODAY.search(one.text) and not (has_value or _is_learned(one) or _is_decided(one))


def _is_progress(one: Sentence) -> bool:
    return words.PROGRESS.search(one.text) and not _is_learned(one)


def _is_social(one: Sentence) -> bool:
    if cues.CHITCHAT.search(one.text):
        return True
    if one.carried.numbers or one.carried.identifiers:
        return False
    is_social = words.SOCIAL.search(one.text) or cues.POLITENESS.search(one.text)
    if is_social and _length(one) <= _LEAST_WORDS + 1 and not one.carried.values:
        return True
    if _is_evident(one) or _is_learned(one) or _is_decided(one):
        return False
    return is_social or (one.text.endswith(("!", "！")) and len(one.text) <= _SHORT)


_TALK: Final[dict[str, Callable[[Sentence], bool]]] = {
    "question": _is_question,
    "hypothetical": lambda one: words.HYPOTHETICAL.search(one.text),
    "transient": _is_transient,
    "progress": _is_progress,
    "small_talk": _is_social,
}
"""The classes of sentences that state nothing durable, by the first test that holds."""


def _is_learned(one: Sentence) -> bool:
    return words.LEARNED.search(one.text) or cues.CORRECTION.search(one.text)


def _is_decided(one: Sentence) -> bool:
    return cues.DECISION.search(one.text) or words.DECIDED.search(one.text)


def _is_constraint(one: Sentence) -> bool:
    if cues.CONSTRAINT.search(one.text):
        return True
    is_denied = cues.NEGATION.search(one.text) and not cues.IDLE_NEGATION.search(one.text)
    return is_denied and _length(one) >= _LEAST_WORDS


def _is_fact(one: Sentence) -> bool:
    return _is_evident(one) or bool(one.carried.values)


def _stands_alone(one: Sentence) -> bool:
    """Whether a sentence says something to a reader who knows nothing else."""
    if words.CONTEXTUAL.search(one.text):
        return False
    return _length(one) >= _LEAST_WORDS - bool(words.COPULA.search(one.text))


def _length(one: Sentence) -> float:
    """The number of words."""
    return len(_WITHOUT_SPACES.findall(one.text)) / 2 + len(one.text.split())


def _states(test: Callable[[Sentence], bool]) -> Callable[[MemoryCandidate], bool]:
    return lambda candidate: any(map(test, candidate.talk[1]))


def _only(name: str) -> Callable[[MemoryCandidate], bool]:
    return lambda candidate: not candidate.talk[1] and name in candidate.talk[0]


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        DUPLICATE,
        "Memory that the caller may read says the same already.",
        lambda candidate: candidate.known is not None,
        is_worthy=False,
    ),
    Rule(
        "lesson",
        "It is a correction, a rejected document, the resolution of an escalation, or a success.",
        lambda candidate: candidate.lesson is not None,
        is_worthy=True,
    ),
    Rule(
        RECORD,
        "It is a record of fields, or has a kind, which says what it is.",
        lambda candidate: candidate.text is None or candidate.kind is not None,
        is_worthy=True,
    ),
    Rule(
        "tool_output",
        "It is what a tool prints: JSON, a stack trace, a log, a listing, a program, a heartbeat.",
        lambda candidate: not candidate.lines or _is_json(candidate),
        is_worthy=False,
    ),
    Rule("learned", "It says what was wrong, or what solved it.", _states(_is_learned), True),
    Rule("decision", "It says what was decided.", _states(_is_decided), is_worthy=True),
    Rule(
        "procedure",
        "It says how something is done.",
        _states(lambda one: words.PROCEDURE.search(one.text)),
        is_worthy=True,
    ),
    Rule("constraint", "It says what must or may not be.", _states(_is_constraint), True),
    Rule("fact", "It states a fact, a preference or an identifier.", _states(_is_fact), True),
    Rule(
        "statement",
        "It says something that can be understood alone.",
        _states(_stands_alone),
        is_worthy=True,
    ),
    Rule("hypothetical", "It only guesses.", _only("hypothetical"), is_worthy=False),
    Rule("question", "It only asks.", _only("question"), is_worthy=False),
    Rule("transient", "It says what is over in a moment.", _only("transient"), is_worthy=False),
    Rule("progress", "It reports a step of the work.", _only("progress"), is_worthy=False),
    Rule(
        "small_talk",
        "It greets, thanks, agrees or chats.",
        _only("small_talk"),
        is_worthy=False,
    ),
    Rule("no_statement", "It states nothing that lasts.", lambda _: True, is_worthy=False),
)
"""The rules, of which the first one that holds decides."""
