"""The recipe for Microsoft Agent Framework: the page, and its own history on the same calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Content, FileHistoryProvider, Message
from agent_framework.openai import OpenAIChatClient

import memorywall
from integrations.other_process import run_elsewhere
from integrations.scripted_model import Reply, ScriptedModel, calls, says
from integrations.tea import answers
from memorywall.exceptions import MemoryTransportError
from tests.support.process import ServerProcess

Recipe = Callable[[str], dict[str, Any]]


def quotes(body: dict[str, Any]) -> Reply:
    return says(str(body["messages"][0]["content"]))


@pytest.fixture
def names(recipe: Recipe, model: ScriptedModel) -> dict[str, Any]:
    """The names of the page, which has been run."""
    model.will(
        calls("remember", text="Ann only drinks green tea."),
        says("Noted."),
        quotes,
        answers,
        answers,
        answers,
    )
    return recipe("agent-framework")


MESSAGES = [
    Message("system", ["Be brief."]),
    Message("user", ["Look at this.", Content.from_data(bytes(range(256)) * 500, "image/png")]),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="hm"),
            Content.from_text("I look."),
            Content.from_function_call("c1", "look", arguments='{"b": [1, null, {"é": 2.5}]}'),
        ],
        author_name="helper",
        message_id="m1",
        additional_properties={"k": [1, {"x": None}]},
    ),
    Message("tool", [Content.from_function_result("c1", result="a cat")]),
    Message("assistant", ["It is a cat."]),
    Message("assistant", [""]),
    Message("user", ["z" * 100_000]),
]


def plain(messages: list[Message]) -> list[dict[str, Any]]:
    return [one.to_dict() for one in messages]


def run(names: dict[str, Any], program: Callable[[Any], Any], path: Path) -> None:
    async def main() -> None:
        async with memorywall.open_async(path, agent="ada") as client:
            await program(client)

    names["asyncio"].run(main())


def test_another_process_goes_on(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    ask = names["ask"]
    with ServerProcess(tmp_path / "data") as server:
        opening = f"memorywall.AsyncClient({server.url!r}, {server.dev_key!r})"

        async def begin() -> None:
            model.will(calls("remember", text="Ann only drinks green tea."), says("Noted."))
            async with memorywall.AsyncClient(server.url, server.dev_key) as client:
                assert await ask(client.for_user("ann"), "monday", "I drink green tea.") == "Noted."

        async def end() -> None:
            model.will(quotes, answers)
            async with memorywall.AsyncClient(server.url, server.dev_key) as client:
                await client.forget("ann")
                assert await ask(client.for_user("ann"), "monday", "Which tea?") == "Which tea?"
                told = await ask(client.for_user("ann"), "tuesday", "Which tea?")
                assert told == "I do not know yet."

        names["asyncio"].run(begin())
        model.will(quotes, answers, quotes, answers)
        code = f"""
async def main():
    async with {opening} as client:
        for user in ("ann", "bob"):
            for conversation in ("monday", "tuesday"):
                print(await ask(client.for_user(user), conversation, "Which tea?"))


asyncio.run(main())
"""
        assert run_elsewhere("agent-framework", code, tmp_path).splitlines() == [
            "I drink green tea.", "Green tea.", "Which tea?", "I do not know yet.",
        ]  # fmt: skip
        names["asyncio"].run(end())


def test_it_keeps_what_the_history_of_the_framework_keeps(
    names: dict[str, Any], tmp_path: Path
) -> None:
    many = [Message("user", [str(number)]) for number in range(250)]

    async def compare(client: Any) -> None:
        ann, bob = (names["MemorywallHistory"](client.for_user(one)) for one in ("ann", "bob"))
        theirs = FileHistoryProvider(tmp_path / "files")
        for history in (ann, theirs):
            assert await history.get_messages("s") == []
            await history.save_messages("s", MESSAGES[:2])
            await history.save_messages("s", MESSAGES[2:])
            await history.save_messages("many", many)
            await history.save_messages(None, MESSAGES[:1])
        for name in ("s", "many", None):
            kept = plain(await ann.get_messages(name))
            assert kept == plain(await theirs.get_messages(name))
        assert plain(await ann.get_messages("s")) == plain(MESSAGES)
        assert await bob.get_messages("s") == []
        hits = await client.for_user("ann").memory.search("what is it, a cat?")
        assert hits[0].text == "It is a cat."
        await client.forget("ann")
        for name in ("s", "many", None):
            assert await ann.get_messages(name) == []

    run(names, compare, tmp_path / "memory.db")


def test_its_options_do_what_those_of_the_framework_do(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    """Histories that are written and not read, with what other providers have added."""
    options: dict[str, Any] = {"load_messages": False, "store_context_messages": True}

    async def check(client: Any) -> None:
        ann = client.for_user("ann")
        await ann.remember("Ann only drinks green tea.")
        ours = names["MemorywallHistory"](ann, store_outputs=False, **options)
        theirs = FileHistoryProvider(tmp_path / "files", store_outputs=False, **options)
        for history in (ours, theirs):
            agent = names["Agent"](
                names["OpenAIChatCompletionClient"]("gpt-5-mini"),
                context_providers=[names["MemorywallMemory"](ann), history],
            )
            model.will(answers)
            session = agent.create_session(session_id="s")
            assert (await agent.run("Which tea?", session=session)).text == "Green tea."
        kept = await ours.get_messages("s")
        assert plain(kept) == plain(await theirs.get_messages("s"))
        known = "What is known about the user:\nAnn only drinks green tea."
        assert [one.text for one in kept] == [known, "Which tea?"]

    run(names, check, tmp_path / "memory.db")


def test_a_service_that_stores_the_history_itself_has_the_memories(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    async def check(client: Any) -> None:
        ann = client.for_user("ann")
        agent = names["Agent"](
            OpenAIChatClient("gpt-5-mini"), context_providers=[names["MemorywallMemory"](ann)]
        )
        model.will(calls("remember", text="Ann only drinks green tea."), says("Noted."), answers)
        assert (await agent.run("I only drink green tea, remember that.")).text == "Noted."
        assert (await agent.run("Which tea?")).text == "Green tea."
        assert len(await ann.memory.query(namespace="remembered")) == 1

    run(names, check, tmp_path / "memory.db")


def test_a_server_that_is_away_is_no_silence(names: dict[str, Any]) -> None:
    async def check() -> None:
        async with memorywall.AsyncClient("http://127.0.0.1:9", "mw_none") as client:
            ann = client.for_user("ann")
            for provider in (names["MemorywallHistory"](ann), names["MemorywallMemory"](ann)):
                agent = names["Agent"](OpenAIChatClient("gpt-5-mini"), context_providers=[provider])
                with pytest.raises(MemoryTransportError):
                    await agent.run("Which tea?", session=agent.create_session(session_id="s"))

    names["asyncio"].run(check())
