"""`client.context`, sync and async, over a store in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import ContextBudgetError
from memorywall.sdk.client import Client
from memorywall.wire.contexts import ContextItemResponse
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
        with pytest.raises(ContextBudgetError) as refused:
            client.context(system="word " * 100, window=50)
        assert refused.value.needed is not None
        assert refused.value.needed > 50


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
