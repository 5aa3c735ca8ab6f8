"""Parses conversations in files of chat programs and data sets.

The content of a file determines its form: JSON Lines of messages or of conversations, a JSON array
of either, one conversation, or LoCoMo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from memorywall.cli.chat_dates import read_date
from memorywall.records.errors import ConfigurationError

_TEXT = ("content", "text")
_AUTHOR = ("author", "name", "speaker")
_DATE = ("timestamp", "date", "created_at")
_SESSION = ("session", "session_id", "conversation_id", "thread_id")
_ID = ("id", "message_id", "dia_id")
_CAPTION = ("caption", "blip_caption")
_CALLS = "tool_calls"
_READ_FIELDS = frozenset(
    (*_TEXT, *_AUTHOR, *_DATE, *_SESSION, *_ID, *_CAPTION, _CALLS, "role", "type")
)
_LOCOMO_SESSION = re.compile(r"session_(\d+)", re.ASCII)
_DIGITS = 6
"""Digits of the number of a message without an id; the same for a short file, which may grow."""
_WHOLE = "the file"
_MARK = b"\xef\xbb\xbf"
_BYTE = re.compile(r"\(byte (\d+)\)")

MessageFields = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation.

    place: the position in the file, as text
    chat: the name of the chat
    session: the session of the message
    key: the key of the message in its chat
    value: `text`, and `author`, `date`, `role` and `caption` if present
    left_out: the names of other fields
    """

    place: str
    chat: str
    session: str
    key: str
    value: MessageFields
    left_out: tuple[str, ...] = ()


class _Around(NamedTuple):
    """The container of a message, with defaults for the message.

    before_id, before_number: prefixes of keys, because ids or numbers of messages in different
        sessions may be equal
    """

    chat: str
    session: str
    before_id: str = ""
    before_number: str = ""
    date: Any = None


def read_chats(content: bytes, name: str) -> list[Message]:
    """All messages of a file, in order.

    name: the default name of the chat and of its session
    Raises ConfigurationError with the position of the first error.
    """
    content = content.removeprefix(_MARK)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise _fault(f"line {_line_at(content, error.start)}", "it is not UTF-8") from None
    messages: list[Message] = []
    first: dict[tuple[str, str], str] = {}
    for number, (place, element) in enumerate(_elements(content), start=1):
        for message in _messages(element, place, name, number):
            before = first.setdefault((message.chat, message.key), message.place)
            if before != message.place:
                raise _fault(message.place, f"its id is that of {before}")
            messages.append(message)
    return messages


def _elements(content: bytes) -> Iterator[tuple[str, Any]]:
    """The top-level values of a file, each with its position."""
    lines = [(at, line) for at, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
    if not lines:
        return
    if lines[0][1].lstrip()[:1] == b"{" and _is_whole(lines[0][1]):
        for at, line in lines:
            yield f"line {at}", _decode(line, at)
        return
    # A syntax error in the first of many lines is reported for that line.
    in_lines = len(lines) > 1 and lines[1][1].lstrip()[:1] == b"{" and _is_whole(lines[1][1])
    document = _decode(content, lines[0][0] if in_lines else None)
    if isinstance(document, list):
        for number, element in enumerate(document, start=1):
            yield f"element {number}", element
    else:
        yield _WHOLE, document


def _is_whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _decode(text: bytes, line: int | None) -> Any:
    """The JSON value of a line, or of a whole file if `line` is None."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise _fault(f"line {line or 1}", "it is nested too deeply") from None
    except msgspec.DecodeError as error:
        if line is None:
            at = _BYTE.search(str(error))
            line = _line_at(text, int(at[1]) if at else len(text.rstrip()))
        raise _fault(f"line {line}", "it is not JSON") from None


def _line_at(text: bytes, position: int) -> int:
    return text[:position].count(b"\n") + 1


def _messages(element: Any, place: str, name: str, number: int) -> Iterator[Message]:
    """The messages of a top-level value.

    number: the position of the value in its file
    """
    if not isinstance(element, dict):
        raise _fault(place, "it is not a JSON object")
    numbered = name if place == _WHOLE else f"{name}-{number}"
    if isinstance(element.get("conversation"), dict):
        yield from _locomo(element, place, numbered)
    elif "messages" in element:
        session = _name_of(element, (*_SESSION, "id"), place) or numbered
        date = _first(element, _DATE)
        before = "" if place == _WHOLE else f"{session}/"
        around = _Around(name, session, before, before, date)
        yield from _read_messages(element["messages"], place, around)
    else:
        yield _message(element, place, _Around(name, name), number)


def _read_messages(messages: Any, place: str, around: _Around) -> Iterator[Message]:
    if not isinstance(messages, list):
        raise _fault(place, "its messages are not a list")
    for number, fields in enumerate(messages, start=1):
        at = f"{place}, message {number}"
        if not isinstance(fields, dict):
            raise _fault(at, "it is not a JSON object")
        yield _message(fields, at, around, number)


def _locomo(element: Mapping[str, Any], place: str, name: str) -> Iterator[Message]:
    """The sessions of one conversation of LoCoMo, by their numbers."""
    chat = _name_of(element, ("sample_id",), place) or name
    conversation = element["conversation"]
    numbers = [int(found[1]) for one in conversation if (found := _LOCOMO_SESSION.fullmatch(one))]
    if not numbers:
        raise _fault(place, "its conversation has no sessions")
    for number in sorted(numbers):
        session = f"session_{number}"
        around = _Around(
            chat,
            f"{chat}-{number}",
            before_number=f"{session}/",
            date=conversation.get(f"{session}_date_time"),
        )
        yield from _read_messages(conversation[session], f"{place}, {session}", around)


def _message(fields: Mapping[str, Any], place: str, around: _Around, number: int) -> Message:
    value: MessageFields = {"text": _text(fields, place)}
    for name, names in (("author", _AUTHOR), ("role", ("role",)), ("caption", _CAPTION)):
        text = _first(fields, names)
        if text is not None:
            if not isinstance(text, str):
                raise _fault(place, f"its {name} is not text")
            value[name] = text
    date = _first(fields, _DATE)
    date = around.date if date is None else date
    if date is not None:
        if isinstance(date, bool) or not isinstance(date, str | int | float):
            raise _fault(place, "its date is neither text nor a number")
        value["date"] = read_date(date)
    own = _name_of(fields, _ID, place)
    counted = f"{around.before_number}{number:0{_DIGITS}}"
    return Message(
        place=place,
        chat=around.chat,
        session=_name_of(fields, _SESSION, place) or around.session,
        key=counted if own is None else around.before_id + own,
        value=value,
        left_out=tuple(sorted(name for name in fields if name not in _READ_FIELDS)),
    )


def _text(fields: Mapping[str, Any], place: str) -> str:
    """The text of a message; parts that are not text are replaced by their names."""
    if not any(name in fields for name in _TEXT):
        raise _fault(place, "this is not a message: it has neither `content` nor `text`")
    content = _first(fields, _TEXT)
    parts = content if isinstance(content, list) else [] if content is None else [content]
    calls = fields.get(_CALLS)
    said = [_part(part, place) for part in parts]
    said += [_call(call) for call in (calls if isinstance(calls, list) else [])]
    return "\n".join(one for one in said if one)


def _part(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise _fault(place, "its content is neither text nor a list of parts")
    text = part.get("text")
    if isinstance(text, str):
        return text
    words = [one for one in (part.get("type"), part.get("name")) if isinstance(one, str)]
    return f"[{' '.join(words) or 'part'}]"


def _call(call: Any) -> str:
    """The name of a called tool; a message may have a tool call and no text."""
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return f"[tool_call {name}]" if isinstance(name, str) else "[tool_call]"


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first of the fields that has one."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _name_of(fields: Mapping[str, Any], names: tuple[str, ...], place: str) -> str | None:
    """An id, which may be a number."""
    found = _first(fields, names)
    if found is None or found == "":
        return None
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise _fault(place, f"its {names[0]} is neither text nor a number")
    return str(found)


def _fault(place: str, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{place}: {reason}; nothing is imported")
