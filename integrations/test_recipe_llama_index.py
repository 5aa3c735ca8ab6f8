"""The recipe for LlamaIndex; its chat store beside the one that LlamaIndex has for SQL."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

import memorywall
from integrations.scripted_model import Reply, ScriptedModel, says

MESSAGES = [
    ChatMessage(role="user", content="Hello"),
    ChatMessage(role="assistant", content=""),
    ChatMessage(role="system", content="Be kind."),
    ChatMessage(role="tool", content="in Bonn", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [{"id": "c1"}]}),
    ChatMessage(role="user", blocks=[TextBlock(text="a"), ImageBlock(url="https://a.example/b")]),
    ChatMessage(role="user", content="z" * 100_000),
]


def answers(body: dict[str, Any]) -> Reply:
    knows = "I only drink green tea." in json.dumps(body)
    return says("Green tea." if knows else "I do not know yet.")


def test_the_page(recipe: Callable[[str], dict[str, Any]], model: ScriptedModel) -> None:
    model.will(says("Noted."), *[answers] * 4)
    names = recipe("llama-index")
    _, second, third, *_ = model.requests
    assert [one["role"] for one in second["messages"]].count("user") == 2
    assert [one["role"] for one in third["messages"]].count("user") == 1
    asyncio.run(_compare_with_theirs(names["MemorywallChatStore"]))
    asyncio.run(_archive_what_is_too_long(names["MemorywallChatStore"]))


async def _compare_with_theirs(store: Callable[..., Any]) -> None:
    """Random calls have the same results with both stores. Messages that begin as archived, which
    `Memory` never adds, stand in another place among all and are tried apart."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    statuses = list(MessageStatus)
    async with memorywall.open_async("compared.db", agent="helper") as client:
        ours, theirs = store(client=client.for_user("ann")), SQLAlchemyChatStore("talks")
        for _ in range(40):
            some = chosen.choices(MESSAGES, k=chosen.randrange(1, 4))
            status = chosen.choice(statuses)
            name, arguments = chosen.choice([
                ("add_messages", (some,)), ("add_message", (some[0],)), ("set_messages", (some,)),
                ("archive_oldest_messages", (chosen.randrange(4),)),
                ("delete_oldest_messages", (chosen.randrange(3),)),
                ("delete_messages", (status,)),
                ("count_messages", (status,)), ("get_messages", (None, 2, 1)),
            ])  # fmt: skip
            results = [await getattr(one, name)("talk", *arguments) for one in (ours, theirs)]
            assert results[0] == results[1], name
            for one in statuses:
                assert await ours.get_messages("talk", one) == await theirs.get_messages(
                    "talk", one
                ), name
        await ours.set_messages("talk", MESSAGES[:3])
        assert await ours.get_keys() == ["talk"]
        assert await ours.delete_message("talk", 1) == MESSAGES[1]
        assert await ours.delete_message("talk", 7) is None
        assert await ours.get_messages("talk") == [MESSAGES[0], MESSAGES[2]]
        await ours.add_messages("talk", MESSAGES[3:5], MessageStatus.ARCHIVED)
        assert await ours.get_messages("talk", MessageStatus.ARCHIVED) == MESSAGES[3:5]
        assert await ours.get_messages("talk") == [MESSAGES[0], MESSAGES[2]]
        assert await store(client=client.for_user("bob")).get_keys() == []


async def _archive_what_is_too_long(store: Callable[..., Any]) -> None:
    async with memorywall.open_async("long.db", agent="helper") as client:
        memory = Memory.from_defaults("talk", chat_store=store(client=client), token_limit=200)
        for number in range(20):
            await memory.aput(ChatMessage(role="user", content=f"My order {number} is late. " * 3))
            await memory.aput(ChatMessage(role="assistant", content="I see."))
        assert len(await memory.aget()) < 40
        assert len(await memory.aget_all(status=None)) == 40
