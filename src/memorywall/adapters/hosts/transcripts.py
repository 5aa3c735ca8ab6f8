"""The conversations that hosts have stored, as turns.

Of each prompt the text of the user and the last text of the assistant are turns, as hooks keep
them; calls of tools, their results and what the host adds are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memorywall.adapters.hosts.hook_event import turn_client_id
from memorywall.adapters.hosts.host_formats import HostFormat, TranscriptFormat
from memorywall.adapters.hosts.injected_text import without_injected
from memorywall.adapters.hosts.spool import SpooledTurn
from memorywall.records.clock import format_instant, parse_instant

_ROLES = ("user", "assistant")
_ID_IN_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TEXT_PARTS = ("text", "input_text", "output_text")


def transcript_files(host: HostFormat) -> list[Path]:
    """Returns the files of all conversations of a host, oldest first."""
    found = host.folder.glob(host.transcript.files)
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path))


def read_transcript(form: TranscriptFormat, path: Path) -> list[SpooledTurn]:
    """Returns the turns of a stored conversation. Lines that are no messages are left out, also
    one that its host was killed within."""
    said = _id_of(path)
    changed = format_instant(path.stat().st_mtime_ns // 1_000_000)
    turns: dict[str, SpooledTurn] = {}
    turn, number = "", 0
    for line in _objects(path):
        turn = next((one for name in form.turn if (one := _at(line, name))), turn)
        text = _text_of(form, line)
        if text is None:
            continue
        role = str(_at(line, form.roles))
        if role == "user" and not form.turn:
            number += 1
            turn = f"turn-{number}"
        client_id = turn_client_id(turn, role)
        at = _instant(_at(line, form.date)) or changed
        if role == "assistant":
            # The last text replaces those that it wrote between calls of tools.
            turns.pop(client_id, None)
        elif (earlier := turns.get(client_id)) is not None:
            text, at = f"{earlier.text}\n{text}", earlier.said_at
        turns[client_id] = SpooledTurn(
            said_at=at,
            session=_at(line, form.session) or said,
            client_id=client_id,
            role=role,
            text=text,
        )
    return list(turns.values())


def _objects(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            try:
                found = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                continue
            if isinstance(found, dict):
                yield found


def _text_of(form: TranscriptFormat, line: Mapping[str, Any]) -> str | None:
    """Returns what the user or the assistant said in a line; None for another line."""
    if _at(line, form.roles) not in _ROLES or any(_at(line, one) for one in form.leave_out):
        return None
    if any(_at(line, name) != value for name, value in form.where.items()):
        return None
    content = _at(line, form.content)
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [
        one["text"]
        for one in parts
        if isinstance(one, dict)
        and one.get("type") in _TEXT_PARTS
        and isinstance(one.get("text"), str)
    ]
    text = without_injected("\n".join(one for one in texts if not one.startswith(form.prefixes)))
    for tag in form.tags:
        text = re.sub(rf"</?{tag}>", "", text)
    return text.strip() or None


def _at(line: Mapping[str, Any], name: str | None) -> Any:
    """Returns the value at a name with dots; None without one."""
    found: Any = line if name else None
    for one in (name or "").split("."):
        found = found.get(one) if isinstance(found, dict) else None
    return found


def _id_of(path: Path) -> str:
    """Returns the id of a conversation in the name of its file."""
    found = _ID_IN_NAME.search(path.stem)
    return found[0] if found else path.stem


def _instant(given: Any) -> str | None:
    try:
        return parse_instant(given) if isinstance(given, str) else None
    except ValueError:
        return None
