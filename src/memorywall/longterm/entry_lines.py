"""The text of an entry for people and models: what contexts and profiles show of it."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.kinds import registry
from memorywall.kinds.episodes import Episode, inner_text, line_of_episode, plain_text
from memorywall.kinds.facts import Fact
from memorywall.kinds.lessons import Lesson
from memorywall.recall.augment_query import guidance_of
from memorywall.records.entry import Entry
from memorywall.records.recall import GuidanceKind

_TEXTS = ("text", "content", "fact", "summary", "message", "note", "body")
_DAY = 10
"""The characters of a date at the beginning of an instant."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def text_of(entry: Entry) -> str:
    """Returns the text of an entry, with its value in clear text. An episode, a fact and a lesson
    have a line each."""
    value = _decode(entry.value)
    known = registry.read(entry.kind, entry.kind_version, value)
    if isinstance(known, Episode):
        return line_of_episode(known)
    if isinstance(known, Lesson) and (line := guidance_of(GuidanceKind(known.type), known)):
        return line
    if isinstance(known, Fact):
        return _line_of_fact(known)
    if known is not None and entry.kind in registry.KINDS:
        text = registry.KINDS[entry.kind].text(known)
        if text is not None:
            return text
    if len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str):
            return only
    lead = next((name for name in _TEXTS if isinstance(value.get(name), str)), None)
    rest = [f"{name}: {inner_text(part)}" for name, part in value.items() if name != lead]
    return "; ".join(rest if lead is None else [str(value[lead]), *rest])


def _line_of_fact(fact: Fact) -> str:
    line = " ".join(
        (fact.subject_name, fact.relation.replace("_", " "), plain_text(fact.object_name))
    )
    if fact.attributes:
        line += f"; {plain_text(fact.attributes)}"
    limits = [
        f"{word} {instant[:_DAY]}"
        for word, instant in (("since", fact.valid_from), ("until", fact.valid_until))
        if instant
    ]
    return f"{line} ({', '.join(limits)})" if limits else line
