"""The profile of a person: what is in it, in what order, and for whom."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.support.extent import chosen_seed
from tests.support.service import RunningService
from tests.work.crew import ok

pytestmark = pytest.mark.anyio

DAY = 24 * 3600


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def say(client: httpx.AsyncClient, key: str, text: str, **fields: Any) -> Any:
    draft = {"namespace": "notes", "key": key, "memory_type": "semantic", "value": {"text": text},
             "subjects": ["ann"]}  # fmt: skip
    return ok(await client.post(MEMORY, json={**draft, **fields}), 201)


async def profile(client: httpx.AsyncClient, person: str = "ann", **query: Any) -> Any:
    return ok(await client.get(f"/api/v1/subjects/{person}/profile", params=query))


def sections(found: Any) -> dict[str, str]:
    return {one["source"]["id"]: one["section"] for one in found["lines"]}


async def test_stable_facts_come_before_recent_ones_each_with_its_source(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    old = await say(ada, "diet", "Ann eats no meat.")
    service.clock.advance(40 * DAY)
    new = await say(ada, "town", "Ann has moved to Graz.", memory_type="episodic")
    found = await profile(ada)
    assert sections(found) == {old["id"]: "stable", new["id"]: "recent"}
    assert found["text"].splitlines() == [
        f"- diet: Ann eats no meat. [{old['id']}]",
        f"- town: Ann has moved to Graz. [{new['id']}]",
    ]
    assert found["lines"][0]["source"] == {"id": old["id"], "version": 1}
    assert (found["subject"], found["left_out"]) == ("ann", 0)
    assert await profile(ada, "bob") == {
        "subject": "bob", "text": "", "tokens": 0, "lines": [], "left_out": 0,
    }  # fmt: skip


async def test_it_is_computed_when_it_is_read(ada: httpx.AsyncClient) -> None:
    first = await say(ada, "town", "Ann lives in Graz.")
    await say(ada, "past", "Ann lived in Linz.", value={"text": "x", "valid_until": "2020-01-01"})
    await say(ada, "lesson", "", memory_type="episodic", kind="high_value_success",
              value={"approach": "Ask Ann for her order."})  # fmt: skip
    await say(ada, "episode", "", memory_type="episodic", kind="episode",
              value={"trigger": "Ann asks", "outcome": {"status": "success"}})  # fmt: skip
    assert list(sections(await profile(ada))) == [first["id"]]
    second = await say(ada, "town2", "Ann lives in Wels.")
    path = f"{MEMORY}/{first['id']}/superseded_by"
    ok(await ada.put(path, json={"newer_id": second["id"]}, headers={"If-Match": "1"}))
    assert list(sections(await profile(ada))) == [second["id"]]
    ok(await ada.delete(f"{MEMORY}/{second['id']}"), 204)
    assert (await profile(ada))["lines"] == []


@pytest.mark.parametrize("tokens", [200, 300, 400])
async def test_it_has_room_for_stable_and_recent_facts(
    service: RunningService, ada: httpx.AsyncClient, tokens: int
) -> None:
    source = Random(chosen_seed())
    for number in range(30):
        if number == 15:
            service.clock.advance(40 * DAY)
        text = " ".join(source.choice(("likes", "tea", "Graz", "trains")) for _ in range(9))
        await say(ada, f"fact{number}", text)
    found = await profile(ada, tokens=tokens)
    assert 0.8 * tokens < found["tokens"] <= tokens
    assert set(sections(found).values()) == {"stable", "recent"}
    assert found["left_out"] == 30 - len(found["lines"])


async def test_nobody_sees_more_in_it_than_by_reading(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    own = await say(ada, "mine", "Ann is kind.", memory_type="episodic")
    shared = await say(ada, "ours", "Ann is tall.")
    both = await say(ada, "both", "Ann and Bob sing.", subjects=["ann", "bob"])
    sealed = await say(ada, "sealed", "Ann is ill.", sensitivity="confidential")
    assert set(sections(await profile(ada))) == {
        own["id"], shared["id"], both["id"], sealed["id"],
    }  # fmt: skip
    assert set(sections(await profile(ada, user="ann"))) == {
        own["id"], shared["id"], sealed["id"],
    }  # fmt: skip
    assert sections(await profile(ada, user="bob")) == {}
    eve = await service.agent("eve")
    assert own["id"] not in sections(await profile(eve))
    assert shared["id"] in sections(await profile(eve))
    stranger = service.client(await service.key("ada", tenant="other"))
    assert sections(await profile(stranger)) == {}


async def test_a_bad_request_names_what_is_wrong(ada: httpx.AsyncClient) -> None:
    for tokens in (199, 401):
        reply = await ada.get("/api/v1/subjects/ann/profile", params={"tokens": tokens})
        assert_problem(reply, 400)
        assert "tokens" in reply.text
    reply = await ada.get("/api/v1/subjects/a%2Cb/profile")
    assert_problem(reply, 422)
    assert "subject" in reply.text
