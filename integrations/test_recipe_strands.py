"""The recipe for Strands Agents: the page, and its own session manager on the same calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strands.memory import MemoryManager
from strands.session import FileSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import memorywall
from integrations.other_process import run_elsewhere
from integrations.scripted_model import Reply, ScriptedModel, calls, says
from integrations.tea import answers
from memorywall.exceptions import MemoryTransportError, ResourceConflictError
from tests.support.process import ServerProcess

Recipe = Callable[[str], dict[str, Any]]

MESSAGES: list[Any] = [
    {"role": "user", "content": [{"text": "Look at this."}, {"text": "And say what it is."}]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"text": "I look."},
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"b": [1, None, {"é": 2.5}]}}},
        ],
        "metadata": {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}},
        "tracking_id": "17",
    },
    {
        "role": "user",
        "content": [
            {
                "toolResult": {
                    "toolUseId": "t1",
                    "status": "success",
                    "content": [{"json": {"n": 1}}, {"text": "a cat"}],
                }
            }
        ],
    },
    {
        "role": "user",
        "content": [{"image": {"format": "png", "source": {"bytes": bytes(range(256)) * 500}}}],
    },
    {"role": "assistant", "content": [{"text": ""}]},
    {"role": "assistant", "content": [{"text": "z" * 100_000}]},
]


def quotes(body: dict[str, Any]) -> Reply:
    return says(next(one["content"][0]["text"] for one in body["messages"]))


@pytest.fixture
def names(recipe: Recipe, model: ScriptedModel) -> dict[str, Any]:
    """The names of the page, which has been run."""
    model.will(
        calls("add_memory", entries=["Ann only drinks green tea."]),
        says("Noted."),
        quotes,
        answers,
        answers,
        answers,
    )
    return recipe("strands")


def test_another_process_goes_on(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path / "data") as server:
        key = server.dev_key
        with memorywall.Client(server.url, key) as client:
            ann = client.for_user("ann")
            model.will(calls("add_memory", entries=["Ann only drinks green tea."]), says("Noted."))
            assert names["ask"](ann, "monday", "I only drink green tea.") == "Noted."
            model.will(quotes, answers, quotes, answers)
            opening = f"with memorywall.Client({server.url!r}, {key!r}) as client:\n"
            asks = "".join(
                f"    print(ask(client.for_user({user!r}), {conversation!r}, 'Which tea?'))\n"
                for user in ("ann", "bob")
                for conversation in ("monday", "tuesday")
            )
            printed = run_elsewhere("strands", opening + asks, tmp_path)
            assert printed.splitlines() == [
                "I only drink green tea.", "Green tea.", "Which tea?", "I do not know yet.",
            ]  # fmt: skip
            client.forget("ann")
            model.will(quotes, answers)
            assert names["ask"](ann, "monday", "Which tea?") == "Which tea?"
            assert names["ask"](ann, "tuesday", "Which tea?") == "I do not know yet."


def test_it_keeps_what_the_session_manager_of_strands_keeps(
    names: dict[str, Any], tmp_path: Path
) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        ours = names["MemorywallRepository"](client.for_user("ann"))
        theirs = FileSessionManager("theirs", str(tmp_path / "files"))
        session = Session("s", SessionType.AGENT)
        agent = SessionAgent("a", {"n": 1}, {"removed_message_count": 0}, {"interrupt_state": {}})
        messages = [SessionMessage(one, at) for at, one in enumerate(MESSAGES)]
        removed: Any = {"role": "user", "content": [{"text": "[removed]"}]}
        redacted = replace(messages[2], redact_message=removed)
        newer = SessionAgent("a", {"n": 2}, {"removed_message_count": 3}, created_at="never")
        seen: list[list[Any]] = []
        for store in (ours, theirs):
            found: list[Any] = [store.read_session("s")]
            with pytest.raises(SessionException):
                store.update_agent("s", agent)
            store.create_session(session)
            found += [store.read_session("s"), store.read_agent("s", "a")]
            store.create_agent("s", agent)
            for message in messages:
                store.create_message("s", "a", message)
            found += [store.read_agent("s", "a"), store.list_messages("s", "a")]
            found += [store.list_messages("s", "a", limit=2, offset=3)]
            found += [store.read_message("s", "a", at) for at in (0, 5, 6)]
            store.update_message("s", "a", redacted)
            store.update_agent("s", newer)
            found += [store.list_messages("s", "a"), store.read_agent("s", "a")]
            with pytest.raises(SessionException):
                store.list_messages("s", "b")
            seen.append(found)
        assert seen[0] == seen[1]
        assert [one.to_message() for one in seen[0][-2]][2] == redacted.redact_message

        bob = names["MemorywallRepository"](client.for_user("bob"))
        assert bob.read_session("s") is None
        assert bob.read_agent("s", "a") is None
        hits = client.for_user("ann").memory.search("what is in this picture: look")
        assert hits[0].text == "Look at this.\nAnd say what it is."
        with pytest.raises(ResourceConflictError):
            ours.create_message("s", "a", SessionMessage(MESSAGES[0], 5))
        client.forget("ann")
        assert ours.read_session("s") is None
        assert ours.read_agent("s", "a") is None


def test_a_person_has_a_memory_of_its_own(names: dict[str, Any], tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        ann, bob = (
            MemoryManager([names["MemorywallStore"](client.for_user(user))])
            for user in ("ann", "bob")
        )

        async def use() -> None:
            await ann.add("Ann eats no nuts.", {"metadata": {"channel": "mail"}})
            await ann.add("Ann lives in Bonn.")
            await bob.add("Bob eats everything with nuts.")
            (hit,) = await ann.search("Are nuts all right?", {"max_search_results": 1})
            assert hit.content == "Ann eats no nuts."
            assert hit.store_name == "memorywall"
            entry = client.memory.get_by_id(hit.metadata["id"])
            assert entry.subjects == ("ann",)
            assert entry.value["metadata"] == {"channel": "mail"}
            assert [one.content for one in await bob.search("nuts")] == [
                "Bob eats everything with nuts."
            ]
            await ann.add("Ann eats no nuts.")
            assert client.for_user("ann").memory.count() == 2, "the same was stored twice"
            client.forget("ann")
            assert await ann.search("nuts") == []
            assert len(await bob.search("nuts")) == 1

        asyncio.run(use())


def test_a_server_that_is_away_is_no_silence(
    names: dict[str, Any], model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    with memorywall.Client("http://127.0.0.1:9", "mw_none") as client:
        store = names["MemorywallStore"](client.for_user("ann"))
        with pytest.raises(MemoryTransportError):
            asyncio.run(store.search("nuts"))
        with pytest.raises(MemoryTransportError):
            names["ask"](client.for_user("ann"), "monday", "Which tea?")
        agent = names["Agent"](
            names["OpenAIModel"](model_id="gpt-5-mini", stream=False),
            memory_manager=MemoryManager([store]),
            callback_handler=None,
        )
        model.will(answers)
        assert str(agent("Which tea?")).strip() == "I do not know yet."
        assert [one for one in caplog.records if one.levelname == "WARNING"]
