"""A query for an order or a development gets results of several sessions."""

from __future__ import annotations

import json

import pytest

from memorywall.recall.series import asks_for_series
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ANN = agent("ann")


async def _told(recall: RecallService, query: str) -> list[str]:
    """The sessions of the results, best first."""
    page = await recall.search(ANN, query)
    return [json.loads(hit.entry.value)["in"] for hit in page.hits]


async def test_sessions_take_turns_in_a_series(recall: RecallService) -> None:
    for number in range(4):
        text = f"news of the garden {number}"
        await recall.write(
            ANN, {"text": text, "in": "long", "n": number}, Tier.SESSION,
            scope={"session_id": "long"},
        )  # fmt: skip
    for name in ("second", "third"):
        value = {"text": "news of the garden and of the roof as well", "in": name}
        await recall.write(ANN, value, Tier.SESSION, scope={"session_id": name})
    assert set((await _told(recall, "news of the garden"))[:4]) == {"long"}
    ordered = await _told(recall, "in which order did I have news of the garden?")
    assert set(ordered[:4]) == {"long", "second", "third"}
    assert sorted(ordered) == sorted(await _told(recall, "news of the garden"))


async def test_explain_names_the_factor_of_a_series(recall: RecallService) -> None:
    for number in range(3):
        value = {"text": f"the garden, part {number}"}
        await recall.write(ANN, value, Tier.SESSION, scope={"session_id": "one"})
    page = await recall.search(ANN, "how did the garden develop over the months?", explain=True)
    factors = []
    for hit in page.hits:
        parts = hit.signals
        assert parts is not None
        total = parts.lexical + parts.dense + parts.thread + parts.author + parts.date
        assert hit.score == pytest.approx(total * parts.prior * parts.superseded * parts.series)
        factors.append(parts.series)
    assert factors == pytest.approx([1.0, 0.85, 0.85**2])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("In which order did I look at the flats?", True),
        ("Can you list the order in which I brought up my plans?", True),
        ("Walk me through how my training developed.", True),
        ("How has the budget changed since spring?", True),
        ("I called in order to complain", False),
        ("Which order is late?", False),
        ("What did I order?", False),
    ],
)
def test_queries_for_a_series_are_recognised(query: str, expected: bool) -> None:
    assert asks_for_series(query) is expected
