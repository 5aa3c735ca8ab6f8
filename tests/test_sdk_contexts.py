"""`client.context`, sync and async, over a store in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memorywall
from memorywall.exceptions import ContextBudgetError
from memorywall.sdk.client import Client
from memorywall.sdk.contexts import tokens_of
from memorywall.wire.contexts import ContextItemResponse, ContextResponse
from tests.support.backend import store_of


def test_a_context_is_compiled_shown_and_judged(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        turn = session.add("user", "The invoice is 89 euros.")
        context = client.context(session.id, user="How much?", window=2_000, format="openai")
        assert context.messages is not None
        assert [one["content"] for one in context.messages] == [
            "The invoice is 89 euros.", "How much?"
        ]  # fmt: skip
        assert context.id is not None
        assert client.context.get(context.id, format="openai").messages == context.messages
        told = client.context.outcome(context.id, "success", used=[turn.id])
        assert told.counted == [turn.id]
        answer = client.memory.put("answers", "a", {"total": 89}, context_id=context.id)
        assert answer.provenance is not None
        assert answer.provenance.context == context.id
        with pytest.raises(ContextBudgetError) as refused:
            client.context(system="word " * 100, window=50)
        assert refused.value.needed is not None
        assert refused.value.needed > 50


def test_a_context_of_many_turns_is_stored_shown_again_and_judged(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        for start in range(0, 300, 100):
            session.add_many({"role": "user", "content": f"{start + one}"} for one in range(100))
        context = client.context(session.id, user="How many?", format="openai")
        assert context.messages is not None
        assert len(context.messages) == 301
        assert context.id is not None
        used = [context.segments[0].items[0].id]
        assert client.context.outcome(context.id, "success", used=used).counted == used
        assert client.context.outcome(context.id, "success", used=used).counted == []
        assert client.context.get(context.id, format="openai").messages == context.messages


def test_a_context_is_within_its_window_by_the_counter_of_the_client(place: Path | str) -> None:
    def count(text: str) -> int:
        return len(text)  # More than twice the estimate.

    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        for number in range(30):
            session.add("user", f"Invoice {number} is {number * 7} euros and waits for a reply.")
            session.add("assistant", f"I have noted invoice {number}.")
        tool = {"type": "function", "function": {"name": "pay", "parameters": {}}}
        given: dict[str, Any] = {
            "user": "How much is invoice 3?", "system": "Be brief.", "tools": [tool],
            "window": 2_000, "reserve": 200,
        }  # fmt: skip
        for format in ("segments", "openai", "anthropic", "text"):
            plain = client.context(session.id, format=format, **given)
            assert tokens_of(plain, count) > 1_800
            context = client.context(session.id, format=format, count=count, **given)
            assert (context.window, context.reserve) == (2_000, 200)
            assert 1_400 < context.tokens == tokens_of(context, count) <= 1_800
            assert context.id is not None
            assert client.context.get(context.id, format=format).messages == context.messages
        # A counter with lower numbers changes nothing, and no request is repeated.
        asked: list[str] = []

        def lower_count(text: str) -> int:
            asked.append(text)
            return 1

        lower = client.context(session.id, count=lower_count, store=False, **given)
        assert lower.segments == client.context(session.id, store=False, **given).segments
        assert len(asked) == len(set(asked))
        with pytest.raises(ContextBudgetError) as refused:
            client.context(system="word " * 500, window=2_000, count=count)
        assert "count" in str(refused.value)


def test_content_that_is_no_text_is_counted() -> None:
    image = {"type": "image", "source": {"data": "A" * 9_000}}
    result = {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": [{"type": "text", "text": "ab"}],
    }
    use = {"type": "tool_use", "id": "1", "name": "pay", "input": {}}
    call = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    shown = ContextResponse(
        id=None, window=9, reserve=0, tokens=0, strategy="recency", segments=[],
        system=[{"type": "text", "text": "abc"}],
        messages=[
            {"role": "user", "content": [image, result]},
            {"role": "assistant", "content": [use]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ],
    )  # fmt: skip
    written = len(json.dumps(use)) + len(json.dumps(call))
    assert tokens_of(shown, len) == 3 + 3 * 6 + 1_000 + (6 + 2) + 6 + 6 + written


def _derived(client: Client) -> tuple[str, str]:
    """A fact whose source has changed, and another one; their ids."""
    document = client.memory.set("notes", "policy", {"text": "Refunds take 30 days."}, "episodic")
    for key in ("fact", "other"):
        text = {"text": f"The {key} about refunds of ann."}
        client.memory.set("notes", key, text, "episodic", derived_from=[document])
    client.memory.set("notes", "policy", {"text": "Refunds take 10 days."}, "episodic")
    return client.memory.get("notes", "fact").id, client.memory.get("notes", "other").id


def test_marked_items_are_checked_by_a_function(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        fact, other = _derived(client)
        asked: list[str] = []

        def is_right(item: ContextItemResponse) -> bool:
            assert item.marks == ["source_changed"]
            assert "about refunds" in str(item.content)
            asked.append(item.id)
            return item.id == fact

        context = client.context(user="refunds?", window=2_000, format="text")
        assert str(context.text).count("source_changed") == 2
        checked = client.context(user="refunds?", window=2_000, format="text", revalidate=is_right)
        assert sorted(asked) == sorted((fact, other))
        shown = {item.id for segment in checked.segments for item in segment.items}
        assert fact in shown
        assert other not in shown
        assert "source_changed" not in str(checked.text)


@pytest.mark.anyio
async def test_the_function_may_be_a_coroutine(tmp_path: Path) -> None:
    place = store_of(tmp_path) or tmp_path / "memory.db"
    with memorywall.open(place, agent="ada") as client:
        _, other = _derived(client)

    async def is_right(item: object) -> bool:
        return False

    async with memorywall.open_async(place, agent="ada") as client:
        context = await client.context(user="refunds?", window=2_000, revalidate=is_right)
        assert {one.reason for one in context.dropped} == {"rejected"}
        assert other in {one.id for one in context.dropped}
