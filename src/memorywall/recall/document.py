"""Documents: the text of an entry, and the fields that filters and signals need.

Only entries that are not sealed become documents. Documents exist only in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import IntEnum
from typing import Any, Final
from unicodedata import normalize

import msgspec

from memorywall.kinds import registry as kinds
from memorywall.kinds.facts import FACT
from memorywall.kinds.sessions import TURN
from memorywall.recall.languages import ENGLISH, language_of
from memorywall.recall.names import aliases_of, nodes_of
from memorywall.recall.outcomes import outcome_of
from memorywall.recall.passages import LONGEST, cut, texts_of
from memorywall.records.entry import (
    SEALED_SENSITIVITIES,
    Authority,
    Entry,
    authority_of,
    origin_of,
)
from memorywall.records.recall import EntryOutcome, Highlight
from memorywall.records.tier import Tier
from memorywall.records.validity import VALID_FROM, VALID_UNTIL, Validity, validity_of
from memorywall.records.words import QUESTION_MARKS
from memorywall.settings import Settings

CURATED: Final = 1.0
"""The trust in an entry that a user wrote to a namespace."""
VERIFIED: Final = 0.8
"""The trust in an entry that a person or the validator of its namespace confirmed."""
LEARNED: Final = 0.6
"""The trust in an entry that an agent wrote."""
INFERRED: Final = 0.4
"""The trust in an entry that an agent derived from other entries."""

_TRUST: dict[Authority, float] = {
    "human_curated": CURATED,
    "verified": VERIFIED,
    "agent_learned": LEARNED,
    "inferred": INFERRED,
}


def trust_of(entry: Entry, value: dict[str, Any]) -> float:
    """The trust from 0 to 1: that of its authority, multiplied by the `confidence` of the value."""
    return _TRUST[authority_of(entry.provenance)] * confidence_of(value)


def confidence_of(value: dict[str, Any]) -> float:
    """The `confidence` of a value; 1 without a number from 0 to 1."""
    confidence = value.get("confidence")
    if isinstance(confidence, int | float) and not isinstance(confidence, bool):
        return float(confidence) if 0 <= confidence <= 1 else 1.0
    return 1.0


_decode = msgspec.json.Decoder(dict[str, Any]).decode
_PLAIN = frozenset({"text", "content", "message", "body", "summary", "fact", "note", "description"})
"""Names of fields that say nothing about their text; other names describe the text."""
_ASIDE = frozenset({"caption", "alt", "transcript"})
"""Fields about something beside the text, such as a picture."""
_LANGUAGES = ("language", "lang")
"""Fields that name the language of the value."""
_READ_FOR_LANGUAGE = 1_000
_MONTH_OR_YEAR = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_TITLES = ("title", "heading", "subject", "name")
"""Fields whose text stands above each passage of the value."""
_LONGEST_TITLE = 120
_DATED_BY = {FACT.name: VALID_FROM, TURN.name: "said_at"}
"""The fields by which kinds are dated: a fact by the instant from which it holds, a turn by that at
which it was said."""
_SAID_OF_IT = frozenset({"role", "confidence", VALID_FROM, VALID_UNTIL, *_LANGUAGES})
"""Fields with metadata, whose words are not searched."""
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "model"})
_ROLES = _ASSISTANTS | {"user", "human", "system", "developer", "tool", "function"}
"""The names of participants in a chat that does not name them."""
_SYMBOLS = "(){}[]=_;<>"
_SYMBOLS_OF_CODE = 0.04
_KINDS = frozenset({"type", "kind", "outcome"})
"""Fields that name the kind of an entry, like tags."""
IN_ORDER = frozenset({Tier.WORKING, Tier.SESSION, Tier.EPISODIC})
"""Tiers whose entries form a sequence, in which neighbours are related. The entries of other tiers
are a set, such as the facts of a namespace."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorDateFields:
    """The names of the fields with the author and the date of a value."""

    author: str = "author"
    date: str = "date"

    @classmethod
    def of(cls, settings: Settings) -> AuthorDateFields:
        """The fields that the settings name."""
        return cls(author=settings.recall_author_field, date=settings.recall_date_field)


DEFAULT_FIELDS = AuthorDateFields()


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The searchable fields of an entry.

    author: the author in lower case; the writing agent if the value names no author
    is_named: whether the value names an author, which a role such as `user` does not
    role: the role of the author in a chat, None if the value gives no role
    language: of its text, by ISO 639-1; see `recall.languages`
    moment: the date of the value, or the instant of the write, in milliseconds since the epoch
    day: the same as a date
    is_dated: whether the value gives the date
    date_unit: `day`, or `month` or `year` for a date of which nothing else is known; `moment` and
        `day` are the beginning of it
    aliases: all names of the thing that the value describes, if it has several; see `recall.names`
    nodes: the things that the entry links
    outcome: None if the value reports no outcome
    trust: from 0 to 1; see `recall.trust`
    validity: that of the value
    """

    entry_id: str
    version: int
    tier: Tier
    namespace: str
    agent_id: str
    task_id: str | None
    intent_id: str | None
    session_id: str | None
    tags: tuple[str, ...]
    pinned: bool
    created_at: str
    updated_at: str
    expires_at: str | None
    author: str
    is_named: bool
    moment: int
    day: date
    outcome: EntryOutcome | None
    trust: float
    validity: Validity = Validity()
    kind: str | None = None
    status: str | None = None
    state: str = "live"
    listed: bool = True
    subjects: tuple[str, ...] = ()
    origin: str = ""
    source: str | None = None
    role: str | None = None
    language: str = ENGLISH
    is_dated: bool = False
    date_unit: str = "day"
    aliases: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def is_searched_always(self) -> bool:
        """Whether a search shows it whatever the search asks for."""
        return self.state == "live" and self.listed and self.validity == Validity()

    @property
    def note_day(self) -> date | None:
        """The day of a note: it is in no thread, and its value gives a date; else None."""
        return self.day if self.is_dated and self.tier not in IN_ORDER else None

    @property
    def thread(self) -> tuple[str, ...] | None:
        """Its session in its namespace, in tiers with sequences; None otherwise."""
        if self.tier not in IN_ORDER:
            return None
        return (self.tier, self.namespace, self.session_id or "")


class Standing(IntEnum):
    """The role of a text in its conversation, as far as the role changes its score."""

    PLAIN = 0
    QUESTION = 1
    """A question of one named person to another: the answer stands beside it."""
    ASSISTANT = 2
    """A message of an assistant: what is remembered of a chat is mostly what the person said."""


class Text(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The texts of a document.

    own: the text of its value
    label: its key, its tags and the names of its fields
    meaning: the text to embed
    asks: whether its text ends with a question
    """

    own: str
    label: str
    meaning: str
    asks: bool

    def standing(self, document: Document) -> Standing:
        """The role of the passage in the conversation of its document."""
        if document.role in _ASSISTANTS:
            return Standing.ASSISTANT
        is_among_people = document.is_named and document.thread is not None
        return Standing.QUESTION if self.asks and is_among_people else Standing.PLAIN

    def is_code(self) -> bool:
        """Whether it is a program, by the share of its characters that prose hardly uses."""
        return sum(map(self.own.count, _SYMBOLS)) > _SYMBOLS_OF_CODE * len(self.own)


def is_searchable(entry: Entry) -> bool:
    """Whether an entry may enter an index."""
    if entry.sealing_key is not None or entry.sensitivity in SEALED_SENSITIVITIES:
        return False
    return is_searched(entry.kind)


def is_searched(kind: str | None) -> bool:
    """Whether entries of a kind, or of none, are searched."""
    spec = kinds.spec_of(kind)
    return spec is None or spec.is_searchable


def read(entry: Entry, fields: AuthorDateFields = DEFAULT_FIELDS) -> tuple[Document, Text]:
    """The document and the texts of a searchable entry."""
    value = _decode(entry.value)
    given, unit = _date(value.get(_DATED_BY.get(entry.kind or "", fields.date)))
    said = given or datetime.fromisoformat(entry.created_at)
    scope = entry.scope
    author, role = _author_and_role(value, fields)
    text = _text(entry, value, fields)
    document = Document(
        entry_id=entry.id,
        version=entry.version,
        tier=entry.tier,
        namespace=entry.namespace,
        agent_id=entry.agent_id,
        task_id=scope.task_id,
        intent_id=scope.intent_id,
        session_id=scope.session_id,
        tags=entry.tags,
        pinned=entry.pinned,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        expires_at=entry.expires_at,
        author=author or entry.agent_id.lower(),
        is_named=bool(author.strip()),
        moment=int(said.timestamp() * 1000),
        day=said.date(),
        outcome=outcome_of(value, entry.kind),
        trust=trust_of(entry, value),
        validity=validity_of(value),
        kind=entry.kind,
        status=entry.status,
        state=entry.state,
        listed=entry.listed,
        subjects=entry.subjects,
        origin=origin_of(entry.provenance),
        source=entry.provenance.source,
        role=role,
        language=_language_of(text.own, value),
        is_dated=given is not None,
        date_unit=unit,
        aliases=aliases_of(value),
        nodes=nodes_of(entry, value),
    )
    return document, text


def _language_of(text: str, value: dict[str, Any]) -> str:
    declared = next((value[name] for name in _LANGUAGES if name in value), None)
    return language_of(normalize("NFC", text[:_READ_FOR_LANGUAGE]).lower().split(), declared)


def _author_and_role(value: dict[str, Any], fields: AuthorDateFields) -> tuple[str, str | None]:
    """The named author and the role, in lower case; an author that is a role is no name."""
    author, role = (
        normalize("NFC", said).lower() if isinstance(said := value.get(name), str) else ""
        for name in (fields.author, "role")
    )
    if author in _ROLES:
        author, role = "", author
    return author, role if role in _ROLES else None


def meanings_of(entry: Entry, fields: AuthorDateFields = DEFAULT_FIELDS) -> list[str]:
    """The texts of an entry to embed: the whole, and the passages of a long one."""
    value = _decode(entry.value)
    titles = (value.get(name) for name in _TITLES)
    title = next((said for said in titles if isinstance(said, str) and said.strip()), "")
    return texts_of(_text(entry, value, fields).meaning, title[:_LONGEST_TITLE])


def own_text(entry: Entry, fields: AuthorDateFields = DEFAULT_FIELDS) -> str:
    """The text of the value of an entry."""
    return _text(entry, _decode(entry.value), fields).own


def meaning_of(
    entry: Entry, value: dict[str, Any], fields: AuthorDateFields = DEFAULT_FIELDS
) -> str:
    """The text of a value that is embedded if the entry has this value."""
    return _text(entry, value, fields).meaning


def highlight_in(
    entry: Entry, fields: AuthorDateFields, choose: Callable[[list[str]], int]
) -> Highlight | None:
    """The passage of a long text that a search shows; None for a text that is not cut.

    choose: the place of the passage among these texts
    """
    if len(entry.value) <= LONGEST:
        return None
    value = _decode(entry.value)
    text = _text(entry, value, fields).meaning
    passages = cut(text)
    if not passages:
        return None
    start, end, _ = passages[choose([text[one.start : one.end] for one in passages])]
    said = text[start:end].strip()
    for name, leaf in _leaves(value, ""):
        if (place := leaf.find(said)) >= 0:
            return Highlight(name, place, place + len(said), said)
    return Highlight(None, start, end, said)


def _text(entry: Entry, value: dict[str, Any], fields: AuthorDateFields) -> Text:
    if (said := kinds.text_of(entry.kind, entry.kind_version, value)) is not None:
        label = _spoken(" ".join((entry.key, *entry.tags)))
        return Text(own=said, label=label, meaning=said, asks=_is_question(said))
    own, names, meaning = [], [], []
    asks = False
    for name, leaf in _leaves(value, ""):
        if name in (fields.author, fields.date) or name in _SAID_OF_IT:
            continue
        if name in _KINDS:
            names.append(leaf)
            continue
        own.append(leaf)
        if name in _ASIDE:
            meaning.append(f"[{leaf}]")
            continue
        asks = _is_question(leaf)
        if name in _PLAIN or not name:
            meaning.append(leaf)
        else:
            names.append(name)
            meaning.append(f"{_spoken(name)}: {leaf}")
    label = " ".join((entry.key, *entry.tags, *names))
    return Text(own="\n".join(own), label=_spoken(label), meaning=" ".join(meaning), asks=asks)


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(QUESTION_MARKS)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """All texts and numbers of a value, in order, with the names of their fields."""
    # No recursion, because the writer chooses the depth of a value.
    waiting: list[tuple[str, Any]] = [(name, value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            if value:
                yield name, value
        elif isinstance(value, dict):
            waiting.extend(reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((name, part) for part in reversed(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, str(value)


def _spoken(name: str) -> str:
    """A name as separate words."""
    return name.replace("_", " ").replace("-", " ").replace("/", " ").replace(".", " ")


def _date(given: object) -> tuple[datetime | None, str]:
    """The date of a value and its unit; None if it is not ISO 8601. It may be a month or a year."""
    text = str(given).upper() if isinstance(given, str | int) else ""
    unit = "day"
    if (part := _MONTH_OR_YEAR.fullmatch(text)) is not None:
        unit = "year" if part[2] is None else "month"
        text = f"{part[1]}-{part[2] or '01'}-01"
    elif not isinstance(given, str):
        return None, unit
    try:
        said = datetime.fromisoformat(text)
        said = said if said.tzinfo is not None else said.replace(tzinfo=UTC)
        # An instant near the limits of the calendar may be outside of them in UTC.
        said.timestamp()
    except (ValueError, OverflowError):
        return None, "day"
    return said, unit
