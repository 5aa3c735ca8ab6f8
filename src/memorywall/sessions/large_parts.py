"""Turns that are larger than an entry: their large parts go to attachments of the turn.

In the place of a part is a text: the beginning of what the part says, and the path of its content
in the API. So contexts, summaries and lists are as short as for other turns, and whoever wants a
part as it was sent asks for it. The attachments belong to the entry of the turn, so they are
sealed, copied, verified and erased like every attachment, and go with the turn.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from memorywall.coordination.attachment_content import attach_content, load_content
from memorywall.kinds.content_parts import Content, part_text
from memorywall.kinds.sessions import MovedPart, Turn
from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.errors import KeyUnavailableError
from memorywall.service.requests.operation_context import OperationContext

_encode = msgspec.json.Encoder().encode
_LEAST = 2_048
"""The least bytes of a part that is moved."""
_STAYING = 16_384
"""The bytes that parts which are not moved may have, if some are."""
_SEARCHED = 24_000
"""The bytes of moved text that searches find besides the beginnings."""
_BEGINNINGS, _LONGEST_BEGINNING = 16_000, 2_000
"""The characters of the beginnings of all moved texts, and of each."""
_DATA_URL, _BASE64 = "data:", ";base64,"


class _MovedContent(NamedTuple):
    """The content of a part as bytes of a type; see `MovedPart` for the other fields."""

    content: bytes
    mime_type: str
    part: dict[str, Any] | None = None
    path: tuple[str, ...] = ()
    prefix: str = ""


async def move_large_parts(
    context: OperationContext, entry_id: str, owner: str, turn: Turn, field: str
) -> Turn:
    """Returns a turn as its entry has it, and stores its large parts as attachments of the entry. A
    turn that fits into an entry stays as it is.

    owner: the agent with whose data key the attachments are sealed
    field: the name of the content in messages
    Raises ValueTooLargeError.
    """
    size = len(_encode(turn))
    if size <= VALUE_LIMIT:
        return turn
    is_text = isinstance(turn.content, str)
    parts = [{"type": "text", "text": turn.content}] if is_text else [*turn.content]
    places = _choose([len(_encode(part)) for part in parts])
    if not places:
        return turn
    longest = min(_LONGEST_BEGINNING, _BEGINNINGS // len(places))
    moved: list[MovedPart] = []
    rests: list[str] = []
    for at in places:
        part = parts[at]
        content = _content_of(part)
        attachment = await attach_content(
            context, entry_id, owner, field, content.content, content.mime_type
        )
        one = MovedPart(
            at=None if is_text else at,
            uri=f"/api/v1/memory/{entry_id}/attachments/{attachment}/content",
            attachment_id=attachment,
            size=len(content.content),
            mime_type=content.mime_type,
            part=content.part,
            path=content.path,
            prefix=content.prefix,
        )
        moved.append(one)
        text = part_text(part)
        rests.append(text[longest:])
        parts[at] = {"type": "text", "text": _reference(one, text[:longest], len(text))}
    return replace(
        turn,
        content=parts[0]["text"] if is_text else parts,
        moved=tuple(moved),
        searched=_cut("\n".join(rest for rest in rests if rest)),
        digest=digest_of(turn.content),
    )


async def restore_turn(context: OperationContext, turn: Turn) -> Turn:
    """Returns a turn as it was sent. Raises KeyUnavailableError."""
    if not turn.moved:
        return turn
    content = await _load_whole(context, turn)
    return replace(turn, content=content, moved=(), searched="", digest=None)


async def _load_whole(context: OperationContext, turn: Turn) -> Content:
    """Returns the content of a turn with its large parts as they were sent. Raises
    KeyUnavailableError."""
    content: Any = turn.content
    parts = [] if isinstance(content, str) else [*content]
    for one in turn.moved:
        attachment = await context.transaction.attachments.get(one.attachment_id)
        if attachment is None:
            raise KeyUnavailableError("an attachment of the turn is missing")
        whole = _part_of(one, await load_content(context, attachment))
        if one.at is None:
            return str(whole["text"])
        parts[one.at] = whole
    return parts if turn.moved else turn.content


def digest_of(content: Content) -> str:
    """Returns a digest by which the content of a repeated request is compared."""
    return hashlib.sha256(_encode(content)).hexdigest()


def _choose(sizes: list[int]) -> list[int]:
    """Returns the places of the parts to move, the largest ones, in order."""
    left, chosen = sum(sizes), []
    for at in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        if left <= _STAYING or sizes[at] < _LEAST:
            break
        left -= sizes[at]
        chosen.append(at)
    return sorted(chosen)


def _reference(moved: MovedPart, beginning: str, length: int) -> str:
    """Returns the text in the place of a part."""
    about = f"{moved.mime_type}, {moved.size} bytes"
    if length > len(beginning):
        about = f"{length - len(beginning)} more characters of {about}"
    return f"{beginning}\n[{about}: {moved.uri}]".lstrip()


def _cut(text: str) -> str:
    return text.encode()[:_SEARCHED].decode(errors="ignore")


def _content_of(part: Mapping[str, Any]) -> _MovedContent:
    if part.keys() == {"type", "text"} and part["type"] == "text":
        return _MovedContent(part["text"].encode(), "text/plain")
    for path, holder, text in _strings(part):
        prefix, mime_type, data = _media(path, holder, text)
        content = _decoded(data)
        if content is not None:
            return _MovedContent(content, mime_type, _with(part, path, ""), path, prefix)
    return _MovedContent(_encode(part), "application/json")


def _part_of(moved: MovedPart, content: bytes) -> dict[str, Any]:
    if moved.part is not None:
        data = moved.prefix + b64encode(content).decode()
        return _with(moved.part, moved.path, data)
    if moved.mime_type == "text/plain":
        return {"type": "text", "text": content.decode()}
    whole: dict[str, Any] = msgspec.json.decode(content)
    return whole


def _strings(
    holder: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any], str]]:
    """Yields the large strings of a part that is nested as providers do it, with their paths and
    the objects that have them."""
    for name, value in holder.items():
        path = (*above, name)
        if isinstance(value, str) and len(value) >= _LEAST:
            yield path, holder, value
        elif isinstance(value, Mapping) and len(path) < 4:
            yield from _strings(value, path)


def _media(path: tuple[str, ...], holder: Mapping[str, Any], text: str) -> tuple[str, str, str]:
    """Returns the prefix, the type and the base64 of a string; no base64 for one that is none."""
    if text.startswith(_DATA_URL) and _BASE64 in text[:200]:
        head, _, data = text.partition(_BASE64)
        return head + _BASE64, head.removeprefix(_DATA_URL) or "application/octet-stream", data
    if path[-1] in ("data", "file_data"):
        given = holder.get("media_type") or holder.get("mime_type")
        return "", given if isinstance(given, str) else "application/octet-stream", text
    return "", "", ""


def _decoded(data: str) -> bytes | None:
    """Returns the bytes of base64 that encodes to the same text again; None for other text."""
    try:
        content = b64decode(data, validate=True)
    except ValueError:
        return None
    return content if content and b64encode(content).decode() == data else None


def _with(part: Mapping[str, Any], path: tuple[str, ...], data: str) -> dict[str, Any]:
    """Returns a part with data at a path."""
    name, *below = path
    inner: Any = data if not below else _with(part[name], tuple(below), data)
    return {**part, name: inner}
