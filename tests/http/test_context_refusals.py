"""Requests for contexts that are refused: the error is clear, and nothing has changed."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import pytest

from memorywall.records.entry import Entry
from memorywall.records.principal import Permission
from memorywall.storage.port import Transaction
from tests.context.made_up import words
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_contexts import CONTEXT, compiled, put, talk_of, texts
from tests.http.test_sessions import TENANT, Talk, begin
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService
from tests.work.crew import TASKS, crew_of, ok, under

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def state_of(client: httpx.AsyncClient, talk: Talk | None = None) -> tuple[Any, ...]:
    """What a refused request must not change: contexts, the session and its turns."""
    contexts = ok(await client.get(MEMORY, params={"kind": "context"}))["total"]
    if talk is None:
        return (contexts,)
    return contexts, await talk.do("GET"), await talk.do("GET", "/turns")


async def refused(
    client: httpx.AsyncClient, status: int, code: str | None = None, **body: Any
) -> dict[str, Any]:
    before = await state_of(client)
    response = await client.post(CONTEXT, json=body)
    assert_problem(response, status, code)
    assert await state_of(client) == before
    problem: dict[str, Any] = response.json()
    return problem


async def test_budgets_that_cannot_do(ada: httpx.AsyncClient) -> None:
    assert "window" in (await refused(ada, 422, window=0))["detail"]
    assert "budgets" in (await refused(ada, 422, budgets={"semantic": 0}))["detail"]
    body: dict[str, Any] = {"system": "word " * 300, "user": "hi", "window": 1_000, "reserve": 0}
    # The least window, and the least budget of a group, that would do.
    for field, wanted in (
        ("window", lambda least: {"window": least}),
        ("`budgets.system`", lambda least: {"budgets": {"system": least}}),
    ):
        problem = await refused(ada, 409, "CONTEXT_BUDGET", **body | wanted(9))
        assert field in problem["detail"]
        least = problem["needed"]
        await compiled(ada, **body | wanted(least))
        await refused(ada, 409, "CONTEXT_BUDGET", **body | wanted(least - 1))


async def test_the_number_of_a_refused_budget_is_the_least_that_does(
    ada: httpx.AsyncClient,
) -> None:
    seed = chosen_seed()
    source = Random(seed)
    talks = [await talk_of(ada, number, subject="ann") for number in (1, 3, 12)]
    tried = 0
    for _ in range(extent(24, long=1_000)):
        body: dict[str, Any] = {"store": False, "window": source.randint(1, 60)}
        body |= {"system": words(source, 40)} if source.random() < 0.7 else {}
        if source.random() < 0.6:
            body["session_id"] = source.choice(talks).id
        if source.random() < 0.6 or len(body) == 2:
            body["user"] = words(source, 30)
        if source.random() < 0.4:
            body["reserve"] = source.randint(0, body["window"] - 1)
        if source.random() < 0.3:
            body["budgets"] = {"system": 0.2}
        refusal = await ada.post(CONTEXT, json=body)
        if refusal.status_code == 200:
            continue
        problem = assert_problem(refusal, 409, "CONTEXT_BUDGET")
        tried += 1
        replies = []
        for least in (problem["needed"], problem["needed"] - 1):
            better: dict[str, Any] = {"window": least}
            if "`budgets.system`" in problem["detail"]:
                better = {"budgets": {"system": least}}
            replies.append((await ada.post(CONTEXT, json={**body, **better})).status_code)
        assert replies == [200, 409], (seed, body, problem["detail"])
    assert tried > 6, seed


async def test_a_session_that_ends_with_a_long_exchange_with_tools(ada: httpx.AsyncClient) -> None:
    talk = await talk_of(ada, 3)
    calls = [{"id": f"c{number}", "name": "look"} for number in range(40)]
    results = [
        {"role": "tool", "content": f"result {one['id']}", "tool_call_id": one["id"]}
        for one in calls
    ]
    exchange = [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
    await talk.do("POST", "/turns", turns=exchange)
    body = {"session_id": talk.id, "reserve": 0}
    problem = await refused(ada, 409, "CONTEXT_BUDGET", **body, window=9)
    least = await compiled(ada, **body, window=problem["needed"])
    (turns,) = [one for one in least["segments"] if one["name"] == "turns"]
    assert len(turns["items"]) == len(exchange)
    await refused(ada, 409, "CONTEXT_BUDGET", **body, window=problem["needed"] - 1)


async def test_requests_that_are_too_large(ada: httpx.AsyncClient) -> None:
    assert "tools" in (await refused(ada, 422, tools=[{}] * 100_000, window=4_000))["detail"]
    await refused(ada, 413, tools=[{"name": "find"}] * 100_000, window=4_000)
    talk = await begin(ada)
    await talk.add("hello")
    before = await state_of(ada, talk)
    turns = [{"role": "user", "content": "x" * 17_000_000}]
    assert_problem(await talk.ask("POST", "/turns", turns=turns), 413)
    assert await state_of(ada, talk) == before
    await refused(ada, 413, session_id=talk.id, user="x" * 10_000_000)


async def test_sessions_that_have_no_next_answer(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await refused(ada, 404, session_id="01900000-0000-7000-8000-000000000000")
    foreign = await begin(await service.agent("bob"))
    assert await refused(ada, 404, session_id=foreign.id) == await refused(
        ada, 404, session_id="no"
    )
    closed, archived = await begin(ada), await begin(ada)
    await closed.do("POST", "/close", reason="done")
    await archived.do("POST", "/archive")
    expired, idle = await begin(ada, ttl="PT1H"), await begin(ada, idle_timeout="PT1H")
    quarantined = await begin(ada)
    made = (await quarantined.add("a"))["turns"][0]

    async def plant(to: Transaction) -> None:
        entry = await to.entries.get(made["id"], service.services.now())
        assert isinstance(entry, Entry)
        fields = {"id": "mem_x", "owner": "eve", "agent_id": "eve", "key": "0000000002"}
        assert await to.entries.insert(
            Entry(**{one: getattr(entry, one) for one in Entry.__struct_fields__} | fields),
            service.services.now(),
        )

    await service.services.store.write(TENANT, plant)
    assert_problem(await quarantined.ask("POST", "/resume", replay=9), 409, "SESSION_QUARANTINED")
    service.clock.advance(3_601)
    for talk, code in (
        (closed, "SESSION_CLOSED"), (archived, "SESSION_CLOSED"), (expired, "SESSION_CLOSED"),
        (idle, "SESSION_CLOSED"), (quarantined, "SESSION_QUARANTINED"),
    ):  # fmt: skip
        for store in (True, False):
            before = await state_of(ada, talk)
            await refused(ada, 409, code, session_id=talk.id, store=store)
            assert await state_of(ada, talk) == before


async def test_items_that_need_each_other(service: RunningService) -> None:
    crew = await crew_of(service)
    task, taken = await crew.working()
    path, headers = f"{TASKS}/{task['id']}/working", under(taken.token)
    ok(await crew.a.post(f"{path}/steps", json={"goal": "x"}, headers=headers), 201)
    for name, needs in (("a", []), ("b", ["a"]), ("c", ["b"])):
        body = {"content": f"the item {name}", "depends_on": needs}
        ok(await crew.a.put(f"{path}/items/{name}", json=body, headers=headers))
    before = ok(await crew.a.get(path))
    asked = {"task_id": task["id"], "window": 4_000, "store": False}
    context = await compiled(crew.a, **asked)
    for needs in (["c"], ["a"], ["b", "c"]):
        body = {"content": "new", "depends_on": needs}
        response = await crew.a.put(f"{path}/items/a", json=body, headers=headers)
        assert_problem(response, 422)
        assert "depends_on" in response.json()["detail"]
    assert ok(await crew.a.get(path)) == before
    assert await compiled(crew.a, **asked) == context


async def test_a_clock_that_goes_backwards_changes_no_context(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, subject="ann")
    await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    await talk.add("When do parcels leave?")
    asked = {"session_id": talk.id, "window": 4_000, "format": "text"}
    first = await compiled(ada, **asked)
    service.clock.advance(-7_200)
    second = await compiled(ada, **asked)
    assert second["text"] == first["text"]
    await talk.add("And to Bonn?")
    third = await compiled(ada, **asked)
    assert "When do parcels leave?\nuser: And to Bonn?" in third["text"]
    assert third["text"].startswith(first["text"].partition("user:")[0])
    for context in (first, second, third):
        shown = ok(await ada.get(f"{CONTEXT}/{context['id']}?format=text"))
        assert shown["text"] == context["text"]


async def test_reading_is_enough_for_a_context_that_is_not_stored(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    await talk.add("hello")
    reader = await service.agent("ada", permissions=(Permission.READ,))
    asked = {"session_id": talk.id, "window": 4_000}
    assert "hello" in texts(await compiled(reader, **asked, store=False))
    assert "memory.write" in (await refused(reader, 403, **asked))["detail"]
    writer = await service.agent("ada", permissions=(Permission.WRITE,))
    assert_problem(await writer.post(CONTEXT, json=asked), 403)
    # A participant that may only read the session is in the same position.
    await talk.do("PUT", "/participants/bob", access="read")
    bob = await service.agent("bob")
    assert "hello" in texts(await compiled(bob, **asked, store=False))
