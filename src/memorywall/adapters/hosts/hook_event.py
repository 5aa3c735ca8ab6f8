"""What a hook reads from its host: a prompt before it is sent, or the reply to one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from memorywall.adapters.hosts.host_formats import HostFormat
from memorywall.adapters.hosts.injected_text import without_injected
from memorywall.adapters.hosts.spool import SpooledTurn


@dataclass(frozen=True, kw_only=True, slots=True)
class HookEvent:
    """An event of a host.

    session: the host's id of the conversation
    prompt: the text of the user; None after a reply
    turn: what was said; None for nothing that can be kept
    """

    session: str
    prompt: str | None
    turn: SpooledTurn | None


def read_hook_event(host: HostFormat, given: Mapping[str, Any], now: str) -> HookEvent | None:
    """Returns the event that a hook has read; None for an event that is of no use here.

    now: an RFC 3339 instant
    """
    fields, name = host.fields, given.get("hook_event_name")
    is_prompt = name == host.events.prompt
    if not is_prompt and name != host.events.reply:
        return None
    session = _text(given, fields.session)
    said = _text(given, fields.prompt if is_prompt else fields.reply)
    if not session:
        return None
    text = without_injected(said)
    role = "user" if is_prompt else "assistant"
    turn = _text(given, fields.turn) or sha256(f"{now} {text}".encode()).hexdigest()[:32]
    client_id = turn_client_id(turn, role)
    if fields.is_repeated is not None and given.get(fields.is_repeated):
        client_id += f":{sha256(text.encode()).hexdigest()[:16]}"
    spooled = SpooledTurn(said_at=now, session=session, client_id=client_id, role=role, text=text)
    return HookEvent(
        session=session, prompt=text if is_prompt else None, turn=spooled if text else None
    )


def turn_client_id(turn: str, role: str) -> str:
    """Returns the client id of a prompt or a reply. Hooks and imported transcripts give the same
    one, so that an import adds what is missing only.

    turn: the host's id of the prompt
    """
    return f"{turn}:{role}"


def _text(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name)
    return found.strip() if isinstance(found, str) else ""
