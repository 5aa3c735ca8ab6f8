"""Messages of OpenAI and Anthropic are stored as they come, and come back the same."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.context.provider_check import check_anthropic, check_openai, check_responses
from tests.http.checks import MARKER, assert_problem
from tests.http.test_contexts import compiled
from tests.http.test_sessions import begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgo="
OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Where are orders 17 and 18?"},
    {
        "content": None,
        "refusal": None,
        "role": "assistant",
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": [
            {"id": f"c{n}", "type": "function",
             "function": {"name": "find", "arguments": f'{{"order": {n}, "long": true}}'}}
            for n in (17, 18)
        ],
    },
    {"role": "tool", "tool_call_id": "c17", "content": "in Bonn"},
    {"role": "tool", "tool_call_id": "c18", "content": [{"type": "text", "text": "lost"}]},
    {"role": "assistant", "content": "17 is in Bonn.", "tool_calls": None},
    {"role": "user", "content": [
        {"type": "text", "text": "And this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]},
]  # fmt: skip
ANTHROPIC = [
    {"role": "user", "content": "Where are orders 17 and 18?"},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "container": None,
        "content": [
            {"type": "text", "text": "I look.", "citations": None},
            *({"type": "tool_use", "id": f"c{n}", "name": "find", "input": {"order": n}}
              for n in (17, 18)),
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c17", "content": "in Bonn"},
        {"type": "tool_result", "tool_use_id": "c18", "is_error": True,
         "content": [{"type": "text", "text": "lost", "cache_control": {"type": "ephemeral"}}]},
        {"type": "text", "text": "And 19?", "cache_control": {"type": "ephemeral"}},
    ]},
]  # fmt: skip


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def test_messages_of_openai_are_stored_as_they_come(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    turns = (await talk.do("POST", "/turns", turns=OPENAI))["turns"]
    assert [one["role"] for one in turns] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip
    assert turns[2]["content"] == ""
    assert turns[2]["tool_calls"] == [
        {"id": f"c{n}", "name": "find", "arguments": {"order": n, "long": True}} for n in (17, 18)
    ]
    refused = {"role": "assistant", "content": None, "refusal": "I may not say that."}
    stored = (await talk.do("POST", "/turns", turns=[refused]))["turns"]
    assert stored[0]["content"] == "I may not say that."


async def test_messages_of_anthropic_are_stored_as_they_come(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    messages = [*ANTHROPIC[:2], {**ANTHROPIC[2], "client_id": "m3"}]
    turns = (await talk.do("POST", "/turns", turns=messages))["turns"]
    assert [(one["role"], one.get("tool_call_id")) for one in turns] == [
        ("user", None), ("assistant", None), ("tool", "c17"), ("tool", "c18"), ("user", None),
    ]  # fmt: skip
    assert [one["id"] for one in turns[1]["tool_calls"]] == ["c17", "c18"]
    assert turns[2]["content"] == "in Bonn"
    failed = [{"type": "text", "text": "The call failed."}, {"type": "text", "text": "lost"}]
    assert turns[3]["content"] == failed
    assert turns[4]["content"] == [{"type": "text", "text": "And 19?"}]
    again = (await talk.do("POST", "/turns", turns=messages[2:]))["turns"]
    assert again == turns[2:]
    assert [one.get("client_id") for one in again] == ["m3", "m3#2", "m3#3"]


@pytest.mark.parametrize("messages", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_the_messages_of_a_context_are_stored_again_without_a_change(
    ada: httpx.AsyncClient, messages: list[Any], form: str
) -> None:
    first, second = await begin(ada), await begin(ada)
    await first.do("POST", "/turns", turns=messages)
    body = {"format": form, "window": 8_000, "store": False}
    shown = await compiled(ada, session_id=first.id, **body)
    (check_openai if form == "openai" else check_anthropic)(shown["messages"])
    await second.do("POST", "/turns", turns=shown["messages"])
    again = await compiled(ada, session_id=second.id, **body)
    assert again["messages"] == shown["messages"]
    assert any(str(one).count("c17") for one in shown["messages"])


async def test_messages_that_cannot_be_stored_name_the_field(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    answer = {"role": "assistant", "content": None}
    function = {"name": "find", "arguments": MARKER}
    for message, field in (
        ({"role": "user", "content": None}, "`turns[0].content`"),
        ({"role": "user"}, "`turns[0].content`"),
        ({**answer, "function_call": function}, "`turns[0].function_call`"),
        ({**answer, "tool_calls": [{"id": "1", "arguments": {}}]},
         "`turns[0].tool_calls[0].name`"),
        ({**answer, "tool_calls": [{"id": "1", "name": "f", "arguments": 1}]},
         "`turns[0].tool_calls[0].arguments`"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {}}]},
         "`turns[0].content[0]`"),
        ({"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
         "`turns[0].content[0]`"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}] * 101},
         "`turns` are 101 turns"),
        ({"role": "user", "content": "x", "moood": 1}, "`turns[0].moood`"),
    ):  # fmt: skip
        response = await talk.ask("POST", "/turns", turns=[message])
        assert field in assert_problem(response, 422)["detail"]
        assert MARKER not in response.text
    assert await talk.texts() == []


async def test_text_in_a_part_is_found_and_takes_room_of_the_window(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    data = "The lighthouse keeper counts ships. " * 1_500
    source = {"type": "text", "media_type": "text/plain", "data": data}
    document = {"role": "user", "content": [{"type": "document", "source": source}]}
    question = {"role": "user", "content": "And now?"}
    (stored, _) = (await talk.do("POST", "/turns", turns=[document, question]))["turns"]
    assert stored["tokens"] > 5_000
    for form in ("anthropic", "openai"):
        shown = await compiled(ada, session_id=talk.id, window=8_000, format=form, store=False)
        assert "And now?" in str(shown["messages"])
        assert len(str(shown["messages"])) < 8_000 * 5
    search = {"query": "lighthouse keeper"}
    found = (await ada.post("/api/v1/memory/search", json=search)).json()
    assert stored["id"] in [hit["entry"]["id"] for hit in found["results"]]


async def test_speakers_stand_in_messages_and_summaries(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    said = {"Ann": "I must not eat nuts.", "Bob Smith": "I need a ramp for my wheelchair."}
    turns = [{"role": "user", "name": name, "content": text} for name, text in said.items()]
    turns.append({"role": "user", "name": "Ann", "content": [{"type": "text", "text": "Who?"}]})
    await talk.do("POST", "/turns", turns=turns)
    for form, place in (("openai", "messages"), ("anthropic", "messages"), ("text", "text")):
        shown = await compiled(ada, session_id=talk.id, window=8_000, format=form, store=False)
        for named in ("Ann: I must not", "Bob Smith: I need", "Ann: Who?"):
            assert named in str(shown[place])
    summary = (await talk.do("POST", "/checkpoints", trigger="periodic"))["summary"]
    assert "Ann: I must not eat nuts." in summary
    assert "Bob Smith: I need a ramp" in summary


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"path": "a.txt", "text": "once up', '{"path": "a.txt", "text": "once up'),
        (None, {}),
        ("null", {}),
        ("", {}),
        ([1], "[1]"),
        ("[1]", "[1]"),
    ],
)
async def test_arguments_that_are_no_object_are_stored(
    ada: httpx.AsyncClient, given: Any, kept: Any
) -> None:
    talk = await begin(ada)
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": given}}
    use = {"type": "tool_use", "id": "c2", "name": "write", "input": given}
    result = {"role": "tool", "content": "invalid arguments"}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {**result, "tool_call_id": "c1"},
        {"role": "assistant", "content": [use]},
        {**result, "tool_call_id": "c2"},
    ]
    stored = (await talk.do("POST", "/turns", turns=turns))["turns"]
    assert [stored[at]["tool_calls"][0].get("arguments", {}) for at in (0, 2)] == [kept, kept]
    body = {"session_id": talk.id, "window": 8_000, "store": False}
    openai = (await compiled(ada, format="openai", **body))["messages"]
    check_openai(openai)
    written = openai[0]["tool_calls"][0]["function"]["arguments"]
    assert written == (kept or "{}")
    check_anthropic((await compiled(ada, format="anthropic", **body))["messages"])


async def test_unknown_fields_of_an_answer_are_kept_and_masked(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada, policy={"personal_data": "mask"})
    answer = {
        "role": "assistant",
        "content": "Yes.",
        "reasoning_content": "Write to a@example.com.",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
        "prefix": None,
    }
    plain = {"role": "assistant", "content": "Yes."}
    first, second = (await talk.do("POST", "/turns", turns=[answer, plain]))["turns"]
    assert first["extra"] == {
        "reasoning_content": "Write to [email].",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
    }
    assert "extra" not in second
    assert first["tokens"] > second["tokens"]
    body = {"session_id": talk.id, "window": 8_000, "store": False}
    shown = await compiled(ada, format="openai", **body)
    assert [one["content"] for one in shown["messages"]] == ["Yes.", "Yes."]
    again = (await talk.do("GET", "/turns"))["turns"]
    assert again[0]["extra"] == first["extra"]
    for refused in (
        {**answer, "role": "user"},
        {"role": "user", "content": "x", "extra": {"a": 1}},
        {**plain, "extra": {f"field{at}": at for at in range(33)}},
        {**plain, "extra": "x"},
    ):
        assert_problem(await talk.ask("POST", "/turns", turns=[refused]), 422)
    large = {**plain, "reasoning_content": "x" * 70_000}
    assert_problem(await talk.ask("POST", "/turns", turns=[large]), 413)
    assert len(await talk.texts()) == 2


RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "Where are orders 17 and 18?"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}],
     "encrypted_content": None, "status": "completed"},
    *({"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "find",
       "arguments": f'{{"order": {n}}}', "status": "completed"} for n in (17, 18)),
    {"type": "function_call_output", "call_id": "c17", "output": "in Bonn"},
    {"type": "function_call_output", "call_id": "c18",
     "output": [{"type": "input_text", "text": "lost"}], "client_id": "r18"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "17 is in Bonn.", "annotations": []}]},
    {"role": "user", "content": [
        {"type": "input_text", "text": "And this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ]},
]  # fmt: skip


async def test_items_of_responses_are_stored_and_come_back(ada: httpx.AsyncClient) -> None:
    talk, second = await begin(ada), await begin(ada)
    turns = (await talk.do("POST", "/turns", turns=RESPONSES))["turns"]
    assert [(one["role"], one.get("tool_call_id")) for one in turns] == [
        ("user", None), ("assistant", None), ("assistant", None), ("assistant", None),
        ("tool", "c17"), ("tool", "c18"), ("assistant", None), ("user", None),
    ]  # fmt: skip
    assert turns[5]["client_id"] == "r18"
    body = {"window": 8_000, "store": False, "tools": [{"name": "find"}]}
    checks = {"responses": check_responses, "openai": check_openai, "anthropic": check_anthropic}
    for form, check in checks.items():
        shown = await compiled(ada, session_id=talk.id, format=form, **body)
        check(shown["messages"])
        for text in ("17 is in Bonn.", "lost", "And this?"):
            assert text in str(shown["messages"])
    shown = await compiled(ada, session_id=talk.id, format="responses", **body)
    assert shown["tools"] == [{"type": "function", "name": "find"}]
    kinds = [one.get("type", one.get("role")) for one in shown["messages"]]
    assert kinds == [
        "user", "function_call", "function_call_output", "function_call", "function_call_output",
        "assistant", "user",
    ]  # fmt: skip
    await second.do("POST", "/turns", turns=shown["messages"])
    again = await compiled(ada, session_id=second.id, format="responses", **body)
    assert again["messages"] == shown["messages"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "name": "find", "arguments": "{}"},
        {"type": "function_call", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "x", "moood": 1},
        {"type": "item_of_tomorrow"},
    ],
)
async def test_items_that_cannot_be_stored_are_refused(
    ada: httpx.AsyncClient, item: dict[str, Any]
) -> None:
    talk = await begin(ada)
    response = await talk.ask("POST", "/turns", turns=[item])
    assert "turns[0]" in assert_problem(response, 422)["detail"]
