"""What a checkpoint contains besides turns: working entries, and the quality of its summary."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.http.test_contexts import compiled
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService, draft
from tests.support.stored import change

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
    assert (made["trigger"], keys(made)) == ("turn_count", ["one"])


async def test_a_checkpoint_of_the_policy_is_summarized_by_rules_when_it_is_read(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, policy={"checkpoint_turns": 2})
    await talk.add("My order 17 is late.", "It must arrive by Friday.")
    await talk.add("My order 18 is early.", "That is all.")
    newest, first = (await talk.do("GET", "/checkpoints"))["checkpoints"]
    assert "order 17" in first["summary"]
    assert "order 18" not in first["summary"]
    assert all(number in newest["summary"] for number in ("order 17", "order 18"))
    assert newest["quality"]["tokens"] > 0
    # Nothing is stored: the turns are all returned beside it, and no turn is summarized.
    assert newest["summarized_through"] == 0
    resumed = await talk.do("POST", "/resume", replay=9)
    assert resumed["checkpoint"] == newest
    assert len(resumed["turns"]) == 4
    assert (await talk.do("GET", "/export"))["checkpoints"] == [first, newest]
    assert (await talk.do("GET"))["counts"]["summarized_through"] == 0


async def test_a_failed_call_of_a_tool_makes_a_checkpoint(ada: httpx.AsyncClient) -> None:
    call = {"id": "c1", "name": "find", "arguments": {}}
    asks = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    plain = {"role": "tool", "tool_call_id": "c1", "content": "timed out", "is_error": True}
    part = {"type": "tool_result", "tool_use_id": "c1", "content": "timed out", "is_error": True}
    for failed in (plain, {"role": "user", "content": [part]}):
        for policy, expected in (({}, ["error_recovery"]), ({"checkpoint_on_error": False}, [])):
            talk = await begin(ada, policy=policy)
            await talk.do("POST", "/turns", turns=[{"role": "user", "content": "Go."}, asks])
            assert (await talk.do("GET", "/checkpoints"))["checkpoints"] == []
            (turn,) = (await talk.do("POST", "/turns", turns=[failed]))["turns"]
            assert turn["is_error"] is True
            texts = [one["text"] for one in turn["content"]]
            assert texts == ["The call failed.", "timed out"]
            made = (await talk.do("GET", "/checkpoints"))["checkpoints"]
            assert [one["trigger"] for one in made] == expected
            assert (await talk.do("GET"))["status"] == "active"
            assert (await talk.do("POST", "/turns", turns=[{**asks, "content": "x"}]))["turns"]
    wrong = {"role": "user", "content": "x", "is_error": True}
    refused = await talk.ask("POST", "/turns", turns=[wrong])
    assert "is_error" in assert_problem(refused, 422)["detail"]


@pytest.mark.parametrize("moved", ["the newest turn", "swapped turns", "the checkpoint"])
async def test_what_was_moved_between_two_sessions_of_an_agent_is_noticed(
    service: RunningService, ada: httpx.AsyncClient, moved: str
) -> None:
    first, second = await begin(ada, subject="ann"), await begin(ada, subject="ann")
    await first.add("a")
    await second.add("b", "secret", "d")
    kind, key = "turn", "0000000003"
    if moved == "the checkpoint":
        kind, key = "checkpoint", "0000000001"
        await second.do("POST", "/checkpoints", trigger="shutdown")
    move = "UPDATE entries SET session_id = ? WHERE session_id = ? AND kind = ? AND key = ?"
    if moved == "swapped turns":
        key = "0000000001"
        change(service, move, "aside", first.id, kind, key)
        change(service, move, first.id, second.id, kind, key)
        change(service, move, second.id, "aside", kind, key)
    else:
        change(service, move, first.id, second.id, kind, key)
    for talk in (first,) if moved == "the checkpoint" else (first, second):
        refused = await talk.ask("POST", "/resume", replay=9)
        assert_problem(refused, 409, "SESSION_QUARANTINED")
        assert "secret" not in refused.text
        assert (await talk.do("GET"))["status"] == "quarantined"


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
