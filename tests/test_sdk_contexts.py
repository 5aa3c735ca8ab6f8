"""`client.context`, sync and async, over a store in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import ContextBudgetError


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
