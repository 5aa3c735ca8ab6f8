"""Sessions that continue others: the summary, the state, `reuse`, reopening, and erasure."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.service.erasure.subject_erasure import erase_entries
from tests.http.checks import assert_problem
from tests.http.test_sessions import SESSIONS, TENANT, Talk, begin
from tests.support.damage import verified
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

SAID = ("My invoice 4711 was charged twice.", "Never call me before 9.")
WEEK = 7 * 86_400


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def context_of(talk: Talk, **fields: Any) -> str:
    body = {"session_id": talk.id, "format": "text", "store": False, **fields}
    reply = await talk.client.post("/api/v1/context", json=body)
    assert reply.status_code < 300, reply.text
    return str(reply.json()["text"])


def has_all(text: str) -> bool:
    return "4711" in text and "before 9" in text


@pytest.mark.parametrize("is_summarized", [False, True])
async def test_a_session_begins_with_the_summary_of_the_one_it_continues(
    service: RunningService, ada: httpx.AsyncClient, is_summarized: bool
) -> None:
    earlier = await begin(ada, subject="ann", state={"colour": "amber"})
    await earlier.add(SAID[0])
    if is_summarized:
        await earlier.do("POST", "/checkpoints", trigger="shutdown")
    await earlier.add(SAID[1])
    await earlier.do("POST", "/close", reason="x")
    talk = await begin(ada, subject="ann", continues=earlier.id)
    shown = await talk.do("GET")
    assert (shown["state"], shown["counts"]["turn_count"]) == ({}, 0)
    resumed = await talk.do("POST", "/resume", replay=9)
    assert has_all(resumed["summary"])
    assert resumed["turns"] == []
    assert has_all(await context_of(talk))
    await talk.add("Any news?")
    assert has_all(await context_of(talk))
    assert has_all((await talk.do("POST", "/checkpoints", trigger="shutdown"))["summary"])
    assert has_all(await context_of(talk))
    # A later change of the other session makes nothing stale that was carried over.
    await earlier.do("PATCH", title="Refund")
    for strategy in ("hierarchical", "compaction"):
        body = {"session_id": talk.id, "strategy": strategy}
        made = (await ada.post("/api/v1/context", json=body)).json()
        items = [one for segment in made["segments"] for one in segment["items"]]
        assert {str(one["marks"]) for one in items} == {"[]"}
        assert "amber" not in str(made)
        assert "foreign_session" not in str(made)
    body = {"session_id": talk.id, "format": "text"}
    stored = (await ada.post("/api/v1/context", json=body)).json()
    shown = await ada.get(f"/api/v1/context/{stored['id']}", params={"format": "text"})
    assert shown.json()["text"] == stored["text"]
    await talk.do("DELETE", "/turns")
    assert has_all(await context_of(talk))
    assert verified(service.services.settings.sqlite_path).problems == []


async def test_the_summary_outlives_those_of_the_own_turns(ada: httpx.AsyncClient) -> None:
    earlier = await begin(ada)
    await earlier.add(*SAID)
    talk = await begin(ada, continues=earlier.id, policy={"checkpoints_kept": 1})
    for number in range(4):
        await talk.add(f"The amount is {number} euros.")
        await talk.do("POST", "/checkpoints", trigger="shutdown")
    text = await context_of(talk)
    assert has_all(text)
    # The own turns fit, so no summary of them is shown.
    assert text.count("3 euros") == 1
    # Where they do not fit, the newest summary covers both.
    await talk.add(*(f"Word {'word ' * 90}{number}" for number in range(20)))
    await talk.do("POST", "/checkpoints", trigger="shutdown")
    assert has_all(await context_of(talk, window=2_000, reserve=100))


async def test_the_state_is_carried_over_on_request(ada: httpx.AsyncClient) -> None:
    earlier = await begin(ada, subject="ann", state={"step": 1})
    talk = await begin(ada, subject="ann", continues=earlier.id, with_state=True)
    assert (await talk.do("GET"))["state"] == {"step": 1}
    # Without turns there is no summary.
    assert (await talk.do("POST", "/resume", replay=9))["summary"] == ""
    for bad in ({"with_state": True}, {"with_state": True, "state": {"a": 1}}):
        assert_problem(await ada.post(SESSIONS, json=bad), 422)


async def test_a_fork_begins_like_the_forked_session(ada: httpx.AsyncClient) -> None:
    earlier = await begin(ada)
    await earlier.add(*SAID)
    talk = await begin(ada, continues=earlier.id)
    await talk.add("more")
    fork = Talk(ada, (await talk.do("POST", "/fork", sequence=1))["id"])
    assert has_all(await context_of(fork))


async def test_a_session_is_masked_that_continues_one_that_is_not(ada: httpx.AsyncClient) -> None:
    earlier = await begin(ada)
    await earlier.add("Never write to ann@example.com, only to 4711.")
    talk = await begin(ada, continues=earlier.id, policy={"personal_data": "mask"})
    text = await context_of(talk)
    assert "Never write to [email]" in text
    await talk.add("more")
    made = await talk.do("POST", "/checkpoints", trigger="shutdown")
    assert "Never write to [email]" in made["summary"]


async def test_others_continue_only_what_they_may_read(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    earlier = await begin(ada, participants=[{"agent_id": "bob", "access": "read"}])
    await earlier.add(*SAID)
    bob, eve = await service.agent("bob"), await service.agent("eve")
    assert has_all(await context_of(await begin(bob, continues=earlier.id)))
    assert_problem(await eve.post(SESSIONS, json={"continues": earlier.id}), 404)


async def test_reuse_continues_the_session_that_was_idle(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    wanted = {"subject": "ann", "idle_timeout": "PT8H", "reuse": True}
    first = await begin(ada, **wanted)
    await first.add(*SAID)
    assert (await begin(ada, **wanted)).id == first.id
    service.clock.advance(WEEK)
    second = await begin(ada, **wanted)
    assert (await second.do("GET"))["continues"] == first.id
    assert has_all(await context_of(second))
    assert (await begin(ada, **wanted)).id == second.id
    service.clock.advance(WEEK)
    await run_everywhere(service.services, END_SESSIONS_JOB)
    third = await begin(ada, **wanted)
    assert (await third.do("GET"))["continues"] == second.id
    assert has_all(await context_of(third))
    await third.do("POST", "/close", reason="solved")
    fourth = await begin(ada, **wanted)
    assert (await fourth.do("GET"))["continues"] is None
    assert (await (await begin(ada, **wanted | {"subject": "bob"})).do("GET"))["continues"] is None


@pytest.mark.parametrize("is_stored", [False, True])
async def test_an_idle_session_is_opened_again(
    service: RunningService, ada: httpx.AsyncClient, is_stored: bool
) -> None:
    talk = await begin(ada, idle_timeout="PT30M")
    await talk.add("a")
    service.clock.advance(1_800)
    if is_stored:
        await run_everywhere(service.services, END_SESSIONS_JOB)
    assert_problem(await talk.ask("POST", "/resume", replay=9), 409, "SESSION_CLOSED")
    resumed = await talk.do("POST", "/resume", reopen=True)
    assert (resumed["session"]["status"], len(resumed["turns"])) == ("active", 1)
    assert resumed["session"]["closed_reason"] is None
    service.clock.advance(1_799)
    await talk.add("b")
    service.clock.advance(1_800)
    await run_everywhere(service.services, END_SESSIONS_JOB)
    assert (await talk.do("GET"))["closed_reason"] == "idle"


async def test_only_idle_sessions_are_opened_again(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    closed = await begin(ada, idle_timeout="PT30M")
    await closed.do("POST", "/close", reason="solved")
    over = await begin(ada, idle_timeout="PT30M", ttl="PT1H")
    service.clock.advance(3_600)
    for talk in (closed, over):
        assert_problem(await talk.ask("POST", "/resume", reopen=True), 409, "SESSION_CLOSED")


async def test_an_erasure_of_the_continued_session_reaches_what_was_carried_over(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    earlier = await begin(ada)
    await earlier.add(*SAID)
    talk = await begin(ada, continues=earlier.id)
    await talk.add("more")
    await talk.do("POST", "/checkpoints", trigger="shutdown")
    await erase_entries(service.services, TENANT, [earlier.id])
    assert not has_all(str(await talk.do("GET", "/export")))
    assert "4711" not in await context_of(talk)
    assert await talk.texts() == ["more"]
