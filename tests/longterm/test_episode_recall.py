"""Recall of episodes: its score, its profiles, its filters and its budget."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.longterm.episode_recall import recall_episodes
from memorywall.records.episode_recall import PROFILES
from memorywall.records.filter import EntryFilter
from memorywall.records.recall import EntryOutcome
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.episodes import RecallEpisodesRequest
from memorywall.wire.operations import OPERATIONS_BY_NAME
from tests.http.checks import MEMORY, assert_problem
from tests.recall.recall_service import agent, open_recall
from tests.support.embedder import WordEmbedder
from tests.support.service import RunningService
from tests.work.crew import ok

pytestmark = pytest.mark.anyio

RECALL = "/api/v1/episodes/recall"
CONTEXT = "/api/v1/context"
DAY = 24 * 3600
TASK = "refund an order"


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def tell(client: httpx.AsyncClient, key: str, trigger: str = TASK, **parts: Any) -> str:
    """The id of a new episode.

    parts: `status`, `correction` and `error` of its outcome, and members of its value
    """
    outcome = {"status": parts.pop("status", "success")}
    outcome |= {name: parts.pop(name) for name in ("correction", "error") if name in parts}
    subjects = parts.pop("subjects", [])
    draft = {
        "namespace": "work", "key": key, "memory_type": "episodic", "kind": "episode",
        "value": {"trigger": trigger, "outcome": outcome, **parts}, "subjects": subjects,
    }  # fmt: skip
    made: str = ok(await client.post(MEMORY, json=draft), 201)["id"]
    return made


async def recall(client: httpx.AsyncClient, query: str = TASK, **asked: Any) -> Any:
    return ok(await client.post(RECALL, json={"query": query, **asked}))


def ids(found: Any) -> list[str]:
    return [one["entry"]["id"] for one in found["episodes"]]


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_weights_of_each_profile_sum_to_one(profile: Any) -> None:
    weights = profile.weights
    total = weights.similarity + weights.recency + weights.outcome + weights.use
    assert total == pytest.approx(1)


async def test_a_score_is_the_weighted_sum_of_its_parts(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    old = await tell(ada, "old", evaluation={"correctness": 0.8, "human_rating": 0.5})
    service.clock.advance(30 * DAY)
    helped = await tell(ada, "helped", "refund a parcel")
    context = ok(await ada.post(CONTEXT, json={"user": "refund a parcel", "window": 4_000}))
    feedback = {"used": [helped], "outcome": "success"}
    ok(await ada.post(f"{CONTEXT}/{context['id']}/outcome", json=feedback))
    found = await recall(ada)
    weights = found["weights"]
    parts = {one["entry"]["id"]: one for one in found["episodes"]}
    assert set(parts) == {old, helped}
    for one in parts.values():
        assert one["method"] == "containment"
        assert one["score"] == pytest.approx(sum(weights[name] * one[name] for name in weights))
    assert parts[old]["similarity"] == 1
    assert parts[old]["recency"] == pytest.approx(0.5)
    assert parts[old]["outcome"] == pytest.approx(0.8 * 1.5)
    assert parts[old]["use"] == 0
    assert parts[helped]["similarity"] == pytest.approx(0.5), "refund, of refund and order"
    assert parts[helped]["recency"] == 1
    assert parts[helped]["outcome"] == 0.5, "nobody has assessed it"
    assert parts[helped]["use"] == pytest.approx(math.log(2) / math.log(33))


async def test_what_is_shown_often_is_not_used_often(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    one = await tell(ada, "one")
    await recall(ada)
    assert not service.services.usage_tracker.used["default"], "a recall counts as no use"
    # What searches have shown, as the job writes it.
    await service.services.store.write("default", lambda to: to.recall.add_uses({one: 30}))
    (shown,) = (await recall(ada))["episodes"]
    assert shown["use"] == 0


async def test_a_profile_wants_outcomes_and_a_request_may_want_others(
    ada: httpx.AsyncClient,
) -> None:
    good = await tell(ada, "good")
    bad = await tell(ada, "bad", status="failure", error="no money")
    right = await tell(ada, "right", status="failure", correction="Ask first.")
    expected = {"general": {good, bad, right}, "execution": {good}, "diagnosis": {bad},
                "improvement": {right}}  # fmt: skip
    assert {name: set(ids(await recall(ada, profile=name))) for name in PROFILES} == expected
    assert ids(await recall(ada, profile="execution", outcome="failure")) == [bad]
    assert PROFILES["diagnosis"].outcome is EntryOutcome.FAILURE
    only_similar = {"similarity": 0.0, "recency": 0.0, "outcome": 1.0, "use": 0.0}
    assert ids(await recall(ada, weights=only_similar))[-1] == bad


async def test_an_episode_that_does_not_fit_makes_room_for_one_that_does(
    ada: httpx.AsyncClient,
) -> None:
    long = await tell(ada, "long", f"{TASK} {'which came broken ' * 12}",
                      evaluation={"correctness": 1})  # fmt: skip
    short = await tell(ada, "short", evaluation={"correctness": 0.1})
    whole = await recall(ada)
    assert ids(whole) == [long, short]
    assert whole["tokens"] == sum(one["tokens"] for one in whole["episodes"])
    budget = whole["episodes"][0]["tokens"] - 1
    found = await recall(ada, budget_tokens=budget)
    assert ids(found) == [short]
    assert found["tokens"] <= budget
    assert ids(await recall(ada, limit=1)) == [long]


async def test_what_is_hardly_similar_is_left_out(ada: httpx.AsyncClient) -> None:
    await tell(ada, "near", "refund a parcel that nobody has sent to the customer in March")
    assert ids(await recall(ada, "refund the broken blue kettle of the northern shop")) == []
    assert len(ids(await recall(ada, "refund the broken blue kettle", min_similarity=0.1))) == 1
    assert ids(await recall(ada, min_similarity=0.6)) == []


async def test_other_agents_and_people_stay_apart(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    of_nobody = await tell(ada, "nobody")
    about_ann = await tell(ada, "ann", subjects=["ann"])
    assert set(ids(await recall(ada, about="ann"))) == {about_ann}
    for user, seen in {"ann": {of_nobody, about_ann}, "bob": {of_nobody}}.items():
        assert set(ids(await recall(ada, user=user))) == seen
    bob = await service.agent("bob")
    assert ids(await recall(bob)) == []
    stranger = service.client(key=await service.key("ada", tenant="other"))
    assert ids(await recall(stranger)) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": " "}, "query"),
        ({"query": TASK, "profile": "luck"}, "profile"),
        ({"query": TASK, "limit": 34}, "limit"),
        ({"query": TASK, "budget_tokens": 0}, "budget_tokens"),
        ({"query": TASK, "weights": {"similarity": 1, "recency": 1, "outcome": 0, "use": 0}},
         "sum to 1"),
    ],
)  # fmt: skip
async def test_a_bad_request_names_its_field(
    ada: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    reply = await ada.post(RECALL, json=body)
    assert_problem(reply, 422)
    assert field in reply.text


async def test_with_vectors_the_similarity_is_the_cosine(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    async with open_recall(tmp_path, embedder) as service:
        principal = agent("ada")
        for key, trigger in (("near", "refund invoice"), ("far", "volcano train boxes refund")):
            await service.write(
                principal, namespace="work", key=key, kind="episode",
                value={"trigger": trigger, "outcome": {"status": "success"}},
            )  # fmt: skip
        await service.embed()
        asked = RecallEpisodesRequest(query="refund invoice", min_similarity=0.0)
        wanted = EntryFilter(tenant=principal.tenant, kind="episode")
        call = OperationCall(operation=OPERATIONS_BY_NAME["recall_episodes"], principal=principal)
        transactions = OperationTransactions(service.services, call, service.index)
        reply = await recall_episodes(service.index, transactions, asked, wanted)
        assert [one.entry.key for one in reply.episodes] == ["near", "far"]
        assert {one.method for one in reply.episodes} == {"cosine"}
        vectors = embedder.embed(["refund invoice", "refund invoice\nsuccess"])
        cosine = float(vectors[0] @ vectors[1])
        assert reply.episodes[0].similarity == pytest.approx(cosine, abs=0.01)
