"""The text in content parts of turns, and their tokens.

Providers define many types of parts and add further ones, so every part is read the same way: a
string in it is text, a medium such as an image, or technical, such as an id or a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

PART_TOKENS = 1_000
"""The assumed tokens of an image or another medium in a content part."""
Content = str | list[dict[str, Any]]

_Meaning = Literal["text", "thinking", "medium", "technical"]
_TECHNICAL = frozenset({
    "type", "id", "tool_use_id", "call_id", "status", "signature", "encrypted_content",
    "encrypted_index", "media_type", "mime_type", "cache_control", "detail", "format", "data",
    "url", "file_type",
})  # fmt: skip
"""The names of fields that say nothing to a reader."""
_MEDIA = frozenset({"image_url", "file_id", "file_url", "file_data"})
_HOLDERS = frozenset({"input_audio", "audio", "source"})
"""The names of objects whose `data` is a medium."""
_THINKING = frozenset({"thinking", "reasoning"})
_PLAIN = frozenset({"type", "text"})


def content_text(content: Content) -> str:
    """Returns all text of a turn's content, that of thinking included, one part a line."""
    return _join_parts(content, ("text", "thinking"))


def spoken_text(content: Content) -> str:
    """Returns the text of a turn's content that others see, one part a line."""
    return _join_parts(content, ("text",))


def count_content(content: Content, count: Callable[[str], int]) -> int:
    """Returns the number of tokens of a content, by a counter of texts."""
    return count(spoken_text(content)) + count_unspoken(content, count)


def count_unspoken(content: Content, count: Callable[[str], int]) -> int:
    """Returns the number of tokens of what is in a content beside its spoken text."""
    if isinstance(content, str):
        return 0
    tokens = 0
    for part in content:
        if part.keys() == _PLAIN:
            continue
        found: dict[_Meaning, list[str]] = {}
        for meaning, text in _strings(part):
            found.setdefault(meaning, []).append(text)
        is_silent = found.keys().isdisjoint(("text", "thinking"))
        media = len(found.get("medium", ())) or int(is_silent)
        tokens += PART_TOKENS * media
        technical = () if "medium" in found else found.get("technical", ())
        tokens += count(" ".join((*found.get("thinking", ()), *technical)))
    return tokens


def part_text(part: Mapping[str, Any]) -> str:
    """Returns the spoken text of one part."""
    return "\n".join(text for meaning, text in _strings(part) if meaning == "text")


def _join_parts(content: Content, wanted: Sequence[_Meaning]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        text for part in content for meaning, text in _strings(part) if meaning in wanted
    )


def _strings(part: Mapping[str, Any]) -> Iterator[tuple[_Meaning, str]]:
    """Yields what a part holds, in order, with its meaning. Numbers and names of fields are
    technical: they take tokens."""
    if part.keys() == _PLAIN and isinstance(text := part["text"], str):
        # Most parts are such, and a compilation reads them many times.
        if text:
            yield "text", text
        return
    spoken: _Meaning = "thinking" if part.get("type") in _THINKING else "text"
    # A part may be nested deeper than functions may call each other.
    waiting: list[tuple[tuple[str, str], Mapping[str, Any], Any]] = [(("", ""), part, part)]
    while waiting:
        names, holder, value = waiting.pop()
        if isinstance(value, Mapping):
            fields = [((names[1], one), value, inner) for one, inner in value.items()]
            waiting += reversed(fields)
            if value is not part:
                yield "technical", " ".join(value)
        elif isinstance(value, (list, tuple)):
            waiting += [(names, holder, inner) for inner in reversed(value)]
        elif isinstance(value, str):
            if value:
                yield _meaning(names, holder, value, spoken), value
        elif value is not None:
            yield "technical", str(value)


def _meaning(
    names: tuple[str, str], holder: Mapping[str, Any], value: str, spoken: _Meaning
) -> _Meaning:
    """Returns what a string is.

    names: those of the field that has it, and of the field around that one
    holder: the object that has it
    """
    outer, own = names
    kind = holder.get("type")
    if own in _MEDIA or (value.startswith("data:") and ";base64," in value[:200]):
        return "medium"
    if own == "data" and kind == "text":
        return spoken
    if own == "data":
        return "medium" if kind == "base64" or outer in _HOLDERS else "technical"
    if own == "url" and (kind == "url" or outer == "image_url"):
        return "medium"
    return "technical" if own in _TECHNICAL else spoken
