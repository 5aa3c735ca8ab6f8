"""Who says something changes its score: roles of a chat are no names."""

from __future__ import annotations

import json
from itertools import count

import pytest

from memorywall.recall.query_parser import asks_assistant
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ANN = agent("ann")


_sessions = count()


async def _say(recall: RecallService, author: str, text: str, tier: Tier = Tier.SESSION) -> None:
    value = {"text": text, "author": author}
    # Each in a session of its own, so that no neighbour counts.
    scope = {"session_id": f"s{next(_sessions)}"}
    await recall.write(ANN, value, tier, scope=scope)


async def _authors(recall: RecallService, query: str) -> list[str]:
    page = await recall.search(ANN, query)
    return [json.loads(hit.entry.value)["author"] for hit in page.hits]


async def test_what_a_person_says_comes_before_what_an_assistant_says(
    recall: RecallService,
) -> None:
    for author in ("assistant", "user", "Assistant"):
        await _say(recall, author, "a trip to Lisbon in spring")
    assert (await _authors(recall, "trip to Lisbon"))[0] == "user"


async def test_a_query_for_what_the_assistant_said_changes_that(recall: RecallService) -> None:
    # With equal scores the order is that of the writes.
    for author in ("assistant", "user"):
        await _say(recall, author, "a hotel in Lisbon near the river")
    assert (await _authors(recall, "hotel in Lisbon near the river"))[0] == "user"
    asked = "which hotel in Lisbon near the river did you recommend?"
    assert (await _authors(recall, asked))[0] == "assistant"


async def test_a_word_that_only_the_assistant_said_counts_in_full(recall: RecallService) -> None:
    scope = {"session_id": "one"}
    for author, text in (
        ("user", "Which dish shall I cook tonight?"),
        ("assistant", "A risotto with saffron, risotto is quick"),
        ("user", "Thank you, and which wine?"),
    ):
        await recall.write(ANN, {"text": text, "author": author}, Tier.SESSION, scope=scope)
    # The messages beside it, which have its words as neighbours, come after it.
    assert (await _authors(recall, "the risotto"))[0] == "assistant"
    await _say(recall, "user", "I burnt the risotto")
    assert (await _authors(recall, "the risotto"))[0] == "user"


async def test_a_role_in_a_query_is_no_author(recall: RecallService) -> None:
    await _say(recall, "user", "the weather is fine")
    await _say(recall, "system", "each user has a limit of storage")
    assert await _authors(recall, "limit of storage for a user") == ["system"]


async def test_only_a_question_among_people_gives_way_to_statements(recall: RecallService) -> None:
    for author in ("ann", "bob"):
        mark = "?" if author == "ann" else "."
        await _say(recall, author, f"parcels go to Porto{mark}")
    assert (await _authors(recall, "parcels to Porto"))[0] == "bob"
    for author, tier in (("user", Tier.SESSION), ("carla", Tier.SEMANTIC)):
        await _say(recall, author, "ships go to Genoa?", tier)
        await _say(recall, author, "ships go to Genoa.", tier)
    page = await recall.search(ANN, "ships to Genoa", explain=True)
    signals = [hit.signals for hit in page.hits if hit.signals is not None]
    assert len(signals) == 4
    assert len({one.lexical for one in signals}) == 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did you recommend for the trip?", True),
        ("What was your last suggestion about tests?", True),
        ("What did the assistant say?", True),
        ("Can you help me with the trip?", False),
        ("I told you about my knee", False),
    ],
)
def test_queries_for_what_an_assistant_said_are_recognised(query: str, expected: bool) -> None:
    assert asks_assistant(query) is expected
