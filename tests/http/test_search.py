"""POST /api/v1/memory/search and /reshape: what they take, what they give, what they refuse."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import anyio
import httpx
import numpy as np
import numpy.typing as npt
import pytest
from prometheus_client.parser import text_string_to_metric_families

from memorywall.jobs.embed import EmbeddingJob
from memorywall.recall.index import Index
from memorywall.records.principal import Permission
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from tests.http.checks import MARKER, MEMORY, assert_problem, everything, make, raw_request
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

SEARCH = "/api/v1/memory/search"
RESHAPE = "/api/v1/memory/reshape"
SIGNALS = [
    "lexical", "dense", "thread", "author", "date", "graph", "link", "recency", "outcome", "use",
    "prior", "superseded", "series", "earlier_question", "question", "terms", "words",
    "words_nearby", "meaning", "by_author",
]  # fmt: skip
_SHARES = ("lexical", "dense", "thread", "author", "date", "graph")
LESSON = {
    "type": "correction",
    "wrong_answer": "form 12",
    "right_answer": "form 31",
    "confidence": 0.9,
}
_DIMENSIONS = 16


class LetterEmbedder:
    """Counts letters, so that texts of the same letters are alike."""

    model = "letters-1"
    dimensions = _DIMENSIONS
    is_local = False

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.lower():
                row[ord(letter) % _DIMENSIONS] += 1
            row /= max(float(np.linalg.norm(row)), 1.0)
        return rows

    def close(self) -> None:
        pass


async def found(client: httpx.AsyncClient, query: str, **fields: Any) -> dict[str, Any]:
    """The reply to a search that is not refused."""
    response = await client.post(SEARCH, json={"query": query, **fields})
    assert response.status_code == 200, response.text
    reply: dict[str, Any] = response.json()
    return reply


async def keys(client: httpx.AsyncClient, query: str, **fields: Any) -> set[str]:
    """The keys of what a search finds."""
    return {hit["entry"]["key"] for hit in (await found(client, query, **fields))["results"]}


async def note(client: httpx.AsyncClient, key: str, text: str, **fields: Any) -> dict[str, Any]:
    """An episodic entry with a text, in a thread of its own, unless it is said to be another."""
    fields.setdefault("namespace", f"notes/{key}")
    value = {"text": text, **fields.pop("more", {})}
    return await make(client, key, **{"memory_type": "episodic", "value": value, **fields})


async def test_the_best_answer_comes_first_and_whole(service: RunningService) -> None:
    agent = await service.agent("ada")
    await note(agent, "lunch", "The canteen serves soup on Mondays.")
    await note(agent, "one", "The parcel of the customer was late.")
    best = await note(agent, "both", "Refund the customer whose parcel was late.", tags=["x"])
    reply = await found(agent, "refund for a late parcel")
    assert list(reply) == [
        "results", "relevance", "answered", "left_out", "model", "searched", "pending",
    ]  # fmt: skip
    assert (reply["model"], reply["pending"]) == (None, 0)
    assert [hit["entry"]["key"] for hit in reply["results"]] == ["both", "one"]
    scores = [hit["score"] for hit in reply["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score == round(score, 6) for score in scores)
    assert all(list(hit) == ["entry", "score", "relevance"] for hit in reply["results"])
    assert reply["results"][0]["entry"] == best
    assert best == (await agent.get(f"{MEMORY}/{best['id']}")).json()


async def test_nothing_is_an_answer(service: RunningService) -> None:
    agent = await service.agent("ada")
    nothing = {"results": [], "relevance": 0.0, "answered": False, "left_out": 0}
    nothing |= {"model": None, "searched": 0, "pending": 0}
    reply = await found(agent, "parcel")
    assert "searched by words only" in (said := reply.pop("note"))
    assert "--embedder local" in said
    assert reply == nothing
    await note(agent, "lunch", "The canteen serves soup.")
    assert await found(agent, "parcel") == {**nothing, "searched": 1, "note": said}


async def test_explain_returns_the_parts_of_a_score(service: RunningService) -> None:
    agent = await service.agent("ada")
    await note(agent, "both", "Refund the customer whose parcel was late.")
    await note(agent, "other", "A parcel came.")
    hits = (await found(agent, "refund for a parcel", explain=True))["results"]
    assert [hit["entry"]["key"] for hit in hits] == ["both", "other"]
    for hit in hits:
        explained = hit["explain"]
        assert list(explained) == SIGNALS
        numbers = [one for one in explained.values() if isinstance(one, float)]
        assert numbers == [round(number, 6) for number in numbers]
        total = (
            sum(explained[name] for name in _SHARES)
            * explained["prior"]
            * explained["superseded"]
            * explained["series"]
            * explained["earlier_question"]
        )
        assert hit["score"] == pytest.approx(total, abs=1e-4)
        assert explained["lexical"] > 0 == explained["dense"]
    assert [sorted(hit["explain"]["terms"]) for hit in hits] == [["parcel", "refund"], ["parcel"]]


async def test_explain_names_the_question_that_a_hit_was_found_for(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    await note(agent, "refund", "Refund the customer whose parcel was late.")
    await note(agent, "train", "The train to Lyon leaves at nine.")
    asked = "Was the customer refunded? When does a train leave?"
    hits = (await found(agent, asked, explain=True))["results"]
    assert {hit["entry"]["key"]: hit["explain"]["question"] for hit in hits} == {
        "refund": "Was the customer refunded?",
        "train": "When does a train leave?",
    }


CONDITIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"a", "b", "c", "d"}),
    ({"context": "a letter before it"}, {"a", "b", "c", "d"}),
    ({"memory_type": None, "agent_id": None, "namespace": None, "as_of": None}, set("abcd")),
    ({"memory_type": "working"}, {"c"}),
    ({"memory_type": "procedural"}, set()),
    ({"agent_id": "ada"}, {"a", "b", "c", "d"}),
    ({"agent_id": "you"}, set()),
    ({"namespace": "billing"}, {"a"}),
    ({"namespace": "billing*"}, {"a", "b"}),
    ({"namespace": "billing.*"}, {"b"}),
    ({"namespace": "bill"}, set()),
    ({"namespace": "*"}, {"a", "b", "c", "d"}),
    ({"namespace": ""}, set()),
    ({"tags": ["x"]}, {"a", "b"}),
    ({"tags": ["x", "y"]}, {"a"}),
    ({"tags": ["x", "x"]}, {"a", "b"}),
    ({"tags": []}, {"a", "b", "c", "d"}),
    ({"tags_any": ["y", "z"]}, {"a", "c"}),
    ({"tags": ["x"], "tags_any": ["z"]}, set()),
    ({"scope": {}}, {"a", "b", "c", "d"}),
    ({"scope": {"task_id": "t1"}}, {"b", "c"}),
    ({"scope": {"intent_id": "i1"}}, {"c"}),
    ({"scope": {"session_id": "s1"}}, {"d"}),
    ({"scope": {"task_id": "t1", "intent_id": "i1"}}, {"c"}),
    ({"scope": {"task_id": "t1", "session_id": "s1"}}, set()),
    ({"outcome": "any"}, {"a", "b", "c", "d"}),
    ({"outcome": "success"}, {"a"}),
    ({"outcome": "failure"}, {"b"}),
    ({"outcome": "correction"}, set()),
    ({"min_trust": 0}, {"a", "b", "c", "d"}),
    ({"min_trust": 0.5}, {"a", "b", "c"}),
    ({"min_trust": 1}, set()),
    ({"as_of": "2026-02-02T02:40:01.500Z"}, {"a", "b"}),
    ({"as_of": "2026-02-02T03:40:01.500+01:00"}, {"a", "b"}),
    ({"as_of": "2020-01-01T00:00:00Z"}, set()),
    ({"mode": "lexical"}, {"a", "b", "c", "d"}),
    ({"mode": "dense"}, set()),
]


@pytest.mark.parametrize(("conditions", "expected"), CONDITIONS)
async def test_every_result_meets_every_condition(
    service: RunningService, conditions: dict[str, Any], expected: set[str]
) -> None:
    agent = await service.agent("ada")
    drafts: tuple[tuple[str, dict[str, Any]], ...] = (
        ("a", {"namespace": "billing", "tags": ["x", "y"], "more": {"outcome": "success"}}),
        ("b", {"namespace": "billing.late", "tags": ["x"], "more": {"outcome": "failed"},
               "scope": {"task_id": "t1"}}),
        ("c", {"namespace": "ops", "tags": ["z"], "memory_type": "working",
               "scope": {"task_id": "t1", "intent_id": "i1"}}),
        ("d", {"namespace": "ops", "scope": {"session_id": "s1"}, "more": {"confidence": 0.5}}),
    )  # fmt: skip
    for key, fields in drafts:
        await note(agent, key, f"The parcel {key} was late.", **fields)
        service.clock.advance(1)
    assert await keys(agent, "late parcel", **conditions) == expected


async def test_as_many_are_found_as_are_wanted(service: RunningService) -> None:
    agent = await service.agent("ada")
    for number in range(12):
        await note(agent, f"k{number}", f"The parcel {number} was late.")
    assert len((await found(agent, "parcel"))["results"]) == 10
    best = (await found(agent, "parcel", limit=100))["results"]
    assert len(best) == 12
    assert (await found(agent, "parcel", limit=1))["results"] == best[:1]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": None},
        {"query": ["parcel"]},
        {"query": ""},
        {"query": " \t\n"},
        {"query": "x" * 2_001},
        {"query": "parcel", MARKER: 1},
        {"query": "parcel", "key": "k"},
        {"query": "parcel", "offset": 0},
        {"query": "parcel", "scope": {"tenant": MARKER}},
        {"query": "parcel", "scope": None},
        {"query": "parcel", "scope": "t1"},
        {"query": "parcel", "memory_type": MARKER},
        {"query": "parcel", "namespace": 1},
        {"query": "parcel", "tags": MARKER},
        {"query": "parcel", "tags": [f"{MARKER},b"]},
        {"query": "parcel", "tags_any": [""]},
        {"query": "parcel", "tags_any": [f"t{number}" for number in range(100)]},
        {"query": "parcel", "mode": MARKER},
        {"query": "parcel", "mode": None},
        {"query": "parcel", "outcome": "Success"},
        {"query": "parcel", "limit": 0},
        {"query": "parcel", "limit": 101},
        {"query": "parcel", "limit": 2.5},
        {"query": "parcel", "limit": True},
        {"query": "parcel", "limit": "10"},
        {"query": "parcel", "min_trust": -0.1},
        {"query": "parcel", "context": None},
        {"query": "parcel", "context": "x" * 2_001},
        {"query": "parcel", "min_trust": 1.1},
        {"query": "parcel", "min_trust": "1"},
        {"query": "parcel", "dense_weight": -0.5},
        {"query": "parcel", "dense_weight": 100.5},
        {"query": "parcel", "as_of": "2026-02-02T02:40:00"},
        {"query": "parcel", "as_of": MARKER},
        {"query": "parcel", "explain": 1},
    ],
)
async def test_a_search_that_cannot_be_done_is_refused(
    service: RunningService, body: dict[str, Any]
) -> None:
    agent = await service.agent("ada")
    await note(agent, "a", "The parcel was late.")
    response = await agent.post(SEARCH, json=body)
    document = assert_problem(response, 422, "VALIDATION_ERROR")
    wrong = [name for name in body if name != "query"] or ["query"]
    if MARKER in body:
        assert MARKER in document["detail"]
    else:
        assert MARKER not in response.text
        assert wrong[0] in document["detail"]


async def test_a_question_may_be_long_and_in_any_script(service: RunningService) -> None:
    agent = await service.agent("ada")
    await note(agent, "a", "Das Päckchen kam zu spät: 荷物が遅れた, посылка опоздала.")
    longest = ("Päckchen " * 300)[:2_000]
    for query in (longest, "päckchen", "ПОСЫЛКА", "\0Päckchen\0", "Päckchen\ud83d\ude00"):
        text = json.dumps({"query": query})
        response = await agent.post(SEARCH, content=text)
        assert response.status_code == 200, response.text
        assert [hit["entry"]["key"] for hit in response.json()["results"]] == ["a"], query[:20]


async def test_a_search_takes_no_parameters_and_other_methods_are_told(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    for path in (SEARCH, RESHAPE):
        response = await agent.post(path, params={"limit": "1"}, json={"query": "parcel"})
        assert_problem(response, 400, "VALIDATION_ERROR")
        for method in ("GET", "PATCH", "DELETE", "PUT"):
            refused = await agent.request(method, path)
            assert_problem(refused, 405)
            assert refused.headers["allow"] == "POST"
        for content in (b"", b"{", b'{"query": "a", "query": "b"}', b"[" * 1_000):
            assert_problem(await agent.post(path, content=content), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(("path", "told"), [(SEARCH, "results"), (RESHAPE, "guidance")])
async def test_a_key_that_may_read_is_needed(service: RunningService, path: str, told: str) -> None:
    body = {"query": "parcel"}
    assert_problem(await service.client().post(path, json=body), 401, "UNAUTHENTICATED")
    unknown = await service.client("mw_unknown").post(path, json=body)
    assert_problem(unknown, 401, "UNAUTHENTICATED")
    writer = await service.agent("ada", permissions=[Permission.WRITE])
    reader = await service.agent("ada", permissions=[Permission.READ])
    await note(writer, "a", "The parcel was late.", more=LESSON)
    assert (await reader.post(path, json=body)).json()[told] != []
    # As a query does, a search leaves out what may not be read without a word.
    assert (await writer.post(path, json=body)).json()[told] == []


async def test_only_readable_entries_are_found(service: RunningService) -> None:
    ada, bob = await service.agent("ada"), await service.agent("bob")
    other = await service.agent("ada", tenant="elsewhere")
    await note(ada, "mine", "The parcel was late.")
    await note(ada, "ours", "The parcel was late.", memory_type="semantic", namespace="facts")
    await note(ada, "sealed", "The parcel was late.", sensitivity="confidential")
    await note(other, "theirs", "The parcel was late.")
    assert await keys(ada, "parcel") == {"mine", "ours"}
    assert await keys(bob, "parcel") == {"ours"}
    assert await keys(bob, "parcel", agent_id="ada", memory_type="episodic") == set()
    assert await keys(other, "parcel") == {"theirs"}


async def test_asking_changes_nothing_and_is_not_fenced(service: RunningService) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    await note(agent, "a", "The parcel was late.")
    before = await everything(service)
    headers = {"Fencing-Token": "none", "Idempotency-Key": "k", "If-Match": "x"}
    assert_problem(await agent.post(MEMORY, json={}, headers=headers), 400)
    for path in (SEARCH, RESHAPE):
        for query in ("parcel", "soup"):
            response = await agent.post(path, json={"query": query}, headers=headers)
            assert response.status_code == 200, response.text
            assert (query in response.text) or response.json()["results"] == []
    assert await everything(service) == before


async def test_a_body_that_is_too_long_is_not_read(service: RunningService) -> None:
    key = await service.key("ada")
    response = await raw_request(
        service,
        "POST",
        SEARCH,
        headers=[(b"x-api-key", key.encode()), (b"content-length", b"99999999")],
    )
    assert_problem(response, 413, "VALUE_TOO_LARGE")


async def test_guidance_comes_with_the_query(service: RunningService) -> None:
    agent = await service.agent("ada")
    made = await note(agent, "c", "Which form for travel expenses?", more=LESSON)
    query = "Which form is for travel expenses?"
    response = await agent.post(RESHAPE, json={"query": query})
    assert response.status_code == 200, response.text
    reply = response.json()
    assert list(reply) == ["query", "guidance"]
    assert reply["query"].startswith(query + "\n")
    (guidance,) = reply["guidance"]
    assert list(guidance) == ["kind", "text", "entry_id", "confidence"]
    assert (guidance["kind"], guidance["entry_id"]) == ("correction", made["id"])
    assert "form 31" in guidance["text"]
    assert guidance["text"] in reply["query"]
    assert 0 < guidance["confidence"] <= 1
    for narrowed in ({"namespace": "elsewhere"}, {"agent_id": "bob"}):
        response = await agent.post(RESHAPE, json={"query": query, **narrowed})
        assert response.json() == {"query": query, "guidance": []}
    there: dict[str, Any] = {"namespace": "notes/c", "agent_id": "ada", "limit": 20}
    assert (await agent.post(RESHAPE, json={"query": query, **there})).json() == reply
    other = await service.agent("bob")
    assert (await other.post(RESHAPE, json={"query": query})).json()["guidance"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": " "},
        {"query": "x" * 2_001},
        {"query": "parcel", "limit": 0},
        {"query": "parcel", "limit": 21},
        {"query": "parcel", "memory_type": "episodic"},
        {"query": "parcel", "agent_id": 1},
    ],
)
async def test_invalid_reshape_request_is_refused(
    service: RunningService, body: dict[str, Any]
) -> None:
    agent = await service.agent("ada")
    assert_problem(await agent.post(RESHAPE, json=body), 422, "VALIDATION_ERROR")


async def test_the_words_for_searching_are_told(service: RunningService) -> None:
    document = (await service.client().get("/api/v1/capabilities")).json()
    assert {"memory.search", "memory.reshape"} <= set(document["capabilities"])
    assert document["extensions"]["search"] == SEARCH
    assert (document["limits"]["query_characters"], document["limits"]["search_hits"]) == (
        2_000,
        100,
    )


def measured(response: httpx.Response) -> dict[str, int]:
    """The gauges of a reply in Prometheus' text format, each with its meaning and type."""
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(response.text))
    assert all(family.documentation for family in families)
    gauges = [family for family in families if family.type == "gauge"]
    return {family.name: int(sample.value) for family in gauges for sample in family.samples}


async def test_embedding_lag_is_reported_until_it_is_zero(service: RunningService) -> None:
    index = Index(service.services, LetterEmbedder())
    embedding = EmbeddingJob(service.services, LetterEmbedder(), index.fields)
    with closing(index), closing(embedding):
        await _follow(service, index, embedding)


async def _follow(service: RunningService, index: Index, embedding: EmbeddingJob) -> None:
    service.app = build_app(service.services, ApiKeyAuthenticator(service.services), index=index)
    agent, anyone = await service.agent("ada"), service.client()
    ready = (await anyone.get("/ready")).json()
    assert ready == {"status": "ready", "embedding": {"model": "letters-1", "backlog": 0}}
    assert set((await measured_of(anyone)).values()) == {0}
    await note(agent, "a", "The parcel was late.")
    await note(await service.agent("zoe", tenant="elsewhere"), "b", "Soup on Mondays.")
    reply = await found(agent, "parcel", explain=True)
    assert (reply["model"], reply["pending"]) == ("letters-1", 1)
    assert reply["results"][0]["explain"]["dense"] == 0
    assert (await found(agent, "parcel", mode="lexical"))["model"] is None
    assert (await found(agent, "parcel", mode="dense"))["results"] == []
    await until_behind(anyone, 2)
    gauges = await measured_of(anyone)
    assert gauges["memorywall_embedding_backlog"] == 2
    assert (gauges["memorywall_recall_shards"], gauges["memorywall_recall_entries"]) == (1, 1)
    assert gauges["memorywall_recall_bytes"] == index.measure()["bytes"] > 0

    assert await embedding.embed_some() == 2
    reply = await found(agent, "parcel", explain=True)
    assert (reply["model"], reply["pending"]) == ("letters-1", 0)
    assert reply["results"][0]["explain"]["dense"] > 0
    assert len((await found(agent, "lecrap", mode="dense"))["results"]) == 1
    await until_behind(anyone, 0)
    assert (await measured_of(anyone))["memorywall_embedding_backlog"] == 0


async def until_behind(client: httpx.AsyncClient, changes: int) -> None:
    """Waits until embedding is told to be behind by so many changes; they are counted now and
    then."""
    expected = {"status": "ready", "embedding": {"model": "letters-1", "backlog": changes}}
    deadline = time.monotonic() + 30
    while (ready := (await client.get("/ready")).json()) != expected:
        assert time.monotonic() < deadline, ready
        await anyio.sleep(0.05)


async def measured_of(client: httpx.AsyncClient) -> dict[str, int]:
    """What the server tells of itself, and nothing of whose it is."""
    response = await client.get("/metrics")
    assert not re.search(r"ada|zoe|elsewhere|default|parcel|letters", response.text)
    gauges = measured(response)
    assert gauges.pop("memorywall_requests_in_flight") == 0
    assert gauges.pop("memorywall_job_last_run_timestamp_seconds", 1) > 0
    assert gauges.pop("memorywall_loop_longest_callback_seconds") >= 0
    assert gauges.keys() == {
        "memorywall_embedding_backlog",
        "memorywall_recall_shards",
        "memorywall_recall_bytes",
        "memorywall_recall_entries",
    }
    return gauges
