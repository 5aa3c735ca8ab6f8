"""What a context says of the turns that it has no room for."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

import memorywall
from tests.http.test_contexts import compiled, names, talk_of
from tests.http.test_sessions import Talk, begin
from tests.support.backend import store_of
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

_PROBLEM = (
    "My name is Ann Lee. I was charged twice for order 4711, 247.50 EUR each, on the card that ends"
    " with 88-17, and nobody has answered any of my letters about it since. If the refund is not"
    " there by Friday, I will file a chargeback."
)
_SAID = ("4711", "247.50", "88-17", "Friday", "chargeback")
_WINDOWS = (1_500, 2_000, 4_000, 8_000, 16_000)


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _converse(talk: Talk, source: Random, number: int) -> None:
    """Adds an answer, and the next question."""
    told = "Tomatoes like sun and water. " * source.randint(1, 12)
    asked = f"Question {number}: please tell me something about gardens and the weather."
    turns = [{"role": "assistant", "content": told}, {"role": "user", "content": asked}]
    await talk.do("POST", "/turns", turns=turns)


def _shown(context: dict[str, Any]) -> str:
    return str([item["content"] for segment in context["segments"] for item in segment["items"]])


@pytest.mark.parametrize("windows", [(1_500,), (4_000,), _WINDOWS], ids=["least", "4000", "any"])
async def test_no_context_loses_what_the_first_turn_says(
    ada: httpx.AsyncClient, windows: tuple[int, ...]
) -> None:
    source = Random(chosen_seed())
    talk = await begin(ada, subject="ann")
    await talk.add(_PROBLEM)
    compacted = 0
    for number in range(150):
        await _converse(talk, source, number)
        strategies = ("hierarchical", "hierarchical", "recency", "importance", "compaction")
        context = await compiled(
            ada, session_id=talk.id, window=source.choice(windows), system="Be brief.",
            strategy=source.choice(strategies), store=source.random() < 0.9,
        )  # fmt: skip
        text = _shown(context)
        assert all(one in text for one in _SAID), (number, context["window"], context["strategy"])
        compacted += "summary" in names(context)
    assert compacted > 20


async def test_every_turn_is_in_the_context_or_in_its_summary(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    source = Random(chosen_seed())
    talk = await begin(ada, subject="ann")
    reader = await service.agent("bob")
    await ada.put(f"/api/v1/sessions/{talk.id}/participants/bob", json={"access": "read"})
    told = 0
    for _ in range(extent(25, long=100)):
        turns: list[dict[str, Any]] = []
        for _ in range(source.choice((1, 2, 30))):
            told += 1
            call = {"id": f"c{told}", "name": "look"}
            text = f"The invoice number is {told}. " * source.choice((1, 1, 1, 30))
            turns += source.choice([
                [{"role": "user", "content": text}],
                [
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "content": text, "tool_call_id": call["id"]},
                ],
            ])  # fmt: skip
        await talk.do("POST", "/turns", turns=turns)
        # A participant that only reads gets a summary as well.
        context = await compiled(
            source.choice((ada, reader)), session_id=talk.id, window=source.choice(_WINDOWS),
            user="And now?", store=False,
        )  # fmt: skip
        covered = (await talk.do("GET"))["counts"]["summarized_through"]
        known = (await ada.get(f"/api/v1/sessions/{talk.id}/turns?limit=1000")).json()["turns"]
        sequences = {one["id"]: one["sequence"] for one in known}
        shown = {item["id"] for segment in context["segments"] for item in segment["items"]}
        assert all(at <= covered for name, at in sequences.items() if name not in shown)
        assert shown.issuperset(sequences) or "summary" in names(context)


async def test_a_session_takes_its_token_budget_at_most(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada, token_budget=200)
    source = Random(chosen_seed())
    for number in range(30):
        await _converse(talk, source, number)
        for strategy in ("recency", "importance", "compaction", "hierarchical"):
            context = await compiled(
                ada, session_id=talk.id, user="What of question 3?", window=8_000, strategy=strategy
            )
            taken = [
                item["tokens"] for segment in context["segments"] for item in segment["items"]
                if segment["name"] in {"summary", "turns", "added"}
            ]  # fmt: skip
            assert sum(taken) <= 200
            assert all(
                segment["tokens"] <= segment["budget"] <= 200
                for segment in context["segments"] if segment["name"] in {"summary", "turns"}
            )  # fmt: skip
        # The turn that is to be answered is there in any case.
        context = await compiled(ada, session_id=talk.id, window=8_000)
        assert f"Question {number}" in _shown(context)
    assert {"summary", "turns"} <= set(names(context))
    await talk.do("PATCH", token_budget=None)
    whole = await compiled(ada, session_id=talk.id, user="And now?", window=9_000)
    shown = {one["name"]: one["items"] for one in whole["segments"]}
    assert (len(shown["turns"]), "summary" in shown) == (60, False)


async def test_compaction_keeps_the_newest_turns_beside_a_summary(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    source = Random(chosen_seed())
    for number in range(8):
        await _converse(talk, source, number)
    await talk.do("POST", "/checkpoints", trigger="periodic")
    context = await compiled(
        ada, session_id=talk.id, user="And now?", window=8_000, strategy="compaction"
    )
    shown = {one["name"]: one["items"] for one in context["segments"]}
    assert (len(shown["summary"]), len(shown["turns"])) == (1, 16)


async def test_sessions_of_short_processes_are_summarized(tmp_path: Path) -> None:
    place = store_of(tmp_path) or str(tmp_path / "memory.db")
    through = []
    for part in range(4):
        with memorywall.open(place, agent="ada") as client:
            session = client.sessions.create("ann", reuse=True)
            through.append(session.refresh().counts.summarized_through)
            session.add_many(
                {
                    "role": "user",
                    "content": f"Text {part}-{at} on tomatoes, which like the sun. " * 3,
                }
                for at in range(55)
            )
    assert through[0] == 0
    assert through[-1] >= 110
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann", reuse=True)
        context = client.context(session.id, user="And now?", window=4_000)
        assert "summary" in [segment.name for segment in context.segments]


async def test_the_settings_change_the_weights_of_turns(tmp_path: Path) -> None:
    shown = []
    for name, weights in (("a", ()), ("b", ("user=0", "assistant=1"))):
        directory = tmp_path / name
        directory.mkdir()
        async with open_service(directory, turn_weights=weights) as service:
            ada = await service.agent("ada")
            talk = await talk_of(ada, 60)
            context = await compiled(
                ada, session_id=talk.id, window=1_500, strategy="importance", user="And now?"
            )
            turns = next(one["items"] for one in context["segments"] if one["name"] == "turns")
            known = (await ada.get(f"/api/v1/sessions/{talk.id}/turns?limit=100")).json()["turns"]
            roles = {one["id"]: one["role"] for one in known}
            said = [roles[one["id"]] for one in turns]
            shown.append(said.count("user") / len(said))
    assert shown[1] < 0.3 < 0.5 < shown[0]
