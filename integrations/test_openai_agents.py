"""The session of OpenAI's Agents SDK: its own Runner with a scripted model, and its items."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents import Agent, ModelResponse, Runner, SQLiteSession, Usage, handoff
from agents.exceptions import AgentsException
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

import memorywall
from memorywall.adapters.openai_agents import MemorywallSession
from memorywall.exceptions import (
    MemoryAccessError,
    MemoryNotFoundError,
    MemoryTransportError,
    ValueTooLargeError,
)
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.adapters.networks import Network, connect
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

ITEMS: list[Any] = [
    {"role": "user", "content": "Hello"},
    {"role": "user", "content": ""},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"role": "developer", "content": "Be brief."},
    {"role": "system", "content": "Be kind."},
    {
        "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
     "encrypted_content": "x" * 3_000},
    {"type": "function_call", "call_id": "c1", "name": "find", "id": "fc_1",
     "arguments": '{"b" : 1,  "a": 2}', "status": "completed"},
    {"type": "function_call_output", "call_id": "c1", "output": "in Bonn"},
    {"type": "function_call_output", "call_id": "c1", "output": [
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 100_000}]},
    {"type": "function_call_output", "call_id": "c2", "output": "ok", "id": "x" * 400},
    {"type": "computer_call_output", "call_id": "c3",
     "output": {"type": "computer_screenshot", "file_id": "f"}},
    {"type": "web_search_call", "id": "ws_1", "status": "completed",
     "action": {"type": "search", "query": "x"}},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "y"},
    {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
    {"type": "item_reference", "id": "msg_1"},
    {"role": "user", "content": [{"type": "input_text", "text": "c", "cache_control": {"x": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
    {"role": "user", "content": "z" * 200_000},
]  # fmt: skip


class ScriptedModel(Model):
    """Answers with what it was given, and notes what it was asked."""

    def __init__(self, *outputs: list[Any]) -> None:
        self.outputs = list(outputs)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any):  # type: ignore[no-untyped-def]
        self.asked.append(input)
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def says(text: str) -> list[Any]:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [
        ResponseOutputMessage(
            id=f"msg_{text}", type="message", role="assistant", status="completed", content=[part]
        )
    ]


def hands_over(name: str) -> list[Any]:
    call = {"type": "function_call", "call_id": "h1", "name": f"transfer_to_{name}"}
    return [ResponseFunctionToolCall(arguments="{}", **call)]  # type: ignore[arg-type]


def over_http(service: RunningService, key: str) -> AsyncClient:
    transport = httpx.ASGITransport(service.app)
    return AsyncClient("http://memorywall.test", key, transport=transport)


async def test_every_item_comes_back_as_it_was(service: RunningService) -> None:
    client = over_http(service, await service.key("ada"))
    ours, theirs = MemorywallSession("s", client), SQLiteSession("s")
    for session in (ours, theirs):
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.clear_session()
        await session.add_items([])
        await session.add_items(ITEMS)
    assert await ours.get_items() == ITEMS
    for limit in (0, 1, 7, 100, -1):
        assert await ours.get_items(limit=limit) == await theirs.get_items(limit=limit)
    few = MemorywallSession("s", client, session_settings={"limit": 2})
    assert await few.get_items() == ITEMS[-2:]
    few.session_settings = SessionSettings(limit=3)
    assert await few.get_items() == ITEMS[-3:]
    for item in reversed(ITEMS):
        assert await ours.pop_item() == item
    assert await ours.pop_item() is None
    many = [{"role": "user", "content": str(number)} for number in range(10_000)]
    await ours.add_items(many)
    assert await ours.get_items(limit=3) == many[-3:]
    await ours.clear_session()
    assert await ours.get_items() == []


async def test_items_of_other_writers_are_items(service: RunningService) -> None:
    client = over_http(service, await service.key("ada"))
    conversation = await client.sessions.create(client_id="s")
    call = {"id": "c1", "name": "find", "arguments": {"n": 1}}
    await conversation.add("user", "Where?")
    await conversation.add("assistant", "I look.", tool_calls=[call])
    session = MemorywallSession("s", client)
    found = await session.get_items()
    assert [one.get("type", one.get("role")) for one in found] == [
        "user", "assistant", "function_call",
    ]  # fmt: skip
    popped = await session.pop_item()
    assert popped is not None
    assert popped["call_id"] == "c1"  # type: ignore[typeddict-item]
    assert await session.get_items() == found[:-1]


async def test_parallel_adds_and_pops_lose_nothing(service: RunningService) -> None:
    key = await service.key("ada")
    sessions = [MemorywallSession("s", over_http(service, key)) for _ in range(4)]
    order = random.Random(7)

    async def add(number: int) -> None:
        await sessions[number % 4].add_items([{"role": "user", "content": str(number)}])

    async def pop(number: int) -> Any:
        return await sessions[number % 4].pop_item()

    calls = [add(number) for number in range(40)] + [pop(number) for number in range(10)]
    order.shuffle(calls)
    popped = [one for one in await asyncio.gather(*calls) if one is not None]
    left = await sessions[0].get_items()
    told = sorted(int(one["content"]) for one in [*popped, *left])  # type: ignore[typeddict-item]
    assert told == list(range(40))


LARGE: list[Any] = [
    {"type": "function_call", "call_id": "c1", "name": "write", "arguments": "a" * 300_000},
    {"type": "function_call_output", "call_id": "c1", "output": "o" * 300_000},
    {"type": "message", "role": "assistant", "id": "m1", "status": "completed",
     "content": [{"type": "output_text", "text": "t" * 300_000, "annotations": [
         {"type": "url_citation", "url": "u" * 300_000}]}]},
    {"role": "assistant", "content": "hi", "phase": "p" * 100_000},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 300_000},
    {"role": "user", "content": [
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 4_000_000}]},
    {"role": "user", "content": [
        {"type": "input_file", "file_data": "A" * 2_000_000, "filename": "f.pdf"}] * 3},
]  # fmt: skip


@pytest.mark.parametrize("way", ["in process", "over http"])
async def test_items_of_any_size_come_back_and_are_found(
    service: RunningService, tmp_path: Path, way: str
) -> None:
    async with AsyncExitStack() as stack:
        if way == "over http":
            client: AsyncClient = connect(Network(service), await service.key("ada"))
        else:
            opened = memorywall.open_async(tmp_path / "own.db", agent="ada")
            client = await stack.enter_async_context(opened)
        session = MemorywallSession("s", client)
        text = "Her tea is green. " + "z " * 100_000
        items = [*LARGE, *LARGE, {"role": "user", "content": text}]
        await session.add_items(items)
        assert await session.get_items() == items
        hit = (await client.memory.search("green tea"))[0]
        assert hit.entry.text.startswith("Her tea")
        files = await client.memory.attachments.list(hit.entry.id)
        assert len(files) == 1
        assert await session.pop_item() == items[-1]
        with pytest.raises(MemoryNotFoundError):
            await client.memory.attachments.download(hit.entry.id, files[0].id)
        assert await session.get_items() == items[:-1]
        with pytest.raises(ValueTooLargeError) as refused:
            await session.add_items([{"role": "user", "content": "x" * 17_000_000}])
        assert isinstance(refused.value, AgentsException)
        await session.clear_session()
        assert await session.get_items() == []


async def test_faults_are_errors_of_the_sdk(service: RunningService) -> None:
    network = Network(service)
    session = MemorywallSession("s", connect(network, await service.key("ada")))
    items: list[Any] = [{"role": "user", "content": str(number)} for number in range(250)]
    network.loses_replies = True
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.pop_item() == items.pop()
    assert network.lost >= 4
    for strange in (object(), {1, 2}, "\ud800"):
        for item in (
            {"role": "user", "content": [{"type": "input_text", "text": strange}]},
            {"role": "assistant", "content": "x", "id": strange},
            {"type": "function_call", "call_id": "c", "name": "n", "arguments": strange},
        ):
            with pytest.raises(AgentsException, match=r"JSON|cannot be stored"):
                await session.add_items([item])  # type: ignore[list-item]
    assert await session.get_items() == items
    network.loses_replies, network.is_away = False, True
    for call in (session.get_items(), session.pop_item(), session.add_items(items)):
        with pytest.raises(AgentsException, match=r"memorywall\.test") as away:
            await call
        assert isinstance(away.value, MemoryTransportError)
    network.is_away = False
    assert await session.get_items() == items
    model = ScriptedModel(says("first"))
    network.is_away = True
    with pytest.raises(AgentsException):
        await Runner.run(Agent(name="a", model=model), "hello", session=session)


async def test_an_addition_that_ends_early_says_how_far_it_came(service: RunningService) -> None:
    network = Network(service)
    session = MemorywallSession("s", connect(network, await service.key("ada")))
    many: list[Any] = [{"role": "user", "content": str(number)} for number in range(10_000)]
    await session.add_items(many[:1])
    network.lasts = 7
    with pytest.raises(AgentsException) as ended:
        await session.add_items(many[1:])
    network.lasts = None
    added = len(await session.get_items()) - 1
    assert 0 < added < 1_000
    assert ended.value.__notes__ == [f"the first {added} of 9999 items were added"]
    await session.add_items(many[1 + added :])
    assert await session.get_items() == many


def _resume(place: str) -> None:
    """Goes on with the conversation in a process of its own."""

    async def run() -> None:
        model = ScriptedModel(says("third"))
        async with memorywall.open_async(place, agent="ada") as client:
            session = MemorywallSession("talk", client, user="ann")
            result = await Runner.run(Agent(name="b", model=model), "more", session=session)
        assert result.final_output == "third"
        texts = [one.get("content") for one in model.asked[0] if one.get("role") == "user"]
        assert texts == ["hello", "more"]

    asyncio.run(run())


async def test_a_runner_hands_over_and_is_resumed_in_another_process(tmp_path: Path) -> None:
    place = str(tmp_path / "memory.db")
    model = ScriptedModel(hands_over("b"), says("second"))
    other = Agent(name="b", model=model)
    first = Agent(name="a", model=model, handoffs=[handoff(other)])
    with memorywall.open(place, agent="ada") as client:
        session = MemorywallSession("talk", client, user="ann")
        result = await Runner.run(first, "hello", session=session)
        assert result.final_output == "second"
        assert result.last_agent.name == "b"
        kinds = [one.get("type", "message") for one in await session.get_items()]
        assert kinds == ["message", "function_call", "function_call_output", "message"]
    process = multiprocessing.get_context("spawn").Process(target=_resume, args=(place,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    with memorywall.open(place, agent="ada") as client:
        (stored,) = client.sessions.list(user="ann").sessions
        turns = client.sessions.get(stored.id).turns()
        assert [one.role for one in turns][:3] == ["user", "assistant", "tool"]
        assert turns[1].tool_calls[0].name == "transfer_to_b"


async def test_a_summary_stands_for_what_does_not_fit(service: RunningService) -> None:
    client = over_http(service, await service.key("ada"))
    session = MemorywallSession("s", client, token_budget=400)
    model = ScriptedModel(*(says(f"answer {number}") for number in range(30)))
    agent = Agent(name="a", model=model)
    for number in range(30):
        text = f"My order {number} goes to Bonn and must arrive by day {number}. " * 3
        await Runner.run(agent, text, session=session)
    await session.run_compaction({"force": True})
    items = await session.get_items()
    assert len(items) < 60
    assert items[0]["role"] == "system"  # type: ignore[typeddict-item]
    assert "Bonn" in items[0]["content"]  # type: ignore[typeddict-item, operator]
    whole = await MemorywallSession("s", client).get_items()
    assert len(whole) == 60
    # The SDK's own compaction takes it as the store that it compacts.
    OpenAIResponsesCompactionSession("s", MemorywallSession("s", client))


async def test_people_and_tenants_see_nothing_of_each_other(service: RunningService) -> None:
    keys = [await service.key("ada"), await service.key("bob"), await service.key("ada", "other")]
    ada, bob, foreign = [over_http(service, key) for key in keys]
    for user in ("ann", "bea"):
        session = MemorywallSession("s", ada, user=user)
        await session.add_items([{"role": "user", "content": f"I am {user}"}])
    for user in ("ann", "bea"):
        expected = [{"role": "user", "content": f"I am {user}"}]
        assert await MemorywallSession("s", ada, user=user).get_items() == expected
        assert await MemorywallSession("s", ada.for_user(user)).get_items() == expected
    assert await MemorywallSession("s", ada).get_items() == []
    for other in (bob, foreign):
        stranger = MemorywallSession("s", other, user="ann")
        assert await stranger.get_items() == []
        await stranger.clear_session()
    assert {one.actor for one in await ada.events.list()} == {"ada"}
    reader = over_http(service, await service.key("eve", permissions=(Permission.READ,)))
    with pytest.raises(MemoryAccessError) as refused:
        await MemorywallSession("s", reader).add_items([{"role": "user", "content": "x"}])
    assert isinstance(refused.value, AgentsException)
    root = await service.key("root", permissions=tuple(Permission))
    await over_http(service, root).forget("ann")
    assert await MemorywallSession("s", ada, user="ann").get_items() == []
    assert len(await MemorywallSession("s", ada, user="bea").get_items()) == 1


def test_the_program_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parent.parent / "docs" / "openai-agents.md"
    program = page.read_text(encoding="utf-8").split("```\n")[3]
    assert program.count('instructions="Be brief."') == 1
    program = program.replace('instructions="Be brief."', "model=MODEL")
    monkeypatch.chdir(tmp_path)
    for answer in ("in Bonn", "still in Bonn"):
        model = ScriptedModel(says(answer))
        exec(program, {"__name__": "__main__", "MODEL": model})
        assert capsys.readouterr().out == f"{answer}\n"
    assert len(model.asked[0]) == 3
