"""What a checkpoint contains besides turns: working entries, and the quality of its summary."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY
from tests.http.test_contexts import compiled
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def work(client: httpx.AsyncClient, key: str, talk: Talk, **fields: Any) -> Any:
    body = draft(key, memory_type="working", scope={"session_id": talk.id}, **fields)
    response = await client.post(MEMORY, json=body)
    assert response.status_code == 201, response.text
    return response.json()


def keys(checkpoint: Any) -> list[str]:
    return [one["key"] for one in checkpoint["working"]]


async def test_a_checkpoint_has_the_working_entries_of_its_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, subject="ann", participants=[{"agent_id": "bob"}])
    other = await begin(ada, subject="ann")
    first = await work(ada, "one", talk)
    await work(ada, "two", talk, subjects=["ann"])
    await work(ada, "secret", talk, sensitivity="confidential")
    await work(ada, "of bob", talk, subjects=["bob"])
    await work(ada, "elsewhere", other)
    bob = await service.agent("bob")
    await work(bob, "three", talk)
    made = await talk.do("POST", "/checkpoints", trigger="error_recovery")
    assert keys(made) == ["one", "two"]
    assert made["working"][0] == {name: first[name] for name in ("namespace", "key", "value")}
    resumed = await talk.do("POST", "/resume", replay=0)
    assert resumed["checkpoint"]["working"] == made["working"]
    assert keys(await talk.by(bob).do("POST", "/checkpoints", trigger="shutdown")) == ["three"]
    assert keys(await talk.do("POST", "/checkpoints", working=[])) == []


async def test_checkpoints_of_the_policy_have_working_entries(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada, policy={"checkpoint_turns": 2})
    await work(ada, "one", talk)
    await talk.add("a", "b")
    (made,) = (await talk.do("GET", "/checkpoints"))["checkpoints"]
    assert (made["trigger"], keys(made), made["quality"]) == ("turn_count", ["one"], None)


async def test_working_entries_of_a_task_name_it(
    ada: httpx.AsyncClient,
) -> None:
    intent = (await ada.post("/api/v1/intents", json={"title": "x"})).json()
    wanted = {"intent_id": intent["id"], "name": "x", "assigned_agent": "ada"}
    task = (await ada.post("/api/v1/tasks", json=wanted)).json()
    talk = await begin(ada)
    body = draft("note", memory_type="working",
                 scope={"session_id": talk.id, "task_id": task["id"]})  # fmt: skip
    assert (await ada.post(MEMORY, json=body)).status_code == 201
    (shown,) = (await talk.do("POST", "/checkpoints", trigger="shutdown"))["working"]
    assert (shown["key"], shown["task_id"]) == ("note", task["id"])


async def test_many_working_entries_are_limited_to_the_newest(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memorywall.sessions.working_entries.MOST_BYTES", 2_500)
    talk = await begin(ada)
    for number in range(4):
        await work(ada, str(number), talk, value={"text": "x" * 1_000})
    assert keys(await talk.do("POST", "/checkpoints", trigger="shutdown")) == ["2", "3"]


async def test_the_quality_of_a_summary_is_shown_and_listed(ada: httpx.AsyncClient) -> None:
    good = await begin(ada)
    await good.add("My order 17 of 3 May is late.", "It must arrive by Friday.")
    poor = await begin(ada, token_budget=80)
    await poor.add(*(f"I must have parcel {number} by {number} May." for number in range(10, 30)))
    quality = {}
    for talk in (good, poor):
        made = await talk.do("POST", "/checkpoints", trigger="error_recovery")
        quality[talk.id] = made["quality"]
        assert made["quality"]["tokens"] > 0
        assert made["quality"]["fallback"] is False
        assert (await talk.do("GET", "/checkpoints"))["checkpoints"][0] == made
    assert quality[good.id]["kept"] == quality[good.id]["must_keep"] > 0
    assert 0 < quality[poor.id]["kept"] < quality[poor.id]["must_keep"]
    for status, talk in (("complete", good), ("partial", poor)):
        found = await ada.get(MEMORY, params={"kind": "summary", "status": status})
        assert [one["scope"]["session_id"] for one in found.json()["entries"]] == [talk.id]
    context = await compiled(ada, session_id=poor.id, user="So?", window=450, reserve=50)
    items = [item for one in context["segments"] for item in one["items"]]
    (shown,) = [item["quality"] for item in items if "quality" in item]
    # The quality in a context is that of the text that is shown, which has less room.
    assert shown["must_keep"] == quality[poor.id]["must_keep"]
    assert 0 < shown["kept"] <= quality[poor.id]["kept"]
    assert 0 < shown["tokens"] <= quality[poor.id]["tokens"]
    again = (await ada.get(f"/api/v1/context/{context['id']}")).json()
    assert again["segments"] == context["segments"]
