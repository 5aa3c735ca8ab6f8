"""Every parameter of RFC-0015 section 4.1, alone and together, against an independent model."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem, keys_of, make
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

ENTRIES: list[dict[str, Any]] = [
    {"key": "k0", "namespace": "billing", "tags": ["a", "b"], "scope": {"task_id": "t1"}},
    {"key": "k1", "namespace": "billing.invoices", "tags": ["a"], "memory_type": "episodic"},
    {"key": "k2", "namespace": "billing.invoices.2026", "tags": ["b", "c"],
     "memory_type": "episodic", "pinned": True},
    {"key": "k3", "namespace": "billing_x", "tags": [],
     "scope": {"task_id": "t1", "intent_id": "i1"}},
    {"key": "k4", "namespace": "Billing", "tags": ["a", "b", "c"], "memory_type": "semantic"},
    {"key": "k5", "namespace": "bill%", "tags": ["A"], "scope": {"intent_id": "i1"}},
    {"key": "k6", "namespace": "b\U0001f9e0z", "tags": ["ä b"], "memory_type": "semantic"},
    {"key": "same", "namespace": "billing", "tags": ["c"], "scope": {"task_id": "t2"}},
    {"key": "same", "namespace": "billing", "tags": ["c"], "memory_type": "episodic"},
]  # fmt: skip


async def _stock(service: RunningService) -> httpx.AsyncClient:
    """The entries above, a second apart, the first at 02:40:00."""
    agent = await service.agent("ada")
    for fields in ENTRIES:
        await make(agent, **{"memory_type": "working", **fields})
        service.clock.advance(1)
    return agent


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "same same k6 k5 k4 k3 k2 k1 k0"),
        ({"agent_id": "ada"}, "same same k6 k5 k4 k3 k2 k1 k0"),
        ({"agent_id": "you"}, ""),
        ({"namespace": "billing"}, "same same k0"),
        ({"namespace": "billing*"}, "same same k3 k2 k1 k0"),
        ({"namespace": "billing.*"}, "k2 k1"),
        ({"namespace": "billing.invoices*"}, "k2 k1"),
        ({"namespace": "billing_*"}, "k3"),
        ({"namespace": "bill%"}, "k5"),
        ({"namespace": "bill%*"}, "k5"),
        ({"namespace": "B*"}, "k4"),
        ({"namespace": "b\U0001f9e0*"}, "k6"),
        ({"namespace": "*"}, "same same k6 k5 k4 k3 k2 k1 k0"),
        ({"namespace": "b*g"}, ""),
        ({"namespace": ""}, ""),
        ({"key": "same"}, "same same"),
        ({"key": "sam"}, ""),
        ({"key": "k*"}, ""),
        ({"memory_type": "working", "agent_id": "ada"}, "same k5 k3 k0"),
        ({"memory_type": "episodic", "agent_id": "ada"}, "same k2 k1"),
        ({"memory_type": "semantic"}, "k6 k4"),
        ({"memory_type": "procedural"}, ""),
        ({"where": 'priority > "high"'}, ""),
        ({"where": 'key in [] or memory_type < "working"'}, ""),
        ({"where": 'key = "k0" and not priority < "low"'}, "k0"),
        ({"tags": "a"}, "k4 k1 k0"),
        ({"tags": "A"}, "k5"),
        ({"tags": "a,b"}, "k4 k0"),
        ({"tags": "b,a"}, "k4 k0"),
        ({"tags": "a,b,c"}, "k4"),
        ({"tags": "a,a"}, "k4 k1 k0"),
        ({"tags": "a,missing"}, ""),
        ({"tags": "ä b"}, "k6"),
        ({"tags_any": "a"}, "k4 k1 k0"),
        ({"tags_any": "A,missing,ä b"}, "k6 k5"),
        ({"tags_any": "b,c"}, "same same k4 k2 k0"),
        ({"tags": "a", "tags_any": "b,c"}, "k4 k0"),
        ({"scope.task_id": "t1"}, "k3 k0"),
        ({"scope.task_id": "t1", "memory_type": "working"}, "k3 k0"),
        ({"scope.intent_id": "i1"}, "k5 k3"),
        ({"scope.task_id": "t1", "scope.intent_id": "i1"}, "k3"),
        ({"pinned": "true", "memory_type": "episodic", "agent_id": "ada"}, "k2"),
        ({"pinned": "false", "memory_type": "episodic", "agent_id": "ada"}, "same k1"),
        ({"updated_after": "2026-02-02T02:40:06Z"}, "same same"),
        ({"updated_after": "2026-02-02T02:40:06.999Z"}, "same same"),
        ({"updated_after": "2026-02-02T02:40:07.000Z"}, "same"),
        ({"updated_before": "2026-02-02T02:40:01Z"}, "k0"),
        ({"updated_before": "2026-02-02T03:40:02+01:00"}, "k1 k0"),
        ({"updated_after": "2026-02-02T02:40:01Z",
          "updated_before": "2026-02-02T02:40:04Z"}, "k3 k2"),
        ({"namespace": "billing*", "tags": "c", "memory_type": "episodic", "agent_id": "ada",
          "pinned": "false", "key": "same"}, "same"),
    ],
    ids=lambda part: "&".join(f"{name}={text}" for name, text in part.items()) or "none"
    if isinstance(part, dict) else "",
)  # fmt: skip
async def test_parameter_filters_by_its_value(
    service: RunningService, query: dict[str, str], expected: str
) -> None:
    agent = await _stock(service)
    assert await keys_of(agent, **query) == expected.split()


async def test_the_reply_has_the_fields_of_section_4_2(service: RunningService) -> None:
    agent = await _stock(service)
    page = (await agent.get(MEMORY, params={"key": "k0"})).json()
    found = page["entries"][0]
    assert page == {"entries": [found], "total": 1, "limit": 100, "offset": 0}
    assert found == (await agent.get(f"{MEMORY}/{found['id']}")).json()


async def test_pages_follow_on_each_other_and_the_total_is_exact(service: RunningService) -> None:
    agent = await _stock(service)
    whole = await keys_of(agent)
    for limit in range(1, len(whole) + 2):
        seen: list[str] = []
        for offset in range(0, len(whole) + limit, limit):
            response = await agent.get(MEMORY, params={"limit": limit, "offset": offset})
            page = response.json()
            assert page["total"] == len(whole), (limit, offset)
            assert (page["limit"], page["offset"]) == (limit, offset)
            seen.extend(entry["key"] for entry in page["entries"])
        assert seen == whole, limit


async def test_a_page_has_a_hundred_entries_unless_told_and_at_most_a_thousand(
    service: RunningService,
) -> None:
    agent = await service.agent("ada")
    drafts = [
        {"namespace": "n", "key": f"k{number}", "value": {}, "memory_type": "working",
         "tags": ["all"]}
        for number in range(1_000)
    ]  # fmt: skip
    for part in ([*drafts[:600]], [*drafts[600:], {**drafts[0], "key": "last"}]):
        assert (await agent.post(f"{MEMORY}/batch", json={"entries": part})).status_code == 200
    for query in ({}, {"tags": "all"}, {"tags_any": "all"}):
        page = (await agent.get(MEMORY, params=query)).json()
        assert (len(page["entries"]), page["total"], page["limit"]) == (100, 1_001, 100)
        page = (await agent.get(MEMORY, params={**query, "limit": 1_000})).json()
        assert (len(page["entries"]), page["total"]) == (1_000, 1_001)
        page = (await agent.get(MEMORY, params={**query, "offset": 5_000})).json()
        assert (page["entries"], page["total"], page["offset"]) == ([], 1_001, 5_000)


@pytest.mark.parametrize("tier", ["working", "session", "episodic"])
async def test_an_agents_tier_needs_the_agent_or_the_task(
    service: RunningService, tier: str
) -> None:
    agent = await _stock(service)
    response = await agent.get(MEMORY, params={"memory_type": tier})
    document = assert_problem(response, 400, "VALIDATION_ERROR")
    assert "agent_id" in document["detail"]
    for query in ({"agent_id": "ada"}, {"scope.task_id": "t1"}):
        response = await agent.get(MEMORY, params={"memory_type": tier, **query})
        assert response.status_code == 200, response.text


async def test_a_filter_only_narrows(service: RunningService) -> None:
    await _stock(service)
    other = await service.agent("other")
    shared = ["k6", "k4"]
    assert await keys_of(other) == shared
    assert await keys_of(other, agent_id="ada") == shared
    for query in (
        {"agent_id": "ada", "memory_type": "working"},
        {"agent_id": "ada", "memory_type": "episodic"},
        {"scope.task_id": "t1"},
        {"scope.task_id": "t1", "memory_type": "working"},
        {"key": "same"},
        {"tags_any": "a,b,c", "namespace": "billing*"},
    ):
        assert await keys_of(other, **query) == []
    elsewhere = await service.agent("ada", tenant="elsewhere")
    assert await keys_of(elsewhere) == []
    assert await keys_of(elsewhere, namespace="*", agent_id="ada") == []


async def test_a_key_without_memory_read_finds_nothing(service: RunningService) -> None:
    await _stock(service)
    writer = await service.agent("ada", permissions=[Permission.WRITE])
    response = await writer.get(MEMORY)
    if response.status_code == 200:
        assert response.json() == {"entries": [], "total": 0, "limit": 100, "offset": 0}
    else:
        assert_problem(response, 403, "ACCESS_DENIED")


async def test_a_change_moves_an_entry_between_answers_at_once(service: RunningService) -> None:
    agent = await _stock(service)
    found = (await agent.get(MEMORY, params={"key": "k0"})).json()["entries"][0]
    service.clock.advance(100)
    change = {"tags": ["new"], "scope": {"task_id": "t9"}}
    headers = {"If-Match": "1"}
    assert (await agent.patch(f"{MEMORY}/{found['id']}", json=change, headers=headers)).is_success
    assert await keys_of(agent, tags="new") == ["k0"]
    assert await keys_of(agent, tags_any="new") == ["k0"]
    assert await keys_of(agent, tags="a") == ["k4", "k1"]
    assert await keys_of(agent, **{"scope.task_id": "t9"}) == ["k0"]
    assert await keys_of(agent, **{"scope.task_id": "t1"}) == ["k3"]
    assert await keys_of(agent, updated_after="2026-02-02T02:41:00Z") == ["k0"]


async def test_random_filters_agree_with_a_plain_model(service: RunningService) -> None:
    seed = random.SystemRandom().getrandbits(32)
    choose = random.Random(seed)
    agent = await service.agent("ada")
    stored: list[dict[str, Any]] = []
    for number in range(60):
        scope = {
            name: f"{name[0]}{choose.randrange(3)}"
            for name in ("task_id", "intent_id")
            if choose.random() < 0.6
        }
        fields: dict[str, Any] = {
            "namespace": choose.choice(["a", "a.b", "a.c", "b"]),
            "tags": choose.sample(["x", "y", "z"], choose.randrange(4)),
            "scope": scope,
            "memory_type": choose.choice(["working", "episodic", "semantic"]),
            "pinned": choose.random() < 0.5,
        }
        stored.append(await make(agent, f"k{number}", **fields))
    for _ in range(150):
        query = _random_query(choose)
        response = await agent.get(MEMORY, params={**query, "limit": 1_000})
        expected = [entry for entry in reversed(stored) if _matches(entry, query)]
        page = response.json()
        assert page["entries"] == expected, f"seed {seed}: {query}"
        assert page["total"] == len(expected), f"seed {seed}: {query}"


def _random_query(choose: random.Random) -> dict[str, str]:
    every = {
        "agent_id": "ada",
        "namespace": choose.choice(["a", "a.b", "a*", "a.*", "b*", "*"]),
        "memory_type": choose.choice(["working", "episodic", "semantic"]),
        "tags": ",".join(choose.sample(["x", "y", "z"], choose.randrange(1, 4))),
        "tags_any": ",".join(choose.sample(["x", "y", "z"], choose.randrange(1, 3))),
        "scope.task_id": f"t{choose.randrange(4)}",
        "scope.intent_id": f"i{choose.randrange(4)}",
        "pinned": choose.choice(["true", "false"]),
    }
    names = choose.sample(sorted(every), choose.randrange(4))
    return {name: every[name] for name in ("agent_id", *names)}


def _matches(entry: dict[str, Any], query: dict[str, str]) -> bool:
    wanted = query.get("namespace", "*")
    if wanted.endswith("*"):
        named = entry["namespace"].startswith(wanted[:-1])
    else:
        named = entry["namespace"] == wanted
    tags = set(entry["tags"])
    return (
        named
        and entry["memory_type"] == query.get("memory_type", entry["memory_type"])
        and ("tags" not in query or set(query["tags"].split(",")) <= tags)
        and ("tags_any" not in query or bool(set(query["tags_any"].split(",")) & tags))
        and all(
            f"scope.{name}" not in query or entry["scope"].get(name) == query[f"scope.{name}"]
            for name in ("task_id", "intent_id")
        )
        and ("pinned" not in query or entry["pinned"] == (query["pinned"] == "true"))
    )


async def test_namespaces_of_entries_are_listed_as_far_as_they_are_visible(
    service: RunningService,
) -> None:
    ada, bob = await service.agent("ada"), await service.agent("bob")
    foreign = await service.agent("ada", tenant="other")
    for namespace, key in (("b", "1"), ("a/x", "1"), ("a/y", "1"), ("a/x", "2")):
        assert (await ada.post(MEMORY, json=draft(key, namespace=namespace))).status_code == 201
    about = draft("1", namespace="b", subjects=["ann"], memory_type="episodic")
    assert (await ada.post(MEMORY, json=about, headers={"X-Subject": "ann"})).status_code == 201

    async def ask(client: httpx.AsyncClient, user: str = "", **asked: Any) -> Any:
        headers = {"X-Subject": user} if user else {}
        answer = await client.get(f"{MEMORY}/entry-namespaces", params=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        return [(one["namespace"], one["entries"]) for one in page["namespaces"]], page["next"]

    own = {"agent_id": "ada", "memory_type": "working"}
    assert await ask(ada, **own) == ([("a/x", 2), ("a/y", 1), ("b", 1)], None)
    assert await ask(ada, **own, limit=2) == ([("a/x", 2), ("a/y", 1)], "a/y")
    assert await ask(ada, **own, limit=2, after_namespace="a/y") == ([("b", 1)], None)
    assert await ask(ada, **own, namespace="a/*") == ([("a/x", 2), ("a/y", 1)], None)
    assert (await ask(ada, "ann", agent_id="ada", memory_type="episodic"))[0] == [("user/ann/b", 1)]
    assert (await ask(ada, "bea", agent_id="ada", memory_type="episodic"))[0] == []
    for stranger in (bob, foreign):
        assert await ask(stranger, **own) == ([], None) or stranger is foreign
        assert (await ask(stranger))[0] == []
    assert_problem(await ada.get(f"{MEMORY}/entry-namespaces", params={"limit": 0}), 400)
