"""What recall knows of an entry: the text it is found by, and what filters and signals need.

Only entries that are not sealed become documents, and documents are only ever held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from memorywall.recall.outcomes import outcome_of
from memorywall.recall.trust import trust_of
from memorywall.records.clock import parse_instant
from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.recall import Outcome
from memorywall.records.tier import Tier

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_PLAIN = frozenset({"text", "content", "message", "body", "summary", "fact", "note", "description"})
"""Names of fields that only say that there is text; others say what the text is about."""
_ASIDE = frozenset({"caption", "alt", "transcript"})
"""Fields that tell of something beside the text, such as a picture."""
_QUESTION_MARKS = ("?", "？", "؟")  # noqa: RUF001 - those of other scripts
_SAID_OF_IT = frozenset({"role", "confidence", "valid_from", "valid_until"})
"""Fields that say something of what is said, which nobody looks for by its words."""
_KINDS = frozenset({"type", "kind", "outcome"})
"""Fields that name the kind of an entry, as its tags do."""
IN_ORDER = frozenset({Tier.WORKING, Tier.SESSION, Tier.EPISODIC})
"""Tiers whose entries follow each other, so that one helps to understand the next. What the others
hold is a set: what was written next in a namespace of facts has nothing to do with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """Which fields of a value tell who said it and when."""

    author: str = "author"
    date: str = "date"


DEFAULT_FIELDS = Fields()


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry as recall sees it.

    thread: its session in its namespace, where entries follow each other; None elsewhere
    author: who said it, in lower case; the agent that wrote it, where nobody is named
    is_named: whether somebody is named
    moment: when it was said, or else written, in milliseconds
    day: the same as a date
    outcome: None where it tells of no outcome
    trust: how well it is founded, from 0 to 1
    valid_from, valid_until: when what it says holds, as far as it says so
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
    thread: tuple[str, ...] | None
    author: str
    is_named: bool
    moment: int
    day: date
    outcome: Outcome | None
    trust: float
    valid_from: str | None = None
    valid_until: str | None = None


class Text(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a document is found by.

    own: what it says
    label: what names it: its key, its tags and the names of its fields
    meaning: what is embedded
    asks: whether what it says ends with a question
    """

    own: str
    label: str
    meaning: str
    asks: bool


def is_searchable(entry: Entry) -> bool:
    """Whether an entry may enter an index at all."""
    return entry.sealing_key is None and entry.sensitivity not in SEALED_SENSITIVITIES


def read(entry: Entry, fields: Fields = DEFAULT_FIELDS) -> tuple[Document, Text]:
    """The document of an entry that is searchable."""
    value = _decode(entry.value)
    said = _said(value.get(fields.date), entry)
    scope = entry.scope
    author = value.get(fields.author)
    named = author.lower() if isinstance(author, str) else ""
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
        thread=(
            (entry.tier, entry.namespace, scope.session_id or "")
            if entry.tier in IN_ORDER
            else None
        ),
        author=named or entry.agent_id.lower(),
        is_named=bool(named.strip()),
        moment=int(said.timestamp() * 1000),
        day=said.date(),
        outcome=outcome_of(value),
        trust=trust_of(entry, value),
        valid_from=_instant(value.get("valid_from")),
        valid_until=_instant(value.get("valid_until")),
    )
    return document, _text(entry, value, fields)


def meaning_of(entry: Entry, fields: Fields = DEFAULT_FIELDS) -> str:
    """The text of an entry that is embedded."""
    return _text(entry, _decode(entry.value), fields).meaning


def _text(entry: Entry, value: dict[str, Any], fields: Fields) -> Text:
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
        asks = leaf.rstrip().endswith(_QUESTION_MARKS)
        if name in _PLAIN or not name:
            meaning.append(leaf)
        else:
            names.append(name)
            meaning.append(f"{_spoken(name)}: {leaf}")
    label = " ".join((entry.key, *entry.tags, *names))
    return Text(own="\n".join(own), label=_spoken(label), meaning=" ".join(meaning), asks=asks)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Every text and number in a value, in order, with the name of the field it stands in."""
    # No recursion: how deep a value is nested is the writer's choice.
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
    """A name as words: what parts them in names does not part them in texts."""
    return name.replace("_", " ").replace("-", " ").replace("/", " ").replace(".", " ")


def _said(text: object, entry: Entry) -> datetime:
    """When an entry was said; when it was written, where it does not say so in ISO 8601."""
    if isinstance(text, str):
        try:
            said = datetime.fromisoformat(text)
            said = said if said.tzinfo is not None else said.replace(tzinfo=UTC)
            # One so near the ends of the calendar may be in none of its years elsewhere.
            said.timestamp()
        except (ValueError, OverflowError):
            pass
        else:
            return said
    return datetime.fromisoformat(entry.created_at)


def _instant(text: object) -> str | None:
    """An instant in the form that is stored, or None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return parse_instant(text)
    except ValueError:
        return None
