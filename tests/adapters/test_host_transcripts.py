"""Transcripts of hosts: prompts and last replies become turns, under the ids that hooks give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorywall.adapters.hosts.hook_event import read_hook_event
from memorywall.adapters.hosts.host_formats import host_formats
from memorywall.adapters.hosts.injected_text import without_injected
from memorywall.adapters.hosts.transcripts import read_transcript, transcript_files

NOW = "2026-11-26T10:00:00.000Z"
ID = "0b0c8f4e-7d5e-4c3a-9a53-0123456789ab"
RECALLED = "<memorywall-recall>\n- 2026-01-01: old\n</memorywall-recall>"


def _claude(kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    said = {"role": kind, "content": content}
    return {"type": kind, "message": said, "sessionId": ID, "timestamp": NOW, **fields}


def _codex(role: str, text: str, turn: str | None = None) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    payload: dict[str, Any] = {"type": "message", "role": role}
    payload["content"] = [{"type": kind, "text": text}]
    if turn is not None:
        payload["internal_chat_message_metadata_passthrough"] = {"turn_id": turn}
    return {"timestamp": NOW, "type": "response_item", "payload": payload}


def _cursor(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}


CLAUDE: list[Any] = [
    {"type": "summary", "summary": "x"},
    _claude("user", "Use tabs, please.", promptId="p1"),
    _claude("user", "<command-name>/clear</command-name>", promptId="p1"),
    _claude("user", "a note of the host", promptId="p1", isMeta=True),
    _claude("assistant", [{"type": "thinking", "thinking": "hm"}]),
    _claude("assistant", [{"type": "text", "text": "I look at the files."}]),
    _claude("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]),
    _claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": "x"}], promptId="p1"),
    _claude("assistant", [{"type": "text", "text": "of a helper"}], isSidechain=True),
    _claude("assistant", [{"type": "text", "text": "Done: tabs."}]),
    _claude("user", [{"type": "text", "text": "Thanks."}], promptId="p2"),
]
CODEX: list[Any] = [
    {"type": "session_meta", "payload": {"id": ID}},
    {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "p1"}},
    _codex("developer", "rules"),
    _codex("user", "<environment_context>x</environment_context>", "p1"),
    _codex("user", "Use tabs, please.", "p1"),
    _codex("developer", RECALLED, "p1"),
    _codex("assistant", "I look at the files.", "p1"),
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
    _codex("assistant", "Done: tabs.", "p1"),
    {"type": "turn_context", "payload": {"turn_id": "p2"}},
    _codex("user", "Thanks."),
]
CURSOR: list[Any] = [
    _cursor("user", f"{RECALLED}\n<user_query>\nUse tabs, please.\n</user_query>"),
    _cursor("assistant", "I look at the files."),
    _cursor("assistant", "Done: tabs."),
    _cursor("user", "<user_query>Thanks.</user_query>"),
]
HOSTS = {"claude-code": CLAUDE, "codex": CODEX, "cursor": CURSOR}
NAMES = {
    "claude-code": f"projects/-home-ana-work/{ID}.jsonl",
    "codex": f"sessions/2026/11/26/rollout-2026-11-26T10-00-00-{ID}.jsonl",
    "cursor": f"projects/shop/agent-transcripts/{ID}/{ID}.jsonl",
}


def _write(folder: Path, host: str, lines: Sequence[Any]) -> Path:
    path = folder / NAMES[host]
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "us')
    return path


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_prompts_and_last_replies_are_turns(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    form = host_formats()[host]
    if form.home_variable is not None:
        monkeypatch.delenv(form.home_variable, raising=False)
    path = _write(form.folder, host, HOSTS[host])
    assert transcript_files(form) == [path]
    turns = read_transcript(form.transcript, path)
    assert [(one.role, one.text) for one in turns] == [
        ("user", "Use tabs, please."),
        ("assistant", "Done: tabs."),
        ("user", "Thanks."),
    ]
    assert {one.session for one in turns} == {ID}
    if form.transcript.date is not None:
        assert {one.said_at for one in turns} == {NOW}
    first, second, third = (one.client_id.rpartition(":")[0] for one in turns)
    assert first == second != third
    # An appended conversation keeps the ids that it has.
    before = [one.client_id for one in turns]
    lines = [*HOSTS[host], HOSTS[host][-1]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [one.client_id for one in read_transcript(form.transcript, path)][:3] == before


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_hooks_and_transcripts_give_the_same_ids(host: str, tmp_path: Path) -> None:
    form = host_formats()[host]
    turns = read_transcript(form.transcript, _write(tmp_path, host, HOSTS[host]))
    fields = form.fields
    prompt = {"hook_event_name": form.events.prompt, fields.prompt: "Use tabs, please."}
    reply = {"hook_event_name": form.events.reply, fields.reply: "Done: tabs."}
    for given, turn in zip([prompt, reply], turns, strict=False):
        event = read_hook_event(form, {**given, fields.session: ID, fields.turn: "p1"}, NOW)
        assert event is not None
        assert event.turn == turn


def test_a_second_reply_to_a_prompt_is_a_turn_of_its_own() -> None:
    form = host_formats()["claude-code"]
    given = {"hook_event_name": "Stop", "session_id": ID, "prompt_id": "p", "x": [{}]}
    texts = [{"last_assistant_message": "one"}, {"last_assistant_message": "two"}]
    repeated = {"stop_hook_active": True}
    events = [read_hook_event(form, given | text, NOW) for text in texts]
    again = [read_hook_event(form, given | text | repeated, NOW) for text in texts]
    ids = [one.turn.client_id for one in [events[0], *again] if one is not None and one.turn]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"hook_event_name": "SessionStart", "session_id": ID},
        {"hook_event_name": "Stop", "last_assistant_message": "no session"},
        {"hook_event_name": "Stop", "session_id": 7, "last_assistant_message": "x"},
    ],
)
def test_other_events_are_of_no_use(given: dict[str, Any]) -> None:
    assert read_hook_event(host_formats()["claude-code"], given, NOW) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (RECALLED, ""),
        (f"before {RECALLED} after", "before  after"),
        (f"a {RECALLED} b {RECALLED.upper()} c", "a  b  c"),
        ("cut <memorywall-recall>\n- 2026-01-01: without an end", "cut"),
        ('x <memorywall-recall note="1">y</memorywall-recall  > z', "x  z"),
        ("about memorywall-recall as a word", "about memorywall-recall as a word"),
    ],
)
def test_what_was_injected_is_left_out(text: str, kept: str) -> None:
    assert without_injected(text) == kept
