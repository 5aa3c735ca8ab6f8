"""The text of an entry for people and models: what contexts and profiles show of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memorywall.kinds import registry
from memorywall.kinds.episodes import Episode, line_of_episode, plain_text
from memorywall.kinds.lessons import Lesson
from memorywall.recall.augment_query import guidance_of
from memorywall.records.entry import Entry
from memorywall.records.recall import GuidanceKind
from memorywall.records.validity import VALID_FROM, VALID_UNTIL

FACT: Final = "fact"
"""The kind of a fact: its value has `subject`, `relation` and `object`."""
_TEXTS = ("text", "content", "fact", "summary", "message", "note", "body")
_DAY = 10
"""The characters of a date at the beginning of an instant."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def text_of(entry: Entry) -> str:
    """Returns the text of an entry, with its value in clear text. An episode, a fact and a lesson
    have a line each."""
    value = _decode(entry.value)
    known = registry.read(entry.kind, entry.kind_version, value)
    if isinstance(known, Episode):
        return line_of_episode(known)
    if isinstance(known, Lesson) and (line := guidance_of(GuidanceKind(known.type), known)):
        return line
    if entry.kind == FACT:
        return _line_of_fact(value)
    if known is not None and entry.kind in registry.KINDS:
        text = registry.KINDS[entry.kind].text(known)
        if text is not None:
            return text
    if len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str):
            return only
    lead = next((name for name in _TEXTS if isinstance(value.get(name), str)), None)
    rest = [f"{name}: {_plain(part)}" for name, part in value.items() if name != lead]
    return "; ".join(rest if lead is None else [str(value[lead]), *rest])


def _line_of_fact(value: Mapping[str, Any]) -> str:
    said = " ".join(_end_of(value, part) for part in ("subject", "relation", "object"))
    if attributes := value.get("attributes"):
        said += f"; {plain_text(attributes)}"
    limits = [
        f"{word} {str(value[name])[:_DAY]}"
        for word, name in (("since", VALID_FROM), ("until", VALID_UNTIL))
        if value.get(name)
    ]
    return f"{said} ({', '.join(limits)})" if limits else said


def _end_of(value: Mapping[str, Any], part: str) -> str:
    """Returns the name of an end of a fact or its literal; without it, the id of its entity."""
    named = value.get(part)
    text = plain_text(value.get(f"{part}_id", "") if named is None else named)
    return text.replace("_", " ") if part == "relation" else text


def _plain(part: Any) -> str:
    return part if isinstance(part, str) else _encode(part).decode()
