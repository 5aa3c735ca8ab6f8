"""Episodes, facts and lessons in contexts, conflicts between tiers, and what leaves a context."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from memorywall.kinds.promotions import CONTRADICTS
from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import Edge, KindSpec
from memorywall.longterm.entry_lines import text_of
from memorywall.records.principal import PrincipalKind
from memorywall_testing.base import make_entry
from tests.http.checks import ADMINISTRATOR, MEMORY, NAMESPACES
from tests.http.test_context_memory import assert_shown_again, items
from tests.http.test_contexts import compiled, put
from tests.http.test_sessions import begin
from tests.support.service import RunningService
from tests.work.crew import at, ok

pytestmark = pytest.mark.anyio

QUESTION = "How do we refund an order of the shop?"


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


def shown(context: Any, segment: str) -> dict[str, Any]:
    """The items of a segment, by id, in their order."""
    found = [one for one in context["segments"] if one["name"] == segment]
    return {item["id"]: item for one in found for item in one["items"]}


async def test_a_context_takes_no_memory_that_does_not_answer_or_does_not_hold(
    ada: httpx.AsyncClient,
) -> None:
    office = await put(ada, "office", "The office is in Linz.")
    ended = {"text": "The office is in Graz.", "valid_until": "2020-06-30"}
    await put(ada, "ended", "", value=ended)
    context = await compiled(ada, user="Where is the office?", window=4_000)
    assert list(shown(context, "episodic")) == [office["id"]]
    noise = "Which violinist taught her cousin to repair antique clocks in the office of the mayor?"
    assert shown(await compiled(ada, user=noise, window=4_000), "episodic") == {}


async def test_episodes_and_lessons_stand_in_their_segment_on_a_line_each(
    ada: httpx.AsyncClient,
) -> None:
    value = {
        "trigger": "Refund an order of the shop", "actions": [{"tool": "lookup"}, {"tool": "pay"}],
        "outcome": {"status": "success"}, "context": {"summary": "not for the prompt"},
    }  # fmt: skip
    episode = await put(ada, "five", "", kind="episode", value=value)
    lesson = await put(ada, "lesson", "", kind="escalation_resolution", value={
        "question": QUESTION, "resolution": "Ask the shop for the order."})  # fmt: skip
    stale = await put(ada, "stale", "", kind="escalation_resolution", value={
        "question": QUESTION, "resolution": "Refund an order at once.", "confidence": 0.1,
    })  # fmt: skip
    context = await compiled(ada, user=QUESTION, window=4_000)
    found = shown(context, "episodic")
    assert found[episode["id"]]["content"] == (
        "Asked: Refund an order of the shop; Done: lookup, pay; Outcome: success"
    )
    assert found[episode["id"]]["reason"] == "query, episode"
    assert found[lesson["id"]]["content"] == 'Resolved by: "Ask the shop for the order.".'
    assert found[lesson["id"]]["reason"] == "query, lesson"
    assert stale["id"] not in found, "a lesson that does not act is no memory"
    await assert_shown_again(ada, context)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"subject": "ann", "relation": "works_at", "object": "Acme"}, "ann works at Acme"),
        ({"subject": "ann", "relation": "age", "object": 40, "valid_from": "2026-01-02T00:00:00Z"},
         "ann age 40 (since 2026-01-02)"),
        ({"subject": "Ann", "relation": "owns", "object_id": "mem_1", "attributes": {"since": 3},
          "valid_from": "2026-01-02", "valid_until": "2027-01-02"},
         "Ann owns mem_1; since: 3 (since 2026-01-02, until 2027-01-02)"),
    ],
)  # fmt: skip
def test_a_fact_is_one_line(value: dict[str, Any], line: str) -> None:
    entry = make_entry()
    fact = msgspec.structs.replace(entry, kind="fact", kind_version=1,
                                   value=msgspec.json.encode(value))  # fmt: skip
    assert text_of(fact) == line


@pytest.mark.parametrize("is_found", [True, False])
async def test_where_tiers_disagree_the_curated_memory_stands_first(
    ada: httpx.AsyncClient, *, is_found: bool
) -> None:
    text = "A refund of an order of the shop takes 9 days." if is_found else "Nine."
    curated = await put(ada, "days", text, memory_type="semantic")
    own = await put(ada, "days", "A refund of an order of the shop takes 30 days.")
    context = await compiled(ada, user=QUESTION, window=4_000)
    found = items(context)
    assert list(found).index(curated["id"]) < list(found).index(own["id"])
    assert found[own["id"]]["marks"] == ["contradicted"]
    assert found[own["id"]]["contradicted_by"] == [curated["id"]]
    assert found[curated["id"]]["marks"] == []
    assert found[curated["id"]]["reason"] == (
        "query" if is_found else "prevails over a memory of its name"
    )
    told = await compiled(ada, user=QUESTION, window=4_000, format="text")
    assert "memory with more authority says something else" in told["text"]
    await assert_shown_again(ada, context)


async def test_there_is_no_conflict_with_the_same_words_or_with_hidden_memory(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    text = "A refund of an order of the shop takes 30 days."
    await put(ada, "days", text, memory_type="semantic")
    same = await put(ada, "days", text)
    bob = await service.agent("bob", permissions=ADMINISTRATOR)
    hidden = await put(bob, "limit", "Nine.", namespace="secret", memory_type="semantic")
    change = {"permissions": {"default": "none"}}
    ok(await bob.patch(f"{NAMESPACES}/secret", json=change))
    other = await put(ada, "limit", f"{text} It is limited.", namespace="secret")
    found = items(await compiled(ada, user=QUESTION, window=4_000))
    assert found[same["id"]]["marks"] == found[other["id"]]["marks"] == []
    assert hidden["id"] not in found


async def test_a_conflict_that_arises_later_moves_the_other_side_behind(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada)
    own = await put(ada, "days", "A refund of an order of the shop takes 30 days.")
    asked = {"session_id": talk.id, "window": 4_000, "user": QUESTION}
    assert own["id"] in shown(await compiled(ada, **asked), "episodic")
    curated = await put(ada, "days", "Nine days, by the law.", memory_type="semantic")
    for _ in range(2):
        found = list(items(await compiled(ada, **asked)))
        assert found.index(curated["id"]) < found.index(own["id"])


@pytest.mark.parametrize("memory_type", ["semantic", "episodic"])
async def test_what_is_superseded_leaves_the_slices_of_a_session(
    ada: httpx.AsyncClient, memory_type: str
) -> None:
    talk = await begin(ada)
    old = await put(ada, "old", "A refund of an order takes 30 days.", memory_type=memory_type)
    asked = {"session_id": talk.id, "window": 4_000}
    assert old["id"] in items(await compiled(ada, **asked, user=QUESTION))
    kept = items(await compiled(ada, **asked, user="What is the weather?"))
    assert kept[old["id"]]["reason"] == "kept"
    new = await put(ada, "new", "It is 9 days.", memory_type=memory_type)
    path = f"{MEMORY}/{old['id']}/superseded_by"
    ok(await ada.put(path, json={"newer_id": new["id"]}, headers=at(1)))
    for question in ("What is the weather?", QUESTION):
        assert old["id"] not in items(await compiled(ada, **asked, user=question))


class _Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    against: str = ""


def _against(value: Any) -> list[Edge]:
    return [Edge(CONTRADICTS, value.against, is_id=True)] if value.against else []


async def test_of_two_memories_that_contradict_each_other_the_higher_authority_prevails(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    kind = KindSpec(name="made_up_claim", schema=_Claim, description="A claim.", edges=_against)
    user = await service.agent("mia", kind=PrincipalKind.USER)
    with register_kind(kind):

        async def claim(client: httpx.AsyncClient, key: str, text: str, **value: str) -> str:
            made = await put(client, key, "", kind=kind.name, memory_type="semantic",
                             namespace=f"of-{key}", value={"text": text, **value})  # fmt: skip
            name: str = made["id"]
            return name

        curated = await claim(user, "curated", "A refund of an order takes 9 days.")
        learned = await claim(ada, "learned", "An order has a refund in a day.", against=curated)
        newer = await claim(ada, "newer", "A refund of an order takes a week.", against=learned)
        found = items(await compiled(ada, user=QUESTION, window=4_000))
    assert found[curated]["contradicted_by"] == []
    assert found[learned]["contradicted_by"] == [curated]
    assert found[newer]["contradicted_by"] == []
    assert list(found).index(curated) < list(found).index(learned)
