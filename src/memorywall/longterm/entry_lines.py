"""The text of an entry for people and models: what contexts and profiles show of it."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.kinds import registry
from memorywall.kinds.episodes import inner_text
from memorywall.kinds.lessons import Lesson
from memorywall.recall.augment_query import guidance_of
from memorywall.records.entry import Entry
from memorywall.records.recall import GuidanceKind

_TEXTS = ("text", "content", "fact", "summary", "message", "note", "body")
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def text_of(entry: Entry) -> str:
    """Returns the text of an entry, with its value in clear text. An episode, a fact and a lesson
    have a line each."""
    value = _decode(entry.value)
    known = registry.read(entry.kind, entry.kind_version, value)
    if isinstance(known, Lesson) and (line := guidance_of(GuidanceKind(known.type), known)):
        return line
    spec = registry.spec_of(entry.kind)
    if spec is not None and known is not None and (shown := spec.show(known)) is not None:
        return shown
    if len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str):
            return only
    lead = next((name for name in _TEXTS if isinstance(value.get(name), str)), None)
    rest = [f"{name}: {inner_text(part)}" for name, part in value.items() if name != lead]
    return "; ".join(rest if lead is None else [str(value[lead]), *rest])
