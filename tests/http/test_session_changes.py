"""Changes of sessions: their events, limits, metadata, lists of participants, and refusals."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from tests.http.checks import assert_problem
from tests.http.test_sessions import SESSIONS, Talk, begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def changes_of(talk: Talk) -> list[tuple[str | None, str, str | None]]:
    """The status before and after each change, and why the session is not open."""
    query = {"entry_id": talk.id, "limit": 1_000}
    page = await talk.client.get("/api/v1/agents/ada/events", params=query)
    data = [one["data"] for one in page.json()["events"]]
    return [(one.get("previous_status"), one["status"], one.get("closed_reason")) for one in data]


async def test_each_end_of_a_session_is_told_by_its_events(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    idle = await begin(ada, idle_timeout="PT30M")
    expired = await begin(ada, ttl="PT30M")
    closed, archived = await begin(ada), await begin(ada)
    await closed.do("POST", "/close", reason="Ann has cancelled")
    await archived.add("a")
    await archived.do("POST", "/checkpoints", trigger="shutdown")
    await archived.add("b")
    await archived.do("POST", "/archive")
    service.clock.advance(1_800)
    await run_everywhere(service.services, END_SESSIONS_JOB)
    begun = (None, "active", None)
    assert await changes_of(idle) == [begun, ("active", "closed", "idle")]
    assert await changes_of(expired) == [begun, ("active", "closed", "expired")]
    assert await changes_of(closed) == [begun, ("active", "closed", "request")]
    assert await changes_of(archived) == [
        begun,
        ("active", "checkpointed", None),
        ("checkpointed", "active", None),
        ("active", "archived", "archived"),
    ]
    # The text of a client is content, which the log does not keep.
    events = (await ada.get("/api/v1/agents/ada/events")).text
    assert "cancelled" not in events


async def test_limits_of_an_open_session_are_changed(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, ttl="PT1H", idle_timeout="PT10M")
    await talk.add("a")
    service.clock.advance(300)
    changed = await talk.do("PATCH", ttl="PT2H", idle_timeout="PT30M")
    service.clock.advance(1_499)
    await run_everywhere(service.services, END_SESSIONS_JOB)
    await talk.add("b")
    assert changed["idle_timeout"] == "PT30M"
    service.clock.advance(1_800)
    # It has ended, although no job has closed it.
    for limit in ({"idle_timeout": None}, {"ttl": "PT9H"}, {"ends_at": None}):
        reply = await ada.patch(talk.path, json=limit)
        assert_problem(reply, 409, "SESSION_CLOSED")
    assert (await talk.do("PATCH", title="x"))["title"] == "x"


async def test_limits_of_an_open_session_are_removed(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, ttl="PT1H", idle_timeout="PT10M")
    changed = (await ada.patch(talk.path, json={"ends_at": None, "idle_timeout": None})).json()
    assert (changed["ends_at"], changed["idle_timeout"], changed["idle_at"]) == (None, None, None)
    service.clock.advance(86_400)
    await run_everywhere(service.services, END_SESSIONS_JOB)
    await talk.add("a")
    for bad in ({"ttl": "soon"}, {"ttl": "PT1H", "ends_at": "2030-01-01T00:00:00Z"},
                {"idle_timeout": "P1M"}, {"ends_at": "2020-01-01T00:00:00Z"}):  # fmt: skip
        assert_problem(await ada.patch(talk.path, json=bad), 422)


async def test_sessions_are_listed_by_metadata(ada: httpx.AsyncClient) -> None:
    mail = await begin(ada, metadata={"channel": "mail", "priority": 2})
    chat = await begin(ada, metadata={"channel": "chat", "priority": 2})
    none = await begin(ada)

    async def listed(**wanted: Any) -> list[str]:
        query = {"metadata": msgspec.json.encode(wanted).decode(), "limit": 1}
        found: list[str] = []
        while True:
            page = (await ada.get(SESSIONS, params=query)).json()
            found += [one["id"] for one in page["sessions"]]
            if page["next"] is None:
                return found
            query["before"] = page["next"]

    assert await listed(channel="mail") == [mail.id]
    assert await listed(priority=2) == [chat.id, mail.id]
    assert await listed(channel="chat", priority=2) == [chat.id]
    assert await listed(priority="2") == []
    assert await listed() == [none.id, chat.id, mail.id]
    await none.do("PATCH", metadata={"channel": "mail"})
    assert await listed(channel="mail") == [none.id, mail.id]
    turn = (await mail.add("a", metadata={"intent": "refund", "score": 0.5}))["turns"][0]
    assert turn["metadata"] == {"intent": "refund", "score": 0.5}
    for bad in ("channel=mail", "[]", '{"a": [1]}'):
        assert_problem(await ada.get(SESSIONS, params={"metadata": bad}), 400)
    large = {str(number): number for number in range(17)}
    assert_problem(await ada.post(SESSIONS, json={"metadata": large}), 422)


async def test_an_agent_lists_the_sessions_in_which_it_takes_part(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    bob, eve = await service.agent("bob"), await service.agent("eve")
    with_bob = [{"agent_id": "bob", "access": "read"}]
    first = await begin(ada, subject="ann", participants=with_bob, metadata={"channel": "mail"})
    second = await begin(eve, participants=with_bob)
    await begin(bob)
    await begin(ada)

    async def listed(**query: Any) -> list[str]:
        found: list[str] = []
        while True:
            wanted = {"participating": "true", "limit": 1, **query}
            page = (await bob.get(SESSIONS, params=wanted)).json()
            found += [one["id"] for one in page["sessions"]]
            if page["next"] is None:
                return found
            query["before"] = page["next"]

    assert await listed() == [second.id, first.id]
    assert await listed(agent_id="ada") == [first.id]
    assert await listed(subject="ann") == [first.id]
    assert await listed(metadata='{"channel": "mail"}') == [first.id]
    await first.do("POST", "/close", reason="x")
    assert await listed(status="open") == [second.id]
    await second.do("DELETE", "/participants/bob")
    assert await listed() == [first.id]
    assert (await ada.get(SESSIONS, params={"participating": "true"})).json()["sessions"] == []


async def test_refused_sessions_are_counted(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    own, other = await begin(ada), await begin(ada)
    eve = await service.agent("eve")
    made = await ada.post("/api/v1/context", json={"session_id": other.id})
    context = made.json()["id"]
    requests = (
        ("get_session", "GET", other.path, None),
        ("list_turns", "GET", f"{other.path}/turns", None),
        ("export_session", "GET", f"{other.path}/export", None),
        ("resume_session", "POST", f"{other.path}/resume", {}),
        ("create_context", "POST", "/api/v1/context", {"session_id": other.id}),
        ("get_context", "GET", f"/api/v1/context/{context}", None),
    )
    for count, (client, headers) in enumerate(
        ((ada, {"X-Session-ID": own.id}), (eve, {})), start=1
    ):
        for operation, method, path, body in requests:
            reply = await client.request(method, path, json=body, headers=headers)
            assert_problem(reply, 404, "NOT_FOUND")
            counted = service.services.refusals.counts()
            assert counted.get((operation, "NOT_FOUND")) == count, operation
    before = service.services.refusals.counts()
    assert_problem(await ada.get(f"{SESSIONS}/absent"), 404)
    assert service.services.refusals.counts() == before
