"""import-chat: every form of chat file becomes entries, in order, and a fault leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from memorywall.cli.chat_dates import read_date
from memorywall.cli.chat_files import Message, read_chats
from memorywall.cli.embedding import wait_until_embedded
from memorywall.records.errors import ConfigurationError
from memorywall.sdk.client import Client
from memorywall.wire.service import EmbeddingResponse, ReadinessResponse
from tests.cli.shell import Shell, misuse, refuse, run, succeed

LOCOMO: dict[str, Any] = {
    "sample_id": "talk-1",
    "qa": [{"question": "?", "answer": "!"}],
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_10_date_time": "12:05 am on 2 June, 2023",
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Goodbye."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ada", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice.", "img_url": ["x"]},
        ],
        "session_3_date_time": "9:00 am on 9 May, 2023",
    },
}


def _lines(*elements: Any) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in elements)


def _read(*elements: Any) -> list[Message]:
    return read_chats(_lines(*elements), "talk")


def _one(**fields: Any) -> Message:
    (message,) = _read({"content": "hello", **fields})
    return message


def _fault(content: bytes) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_chats(content, "talk")
    said = caught.value.detail
    assert said.endswith("; nothing is imported")
    return said.removesuffix("; nothing is imported")


def test_messages_a_line_are_numbered_and_belong_to_the_file_s_own_session() -> None:
    first, second = _read(
        {"role": "user", "content": "Where is the key?"},
        {"role": "assistant", "content": "Under the mat."},
    )
    assert (first.chat, first.session, first.key) == ("talk", "talk", "000001")
    assert first.value == {"text": "Where is the key?", "role": "user"}
    assert (second.key, second.value["role"], second.place) == ("000002", "assistant", "line 2")


@pytest.mark.parametrize("name", ["author", "name", "speaker"])
def test_an_author_goes_by_several_names(name: str) -> None:
    assert _one(**{name: "Ada"}).value == {"text": "hello", "author": "Ada"}


@pytest.mark.parametrize("name", ["timestamp", "date", "created_at"])
def test_a_date_goes_by_several_names(name: str) -> None:
    assert _one(**{name: "2023-05-08T13:56:00Z"}).value["date"] == "2023-05-08T13:56:00Z"


@pytest.mark.parametrize("name", ["session", "session_id", "conversation_id", "thread_id"])
@pytest.mark.parametrize("session", ["s-7", 7])
def test_a_session_goes_by_several_names(name: str, session: str | int) -> None:
    assert _one(**{name: session}).session == str(session)


@pytest.mark.parametrize("name", ["id", "message_id", "dia_id"])
def test_an_id_is_the_key(name: str) -> None:
    assert _one(**{name: "msg-9"}).key == "msg-9"
    assert _one(**{name: 0}).key == "0"
    assert _one(**{name: ""}).key == "000001"


def test_parts_of_a_content_are_joined_and_those_without_text_are_named() -> None:
    content = [
        {"type": "text", "text": "Look at this:"},
        {"type": "image_url", "image_url": {"url": "kite.png"}},
        "as it stands",
        {"type": "tool_use", "name": "find", "input": {}},
        {},
    ]
    text = _one(content=content).value["text"]
    assert text == "Look at this:\n[image_url]\nas it stands\n[tool_use find]\n[part]"


def test_a_message_may_call_a_tool_without_a_word() -> None:
    calls = [{"type": "function", "function": {"name": "weather", "arguments": "{}"}}, {}]
    assert _one(content=None, tool_calls=calls).value["text"] == "[tool_call weather]\n[tool_call]"
    assert _one(content=None).value["text"] == ""


def test_what_is_not_kept_is_named() -> None:
    assert _one(model="m", usage={}, role="user").left_out == ("model", "usage")


def test_conversations_a_line_are_sessions_whose_messages_do_not_clash() -> None:
    messages = _read(
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        {
            "conversation_id": "kitchen",
            "date": "8 May 2023",
            "messages": [
                {"content": "c", "id": 1},
                {"content": "d", "id": 2, "date": "2023-05-09"},
            ],
        },
    )
    assert [(one.session, one.key) for one in messages] == [
        ("talk-1", "talk-1/000001"),
        ("talk-1", "talk-1/000002"),
        ("kitchen", "kitchen/1"),
        ("kitchen", "kitchen/2"),
    ]
    assert [one.value.get("date") for one in messages] == [
        None, None, "2023-05-08T00:00:00", "2023-05-09",
    ]  # fmt: skip
    assert {one.chat for one in messages} == {"talk"}
    assert messages[3].place == "line 2, message 2"


@pytest.mark.parametrize("indent", [None, 2])
def test_array_contains_the_same_messages_as_lines(indent: int | None) -> None:
    elements = [
        {"role": "user", "content": "a"},
        {"messages": [{"role": "user", "content": "b"}], "id": "kitchen"},
    ]
    array = read_chats(json.dumps(elements, indent=indent).encode(), "talk")
    lines = _read(*elements)
    assert [(one.chat, one.session, one.key, one.value) for one in array] == [
        (one.chat, one.session, one.key, one.value) for one in lines
    ]
    assert [one.place for one in array] == ["element 1", "element 2, message 1"]


def test_one_conversation_may_be_the_whole_file() -> None:
    whole = json.dumps({"messages": [{"content": "a"}, {"content": "b"}]}, indent=1)
    messages = read_chats(whole.encode(), "talk")
    assert [(one.session, one.key) for one in messages] == [("talk", "000001"), ("talk", "000002")]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [True, False])
def test_locomo_has_its_sessions_in_the_order_of_their_numbers(
    wrapped: bool, indent: int | None
) -> None:
    content = json.dumps([LOCOMO] if wrapped else LOCOMO, indent=indent).encode()
    messages = read_chats(content, "file")
    assert [(one.chat, one.session, one.key, one.value) for one in messages] == [
        (
            "talk-1",
            "talk-1-2",
            "D2:1",
            {
                "text": "Look!",
                "author": "Ada",
                "caption": "a red kite",
                "date": "2023-05-08T13:56:00",
            },
        ),
        (
            "talk-1",
            "talk-1-2",
            "D2:2",
            {"text": "Nice.", "author": "Bo", "date": "2023-05-08T13:56:00"},
        ),
        (
            "talk-1",
            "talk-1-10",
            "D10:1",
            {"text": "Goodbye.", "author": "Bo", "date": "2023-06-02T00:05:00"},
        ),
    ]
    assert messages[1].left_out == ("img_url",)


def test_turns_without_an_id_are_numbered_within_their_session() -> None:
    turns = {"session_1": [{"text": "a"}], "session_2": [{"text": "b"}]}
    messages = read_chats(json.dumps([{"conversation": turns}]).encode(), "talk")
    assert [one.key for one in messages] == ["session_1/000001", "session_2/000001"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2023-05-08", "2023-05-08"),
        (" 2023-05-08T13:56:00+02:00 ", "2023-05-08T13:56:00+02:00"),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00"),
        ("8 May, 2023", "2023-05-08T00:00:00"),
        ("May 8, 2023", "2023-05-08T00:00:00"),
        ("2023/05/08 13:56", "2023-05-08T13:56:00"),
        ("Mon May  8 13:56:00 2023", "2023-05-08T13:56:00"),
        ("Mon, 8 May 2023 13:56:00 +0200", "2023-05-08T13:56:00+02:00"),
        (1_683_554_160, "2023-05-08T13:56:00+00:00"),
        (1_683_554_160.5, "2023-05-08T13:56:00.500000+00:00"),
        (1_683_554_160_000, "2023-05-08T13:56:00+00:00"),
        ("1683554160", "2023-05-08T13:56:00+00:00"),
        ("1683554160000", "2023-05-08T13:56:00+00:00"),
        # What is month and what is day depends on where it was written.
        ("4/5/2023", "4/5/2023"),
        ("the day before yesterday", "the day before yesterday"),
        ("", ""),
        (10**30, str(10**30)),
    ],
)
def test_a_date_is_read_where_it_can_be_in_one_way(written: str | float, read: str) -> None:
    assert read_date(written) == read


def test_a_byte_order_mark_blank_lines_and_carriage_returns_are_no_fault() -> None:
    content = b"\xef\xbb\xbf\r\n" + _lines({"content": "a"}) + b"\r\n" + _lines({"content": "b"})
    assert [one.place for one in read_chats(content, "talk")] == ["line 2", "line 4"]
    assert read_chats(b"", "talk") == []
    assert read_chats(b"\n \r\n", "talk") == []
    assert read_chats(b"[]", "talk") == []


_GOOD = _lines({"role": "user", "content": "fine"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_GOOD + b"{not json}\n" + _GOOD, "line 2: it is not JSON"),
        (b'{"content": "cut\n' + _GOOD, "line 1: it is not JSON"),
        (_GOOD + b"[1]\n", "line 2: it is not a JSON object"),
        (_GOOD + b"\xff\n", "line 2: it is not UTF-8"),
        (_GOOD + b"[" * 100_000, "line 2: it is nested too deeply"),
        (b'[\n{"content": "a"},\n{"content": }\n]', "line 3: it is not JSON"),
        (b'[\n{"content": "a"},\n', "line 2: it is not JSON"),
        (b"[" * 100_000, "line 1: it is nested too deeply"),
        (b'"words"', "the file: it is not a JSON object"),
        (b'[{"content": "a"}, 7]', "element 2: it is not a JSON object"),
        (b'{"role": "user"}', "line 1: this is not a message: it has neither `content` nor `text`"),
        (b'{"content": 7}', "line 1: its content is neither text nor a list of parts"),
        (b'{"content": [7]}', "line 1: its content is neither text nor a list of parts"),
        (b'{"content": "a", "author": ["A"]}', "line 1: its author is not text"),
        (b'{"content": "a", "role": 1}', "line 1: its role is not text"),
        (b'{"content": "a", "date": true}', "line 1: its date is neither text nor a number"),
        (b'{"content": "a", "date": {}}', "line 1: its date is neither text nor a number"),
        (b'{"content": "a", "thread_id": []}', "line 1: its session is neither text nor a number"),
        (b'{"content": "a", "id": 1.5}', "line 1: its id is neither text nor a number"),
        (b'{"messages": 7}', "line 1: its messages are not a list"),
        (b'{"messages": [7]}', "line 1, message 1: it is not a JSON object"),
        (b'{"conversation": {}}', "line 1: its conversation has no sessions"),
        (b'{"conversation": {"session_1": 7}}', "line 1, session_1: its messages are not a list"),
        (
            b'{"conversation": {"session_1": [{"speaker": "A"}]}}',
            "line 1, session_1, message 1: this is not a message: it has neither `content` nor"
            " `text`",
        ),
        (
            _lines({"content": "a", "id": "x"}, {"content": "b"}, {"content": "c", "id": "x"}),
            "line 3: its id is that of line 1",
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_problem_is_reported_with_its_position(content: bytes, said: str) -> None:
    assert _fault(content) == said


def _file(directory: Path, *elements: Any, name: str = "talk.jsonl") -> str:
    path = directory / name
    path.write_bytes(_lines(*elements))
    return str(path)


def _said(agent: Shell, *arguments: str, **options: Any) -> list[str]:
    """What an import that works says on standard error, line by line, but for its verdicts."""
    printed = agent.run("import-chat", *arguments, **options)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == ""
    lines = printed.stderr.splitlines()
    return [one for one in lines if not one.startswith("not worth keeping")]


def _entries(agent: Shell, *options: str) -> list[dict[str, Any]]:
    """Every entry of an agent, oldest first."""
    return agent.json_lines("export", *options)[::-1]


def test_every_message_becomes_an_entry_and_a_second_import_adds_what_is_new(
    anywhere: Shell, tmp_path: Path
) -> None:
    talk = [
        {"role": "user", "content": f"message {number}", "session": f"s{number // 100}", "model": 1}
        for number in range(230)
    ]
    file = _file(tmp_path, *talk[:220])
    assert _said(anywhere, file) == [
        "220 messages imported, 0 existed already",
        "fields that are not imported: model (220)",
    ]
    entries = _entries(anywhere)
    assert [one["value"]["text"] for one in entries] == [f"message {n}" for n in range(220)]
    assert [one["key"] for one in entries] == [f"{n:06}" for n in range(1, 221)]
    assert {one["namespace"] for one in entries} == {"chat/talk"}
    assert {one["memory_type"] for one in entries} == {"session"}
    assert entries[150]["scope"] == {"session_id": "s1"}
    assert entries[0]["value"] == {"text": "message 0", "role": "user"}
    assert (entries[0]["tags"], entries[0]["sensitivity"]) == ([], "internal")

    assert _said(anywhere, _file(tmp_path, *talk))[0] == (
        "10 messages imported, 220 existed already"
    )
    assert [one["id"] for one in _entries(anywhere)][:220] == [one["id"] for one in entries]
    assert len(_entries(anywhere)) == 230


def test_what_was_there_is_passed_over_wherever_it_stands(agent: Shell, tmp_path: Path) -> None:
    for number in (2, 5):
        name = ("--namespace", "chat/talk", "--key-name", f"{number:06}")
        kept = ("--memory-type", "session", "--value", '{"mine": 1}')
        scope = ("--scope", '{"session_id": "talk"}')
        succeed("call", "create_entry", *agent.where, *name, *kept, *scope)
    # The name is taken in this tier and this session only.
    agent.succeed("set", "chat/talk", "000004", "{}", "--type", "session")
    agent.succeed("set", "chat/talk", "000003", "{}", "--type", "working")
    file = _file(tmp_path, *({"content": str(number)} for number in range(1, 8)))
    assert _said(agent, file) == ["5 messages imported, 2 existed already"]
    entries = [one for one in _entries(agent, "--type", "session") if one["scope"]]
    values = {one["key"]: one["value"] for one in entries}
    assert values["000002"] == values["000005"] == {"mine": 1}
    assert values["000003"] == {"text": "3"}
    assert len(values) == 7


def test_a_key_that_may_only_write_can_import_again(
    new_agent: Callable[..., Shell], tmp_path: Path
) -> None:
    writer = new_agent("--permission", "memory.write")
    file = _file(tmp_path, *({"content": str(number)} for number in range(3)))
    assert _said(writer, file) == ["3 messages imported, 0 existed already"]
    assert _said(writer, file) == ["0 messages imported, 3 existed already"]


def test_where_and_how_messages_are_kept_can_be_said(agent: Shell, tmp_path: Path) -> None:
    file = _file(tmp_path, {"content": "a"})
    options = (
        "--namespace", "team/standup", "--type", "episodic", "--tag", "x", "--tag", "y",
        "--sensitivity", "restricted",
    )  # fmt: skip
    _said(agent, file, *options)
    (entry,) = _entries(agent)
    assert (entry["namespace"], entry["memory_type"]) == ("team/standup", "episodic")
    assert (entry["tags"], entry["sensitivity"]) == (["x", "y"], "restricted")


def test_several_chats_in_one_file_have_a_namespace_each(agent: Shell, tmp_path: Path) -> None:
    other = {**LOCOMO, "sample_id": "talk-2"}
    file = tmp_path / "both.json"
    file.write_text(json.dumps([LOCOMO, other], indent=2), encoding="utf-8")
    assert _said(agent, str(file)) == [
        "6 messages imported, 0 existed already",
        "fields that are not imported: img_url (2)",
    ]
    places = [(one["namespace"], one["key"]) for one in _entries(agent)]
    assert places == [
        (f"chat/{chat}", key) for chat in ("talk-1", "talk-2") for key in ("D2:1", "D2:2", "D10:1")
    ]
    _said(agent, str(file), "--namespace", "copy")
    assert {one["namespace"] for one in _entries(agent, "--namespace", "copy*")} == {
        "copy/talk-1",
        "copy/talk-2",
    }


def test_a_text_that_is_larger_than_an_entry_goes_to_a_file_of_it(
    agent: Shell, tmp_path: Path
) -> None:
    text = "é" * 40_000 + " the end"
    file = _file(tmp_path, {"content": "short", "id": "a"}, {"content": text, "id": "b"})
    for new in (2, 0):
        assert _said(agent, file) == [f"{new} messages imported, {2 - new} existed already"]
        short, long = sorted(_entries(agent), key=lambda one: str(one["key"]))
        shown = "é" * 24_000 + "\n[80008 bytes in the file message.txt]"
        assert long["value"]["text"] == shown
        files = [
            json.loads(succeed("attachments", "list", *agent.where, "--json", one["id"]))
            for one in (short, long)
        ]
        assert [len(some) for some in files] == [0, 1]
        saved = tmp_path / "saved.txt"
        place = ("--output", str(saved), long["id"], files[1][0]["id"])
        succeed("attachments", "save", *agent.where, *place)
        assert saved.read_text(encoding="utf-8") == text


def test_standard_input_is_read_too(agent: Shell) -> None:
    assert _said(agent, "-", input=_GOOD.decode()) == ["1 message imported, 0 existed already"]
    assert _entries(agent)[0]["namespace"] == "chat/stdin"
    assert _said(agent, "-", input="") == ["0 messages imported, 0 existed already"]


@pytest.mark.parametrize(
    ("element", "said"),
    [
        ({"role": "user"}, "neither `content` nor `text`"),
        ({"content": "a", "author": "sk-1" + "x" * 70_000}, "attachment"),
        ({"content": "a", "id": " sk-1"}, "`key`"),
        ({"content": "a", "id": "sk-1" + "x" * 600}, "`key`"),
        ({"content": "a", "session": "sk-1\n"}, "`scope.session_id`"),
    ],
    ids=["no text", "too large", "a blank at the end", "too long", "a session of two lines"],
)
def test_nothing_is_written_of_a_file_with_a_fault(
    element: dict[str, Any], said: str, agent: Shell, tmp_path: Path
) -> None:
    good = [{"content": str(number)} for number in range(249)]
    told = agent.refuse("import-chat", _file(tmp_path, *good, element))
    assert told.startswith("line 250: ")
    assert said in told
    assert told.endswith("; nothing is imported")
    assert "sk-1" not in told
    assert _entries(agent) == []


def test_invalid_namespace_is_reported(agent: Shell, tmp_path: Path) -> None:
    file = _file(tmp_path, {"content": "a"}, name="all*.jsonl")
    assert "--namespace must" in agent.refuse("import-chat", file)
    assert _said(agent, file, "--namespace", "all") == ["1 message imported, 0 existed already"]


def test_what_the_server_refuses_is_told_with_how_far_it_came(
    new_agent: Callable[..., Shell], tmp_path: Path
) -> None:
    reader = new_agent("--permission", "memory.read")
    said = reader.refuse("import-chat", _file(tmp_path, {"content": "a"}))
    assert "memory.write" in said
    assert said.endswith("; 0 of 1 messages are imported")
    other = ("--agent", "planner")
    said = reader.refuse("import-chat", _file(tmp_path, {"content": "a"}), *other)
    assert said.startswith("--agent must be the key's own principal; another agent needs a key of")
    assert said.endswith("`act_as`; 0 of 1 messages are imported")


def test_an_interrupted_import_is_told_how_to_continue(tmp_path: Path) -> None:
    place = ("--url", "http://127.0.0.1:9", "--key", "k")
    said = refuse("import-chat", _file(tmp_path, {"content": "a"}), *place)
    assert said.endswith("0 of 1 messages are imported; run the same command again to continue")


def test_a_chat_is_about_the_person_that_user_names(anywhere: Shell, tmp_path: Path) -> None:
    file = _file(tmp_path, *({"content": f"I like tea {number}"} for number in range(3)))
    assert _said(anywhere, file, "--user", "ana") == ["3 messages imported, 0 existed already"]
    assert _said(anywhere, file, "--user", "ana") == ["0 messages imported, 3 existed already"]
    about_ana = anywhere.json("query", "--about", "ana")["entries"]
    assert [one["subjects"] for one in about_ana] == [["ana"]] * 3
    assert _entries(anywhere, "--user", "bob") == []


def test_it_wants_a_key_before_it_reads_and_a_tier_that_keeps_chats(tmp_path: Path) -> None:
    file = _file(tmp_path, {"content": "a"})
    assert "--key" in refuse("import-chat", file)
    assert "'shared' is not one of" in misuse("import-chat", "--type", "shared", file)
    assert "no-such-file" in misuse("import-chat", "no-such-file")
    assert run("import-chat", file, "--url", "http://127.0.0.1:9", "--key", "k").returncode == 1


def test_in_a_directory_it_waits_until_everything_is_embedded(tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("keys", "create", "--data", str(data), "--agent", "a")
    shell = Shell("a", ("--data", str(data), "--agent", "a"))
    file = _file(tmp_path, *({"content": f"the kite number {number}"} for number in range(300)))
    variables = {"MEMORYWALL_EMBEDDER": "static"}
    assert _said(shell, file, variables=variables) == ["300 messages imported, 0 existed already"]
    found = shell.json("search", "kite", variables=variables)
    assert found["pending"] == 0
    assert found["model"] is not None


def test_it_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stuck:
        """A client of a store whose embedder cannot be had."""

        asked = 0

        def ready(self) -> ReadinessResponse:
            self.asked += 1
            embedding = EmbeddingResponse(model="m", backlog=max(5, 8 - self.asked))
            return ReadinessResponse(status="ready", embedding=embedding)

    monkeypatch.setattr("memorywall.cli.embedding._PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("memorywall.cli.embedding._LOOK_SECONDS", 0.001)
    stuck = Stuck()
    wait_until_embedded(cast(Client, stuck))
    assert stuck.asked >= 3
    said = "5 changes are not embedded yet; the next to open the store goes on\n"
    assert capsys.readouterr().err == said
