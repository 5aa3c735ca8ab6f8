"""Requests inside a session: what they see, what they write, and who may make them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from memorywall.service.access.session_tokens import parse
from tests.http.checks import BATCH, MEMORY, assert_problem
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

SESSIONS = "/api/v1/sessions"
ABSENT = "0199f3a1-6c2e-7d55-9b8e-3f2a1c4d5e6f"


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


@pytest.fixture
async def cal(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("cal") as client:
        yield client


def inside(session: str, **headers: str) -> dict[str, str]:
    """The headers of a request inside a session."""
    return {"X-Session-ID": session, **headers}


async def start(client: httpx.AsyncClient, *participants: str, **fields: Any) -> str:
    """The id of a new session."""
    fields["participants"] = [{"agent_id": one} for one in participants]
    made = await client.post(SESSIONS, json=fields)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def make(
    client: httpx.AsyncClient, key: str, headers: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A new entry that a search for `harvest` finds."""
    body = draft(key, **{"value": {"text": "harvest"}, **fields})
    made = await client.post(MEMORY, json=body, headers=headers)
    assert made.status_code == 201, made.text
    return dict(made.json())


async def say(client: httpx.AsyncClient, session: str, *texts: str) -> None:
    """Adds turns of a user to a session."""
    turns = [{"role": "user", "content": text} for text in texts]
    added = await client.post(f"{SESSIONS}/{session}/turns", json={"turns": turns})
    assert added.status_code in (200, 201), added.text


async def listed(client: httpx.AsyncClient, session: str | None, **asked: Any) -> set[str]:
    """The keys in a list, whose total agrees."""
    headers = None if session is None else inside(session)
    page = (await client.get(MEMORY, params={"limit": 100, **asked}, headers=headers)).json()
    assert page["total"] == len(page["entries"])
    counted = await client.get(MEMORY, params={"count_only": True, **asked}, headers=headers)
    assert counted.json()["total"] == page["total"]
    return {one["key"] for one in page["entries"]}


async def test_every_read_stays_in_the_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    first, second = await start(ada), await start(ada)
    for session, name in ((first, "first"), (second, "second")):
        for tier in ("working", "session", "episodic"):
            await make(ada, f"{name}-{tier}", memory_type=tier, scope={"session_id": session})
    general = {
        tier: await make(ada, f"none-{tier}", memory_type=tier)
        for tier in ("working", "session", "episodic")
    }
    await make(ada, "about-bob", memory_type="episodic", subjects=["bob"])
    expected = {"first-working", "first-session", "first-episodic", "none-episodic"}
    wanted = {"namespace": "invoices"}
    assert await listed(ada, first, **wanted) == expected
    assert await listed(ada, first, **{"scope.session_id": second}) == set()
    assert await listed(ada, first, key="second-session", **wanted) == set()
    exported = (await ada.get(f"{MEMORY}/export", params=wanted, headers=inside(first))).text
    assert exported.count('"key"') == len(expected)
    found = await ada.post(
        f"{MEMORY}/search", json={"query": "harvest", "namespace": "invoices"},
        headers=inside(first),
    )  # fmt: skip
    assert {hit["entry"]["key"] for hit in found.json()["results"]} == expected
    assert found.json()["searched"] >= len(expected)
    everything = await listed(ada, None, **wanted)
    for key in everything:
        asked = {"namespace": "invoices", "key": key}
        entry = (await ada.get(MEMORY, params=asked)).json()["entries"][0]
        status = 200 if key in expected else 404
        path, missing = f"{MEMORY}/{entry['id']}", f"{MEMORY}/mem_absent"
        for suffix in ("", "/history", "/attachments"):
            reply = await ada.get(path + suffix, headers=inside(first))
            assert reply.status_code == status, (key, suffix, reply.text)
            if status == 404:
                absent = await ada.get(missing + suffix, headers=inside(first))
                assert reply.json() == absent.json()
        named = await ada.get(f"{MEMORY}/by-name", params=asked, headers=inside(first))
        assert (named.json()["entry"] is not None) == (key in expected), (key, named.text)
        if status == 404:
            match = inside(first, **{"If-Match": "1"})
            assert (await ada.patch(path, json={"tags": []}, headers=match)).status_code == 404
            assert (await ada.delete(path, headers=inside(first))).status_code == 404
    assert await listed(ada, None, **wanted) == everything
    changes = await ada.get(
        f"{MEMORY}/changes", params={"after": 0, **wanted}, headers=inside(first)
    )
    assert {one["data"]["key"] for one in changes.json()["events"]} == expected
    assert service.services.refusals.counts()["get_entry", "ENTRY_NOT_FOUND"] > 0
    deleted = await ada.delete(
        BATCH, params={"memory_type": "working", "agent_id": "ada"}, headers=inside(first)
    )
    assert deleted.json() == {"deleted": 1}
    assert (await ada.get(f"{MEMORY}/{general['working']['id']}")).status_code == 200


async def test_hidden_entries_move_no_score(ada: httpx.AsyncClient) -> None:
    first, second = await start(ada), await start(ada)
    for key, text in (("a", "apples harvest"), ("b", "pears harvest")):
        await make(ada, key, inside(first), memory_type="session", value={"text": text})

    async def scores() -> list[Any]:
        found = await ada.post(
            f"{MEMORY}/search", json={"query": "apples harvest"}, headers=inside(first)
        )
        return [(hit["entry"]["key"], hit["score"]) for hit in found.json()["results"]]

    before = await scores()
    for number in range(5):
        fields = {"memory_type": "session", "value": {"text": "apples of others"}}
        await make(ada, f"x{number}", inside(second), **fields)
    assert await scores() == before


async def test_writes_belong_to_the_session(ada: httpx.AsyncClient) -> None:
    first, second = await start(ada), await start(ada)
    for tier, scoped in (("working", first), ("session", first), ("episodic", None)):
        made = await make(ada, f"w-{tier}", inside(first), memory_type=tier)
        assert (made["scope"] or {}).get("session_id") == scoped
        assert made["provenance"]["session"] == first
        named = await make(
            ada, f"n-{tier}", inside(first), memory_type=tier, scope={"session_id": first}
        )
        assert named["scope"]["session_id"] == first
        other = draft("o", memory_type=tier, scope={"session_id": second})
        assert_problem(await ada.post(MEMORY, json=other, headers=inside(first)), 422)
        moved = await ada.patch(
            f"{MEMORY}/{made['id']}",
            json={"scope": {"session_id": second}},
            headers=inside(first, **{"If-Match": "1"}),
        )
        assert_problem(moved, 422)
        emptied = await ada.patch(
            f"{MEMORY}/{named['id']}",
            json={"scope": {}},
            headers=inside(first, **{"If-Match": "1"}),
        )
        assert (emptied.json()["scope"] or {}).get("session_id") == scoped, emptied.text
    put = draft("put", memory_type="session")
    for number, session in enumerate((first, second)):
        made_here = await ada.put(MEMORY, json=put, headers=inside(session))
        assert made_here.status_code == 201, (number, made_here.text)
    derived = draft("d", derived_from=[{"id": made_here.json()["id"], "version": 1}])
    assert_problem(await ada.post(MEMORY, json=derived, headers=inside(first)), 422)


async def test_a_session_has_the_subject_of_its_requests(ada: httpx.AsyncClient) -> None:
    of_ann, of_nobody = await start(ada, subject="ann"), await start(ada)
    made = await make(ada, "ann", inside(of_ann), memory_type="episodic")
    assert (made["subjects"], made["namespace"]) == (["ann"], "user/ann/invoices")
    for subject in ("ann", "bob"):
        fields = {"memory_type": "episodic", "namespace": f"user/{subject}/invoices"}
        await make(ada, f"about-{subject}", None, subjects=[subject], **fields)
    assert await listed(ada, of_ann, namespace="invoices") == {"ann", "about-ann"}
    assert await listed(ada, of_nobody, memory_type="episodic", agent_id="ada") == set()
    body = draft("x", subjects=["ann"])
    assert_problem(await ada.post(MEMORY, json=body, headers=inside(of_nobody)), 403)
    both = inside(of_ann, **{"X-Subject": "ann"})
    assert (await ada.get(MEMORY, headers=both)).status_code == 200
    for session, subject in ((of_ann, "bob"), (of_nobody, "ann")):
        headers = inside(session, **{"X-Subject": subject})
        assert_problem(await ada.get(MEMORY, headers=headers), 404)


@pytest.mark.parametrize("sensitivity", ["internal", "confidential"])
async def test_a_filter_inside_a_session_names_what_is_about_its_subject_and_about_nobody(
    ada: httpx.AsyncClient, sensitivity: str
) -> None:
    session = await start(ada, subject="ann")
    fields = {"memory_type": "semantic", "sensitivity": sensitivity}
    await make(ada, "own", inside(session), **fields)
    await make(ada, "general", **fields)
    await make(ada, "of-bob", {"X-Subject": "bob"}, **fields)
    await make(ada, "beside", namespace="invoicesx", **fields)
    both = {"own", "general"}
    for asked in (
        {"namespace": "invoices"},
        {"namespace": "invoices", "where": 'value.text = "harvest"'},
    ):
        assert await listed(ada, session, **asked) == both
    assert await listed(ada, session, namespace="invo*") == {*both, "beside"}
    assert await listed(ada, session, namespace="user/ann/invoices") == {"own"}
    query = {"query": "harvest", "namespace": "invoices"}
    found = await ada.post(f"{MEMORY}/search", json=query, headers=inside(session))
    hits = {hit["entry"]["key"] for hit in found.json()["results"]}
    assert hits == (both if sensitivity == "internal" else set())
    wanted = {"namespace": "invoices", "after": 0}
    changes = await ada.get(f"{MEMORY}/changes", params=wanted, headers=inside(session))
    # The log has no key of a confidential entry.
    assert len(changes.json()["events"]) == 2
    exported = await ada.get(
        f"{MEMORY}/export", params={"namespace": "invoices"}, headers=inside(session)
    )
    assert len(exported.text.splitlines()) == 2
    # A request that is bound to ann alone, and a deletion, mean the namespace of the person.
    bound = await ada.get(MEMORY, params={"namespace": "invoices"}, headers={"X-Subject": "ann"})
    assert [one["key"] for one in bound.json()["entries"]] == ["own"]
    deleted = await ada.delete(
        BATCH, params={"namespace": "invoices", "agent_id": "ada"}, headers=inside(session)
    )
    assert deleted.status_code == 200, deleted.text
    assert "general" in await listed(ada, None, namespace="invoices")


async def test_keys_limited_to_people_know_no_session_of_others(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    of_ann, of_bob, of_nobody = [await start(ada, subject=one) for one in ("ann", "bob", None)]
    async with await service.agent("ada", subjects=["ann"]) as limited:
        assert (await limited.get(MEMORY, headers=inside(of_ann))).status_code == 200
        absent = await limited.get(MEMORY, headers=inside(ABSENT))
        for session in (of_bob, of_nobody):
            hidden = await limited.get(MEMORY, headers=inside(session))
            assert (hidden.status_code, hidden.json()) == (404, absent.json())


async def test_hidden_ended_and_absent_sessions(
    service: RunningService, ada: httpx.AsyncClient, cal: httpx.AsyncClient
) -> None:
    session = await start(ada)
    hidden = await cal.get(MEMORY, headers=inside(session))
    absent = await cal.get(MEMORY, headers=inside(ABSENT))
    assert_problem(hidden, 404)
    assert hidden.json() == absent.json()
    entry = await make(ada, "entry", memory_type="episodic")
    assert_problem(await ada.get(MEMORY, headers=inside(entry["id"])), 404)
    assert service.services.refusals.counts()["query_entries", "NOT_FOUND"] == 1
    limited = await start(ada, ttl="PT60S")
    assert (await ada.get(MEMORY, headers=inside(limited))).status_code == 200
    service.clock.advance(60)
    assert_problem(await ada.get(MEMORY, headers=inside(limited)), 409, "SESSION_CLOSED")
    assert (await ada.post(f"{SESSIONS}/{session}/close", json={})).status_code == 200
    assert_problem(await ada.get(MEMORY, headers=inside(session)), 409, "SESSION_CLOSED")
    assert_problem(await cal.get(MEMORY, headers=inside(session)), 404)


async def test_an_idle_session_refuses_requests_as_soon_as_it_is_idle(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    session = await start(ada, idle_timeout="PT30M")
    for _ in range(3):
        # Each turn begins the idle time again, although no job has run.
        service.clock.advance(29 * 60)
        assert (await ada.get(MEMORY, headers=inside(session))).status_code == 200
        await say(ada, session, "Still here.")
    service.clock.advance(30 * 60)
    refused = await ada.get(MEMORY, headers=inside(session))
    assert "idle" in assert_problem(refused, 409, "SESSION_CLOSED")["detail"]
    assert (await ada.get(f"{SESSIONS}/{session}")).json()["status"] == "closed"


async def test_the_feed_inside_a_session_shows_what_is_deleted_in_it(
    service: RunningService, ada: httpx.AsyncClient, cal: httpx.AsyncClient
) -> None:
    session, other = await start(ada, "cal", subject="ann"), await start(ada)
    after = (await ada.get(f"{MEMORY}/changes")).json()["next"]
    places = {"own": inside(session), "foreign": inside(other), "plain": {}}
    made = [
        await make(ada, f"{name} {tier}", headers, memory_type=tier)
        for name, headers in places.items()
        for tier in ("session", "episodic")
    ]
    of_bob = await make(ada, "of bob", memory_type="episodic", subjects=["bob"])
    bound = await make(ada, "bound", memory_type="episodic", scope={"session_id": other})
    for one in (*made, of_bob, bound):
        assert (await ada.delete(f"{MEMORY}/{one['id']}")).status_code == 204

    async def follow(client: httpx.AsyncClient, headers: dict[str, str]) -> list[str]:
        asked = {"after": after, "limit": 100}
        page = (await client.get(f"{MEMORY}/changes", params=asked, headers=headers)).json()
        if headers:
            # Inside a session, of an entry that is gone only the deletion is shown.
            assert {one["type"] for one in page["events"]} <= {"memory.deleted"}
        deleted = [one for one in page["events"] if one["type"] == "memory.deleted"]
        return sorted(one["data"]["key"] for one in deleted)

    in_any = ["foreign episodic", "own episodic", "plain episodic"]
    assert await follow(ada, {}) == sorted([*in_any, "own session", "foreign session",
                                            "plain session", "of bob", "bound"])  # fmt: skip
    assert await follow(ada, inside(session)) == sorted([*in_any, "own session"])
    # What was written inside the first session is about its subject.
    assert await follow(ada, inside(other)) == sorted(["foreign episodic", "plain episodic",
                                                       "foreign session", "bound"])  # fmt: skip
    assert await follow(cal, inside(session)) == ["own session"]


async def test_a_session_is_handed_over(
    ada: httpx.AsyncClient, cal: httpx.AsyncClient, service: RunningService
) -> None:
    shared, other = await start(ada, "cal"), await start(ada)
    await say(ada, shared, "the harvest of ann")
    await say(ada, other, "the harvest of bob")
    note = await make(ada, "note", inside(shared), memory_type="session")
    secret = await make(ada, "secret", inside(shared), memory_type="working")
    assert await listed(cal, shared, namespace="invoices") == {"note"}
    assert await listed(cal, shared, kind="turn") == {"0000000001"}
    assert await listed(cal, shared, tags="none") == set()
    found = await cal.post(f"{MEMORY}/search", json={"query": "harvest"}, headers=inside(shared))
    assert len(found.json()["results"]) == 2
    path = f"{MEMORY}/{note['id']}"
    assert (await cal.get(path, headers=inside(shared))).status_code == 200
    assert_problem(await cal.get(path), 403)
    assert_problem(await cal.get(f"{MEMORY}/{secret['id']}", headers=inside(shared)), 403)
    match = inside(shared, **{"If-Match": "1"})
    assert_problem(await cal.patch(path, json={"tags": []}, headers=match), 403)
    changes = await cal.get(f"{MEMORY}/changes", params={"after": 0}, headers=inside(shared))
    assert "note" in {one["data"]["key"] for one in changes.json()["events"]}
    repeated = {"Idempotency-Key": "k", **inside(shared)}
    body = draft("own", memory_type="session")
    assert (await cal.post(MEMORY, json=body, headers=repeated)).status_code == 201
    assert (await cal.post(MEMORY, json=body, headers=repeated)).status_code == 201
    elsewhere = {"Idempotency-Key": "k"}
    assert_problem(await cal.post(MEMORY, json=body, headers=elsewhere), 422)
    gone = await ada.delete(f"{SESSIONS}/{shared}/participants/cal")
    assert gone.status_code == 204
    for reply in (
        await cal.get(path, headers=inside(shared)),
        await cal.get(MEMORY, headers=inside(shared)),
        await cal.post(MEMORY, json=body, headers=repeated),
        await cal.get(f"{SESSIONS}/{shared}"),
    ):
        assert_problem(reply, 404)
    assert service.services.refusals.counts()["query_entries", "NOT_FOUND"] == 1


async def test_a_reader_of_a_session_writes_no_memory_of_it(
    ada: httpx.AsyncClient, cal: httpx.AsyncClient
) -> None:
    made = await ada.post(SESSIONS, json={"participants": [{"agent_id": "cal", "access": "read"}]})
    session = made.json()["id"]
    for tier, status in (("session", 403), ("working", 403), ("episodic", 201)):
        body = draft("x", memory_type=tier)
        reply = await cal.post(MEMORY, json=body, headers=inside(session))
        assert reply.status_code == status, (tier, reply.text)


async def test_operations_on_sessions_reach_only_their_own(ada: httpx.AsyncClient) -> None:
    first, second = await start(ada), await start(ada)
    await say(ada, second, "words of the second session")
    for path in ("", "/turns", "/checkpoints", "/export"):
        own = await ada.get(f"{SESSIONS}/{first}{path}", headers=inside(first))
        assert own.status_code == 200, (path, own.text)
        other = await ada.get(f"{SESSIONS}/{second}{path}", headers=inside(first))
        absent = await ada.get(f"{SESSIONS}/{ABSENT}{path}", headers=inside(first))
        assert_problem(other, 404)
        assert other.json() == absent.json()
    turns = {"turns": [{"role": "user", "content": "hello"}]}
    added = await ada.post(f"{SESSIONS}/{first}/turns", json=turns, headers=inside(first))
    assert added.status_code in (200, 201)
    assert_problem(
        await ada.post(f"{SESSIONS}/{second}/turns", json=turns, headers=inside(first)), 404
    )
    sessions = (await ada.get(SESSIONS, headers=inside(first))).json()["sessions"]
    assert [one["id"] for one in sessions] == [first]
    assert_problem(await ada.post(SESSIONS, json={}, headers=inside(first)), 403)
    assert_problem(await ada.get("/api/v1/intents", headers=inside(first)), 403)
    schemas = await ada.get("/api/v1/schemas", headers=inside(first))
    assert schemas.status_code == 200


async def test_shared_memory_inside_a_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    chief = await service.agent("chief", permissions=tuple(Permission))
    access = {"permissions": {"default": "write", "allow": []}}
    await chief.patch(f"{MEMORY}/namespaces/facts", json=access)
    first, second = await start(ada), await start(ada)
    for key, scope in (("none", {}), ("here", {"session_id": first}),
                       ("there", {"session_id": second})):  # fmt: skip
        await make(ada, key, memory_type="semantic", namespace="facts", scope=scope)
    assert await listed(ada, first, namespace="facts") == {"none", "here"}
    found = await ada.post(f"{MEMORY}/search", json={"query": "harvest"}, headers=inside(first))
    assert {hit["entry"]["key"] for hit in found.json()["results"]} == {"none", "here"}


async def test_an_entry_is_seen_as_of_an_instant_if_it_belonged_to_the_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    first, second = await start(ada), await start(ada)
    made = await make(ada, "e", memory_type="episodic", scope={"session_id": second})
    then = made["updated_at"]
    service.clock.advance(60)
    moved = await ada.patch(
        f"{MEMORY}/{made['id']}",
        json={"scope": {"session_id": first}, "value": {"text": "harvest now"}},
        headers={"If-Match": "1"},
    )
    assert moved.status_code == 200
    assert await listed(ada, first, namespace="invoices") == {"e"}
    as_of = {"as_of": then, "namespace": "invoices"}
    page = await ada.get(MEMORY, params=as_of, headers=inside(first))
    assert page.json()["entries"] == []
    path = f"{MEMORY}/{made['id']}"
    got = await ada.get(path, params={"version": 1}, headers=inside(first))
    assert_problem(got, 404)
    history = (await ada.get(f"{path}/history", headers=inside(first))).json()
    assert [one["version"] for one in history["versions"]] == [2]
    found = await ada.post(
        f"{MEMORY}/search", json={"query": "harvest", "as_of": then}, headers=inside(first)
    )
    assert found.json()["results"] == []


async def test_a_token_is_inside_its_session_only(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    first, second = await start(ada, ttl="PT2H"), await start(ada)
    note = await make(ada, "note", inside(first), memory_type="session")
    made = await ada.post(f"{SESSIONS}/{first}/token", json={})
    assert made.status_code == 200, made.text
    token = made.json()["token"]
    assert (made.json()["session_id"], made.json()["agent_id"]) == (first, "ada")
    async with service.client(token) as guest:
        assert {one["key"] for one in (await guest.get(MEMORY)).json()["entries"]} >= {"note"}
        assert (await guest.get(f"{MEMORY}/{note['id']}")).status_code == 200
        own = await make(guest, "own", memory_type="session")
        assert own["scope"]["session_id"] == first
        assert (await guest.get(MEMORY, headers=inside(first))).status_code == 200
        assert_problem(await guest.get(MEMORY, headers=inside(second)), 404)
        assert_problem(await guest.get(f"{SESSIONS}/{second}"), 404)
        assert_problem(await guest.get("/api/v1/intents"), 403)
        assert_problem(await guest.post(f"{SESSIONS}/{first}/token", json={}), 403)
        assert_problem(await guest.post(SESSIONS, json={}), 403)
        assert_problem(await guest.get(MEMORY, headers={"X-Agent-ID": "cal"}), 403)
        assert (await guest.get("/api/v1/agents/me")).json()["agent_id"] == "ada"
        service.clock.advance(3_600)
        assert_problem(await guest.get(MEMORY), 401)
    body = {"ttl": "P1D"}
    for wrong in ("P2D", "PT0S", "-PT1H", "soon"):
        refused = await ada.post(f"{SESSIONS}/{first}/token", json={"ttl": wrong})
        assert_problem(refused, 422)
    long = (await ada.post(f"{SESSIONS}/{first}/token", json=body)).json()
    assert long["expires_at"] == (await ada.get(f"{SESSIONS}/{first}")).json()["ends_at"]
    async with service.client(long["token"]) as guest:
        assert (await guest.get(MEMORY)).status_code == 200
        assert (await ada.post(f"{SESSIONS}/{first}/close", json={})).status_code == 200
        assert_problem(await guest.get(MEMORY), 409, "SESSION_CLOSED")
    assert_problem(await ada.post(f"{SESSIONS}/{first}/token", json={}), 409)


async def test_forged_tokens_and_tokens_of_revoked_keys_are_refused(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    chief = await service.agent("chief", permissions=tuple(Permission))
    session = await start(ada, "cal")
    async with await service.agent("cal") as cal:
        made = await cal.post(f"{SESSIONS}/{session}/token", json={})
        text = made.json()["token"]
        prefix = cal.headers["X-API-Key"].partition(".")[0]
    claims, _, signature = text.partition(".")
    other = claims.removeprefix("mws_")
    content = base64.urlsafe_b64decode(other + "=" * (-len(other) % 4))
    forged = base64.urlsafe_b64encode(content.replace(b'"cal"', b'"ada"')).decode().rstrip("=")
    elsewhere = base64.urlsafe_b64encode(content.replace(b'"default"', b'"north"')).decode()
    for wrong in (
        f"mws_{forged}.{signature}", f"mws_{elsewhere}.{signature}", f"{claims}.~{'0' * 40}",
        claims, f"{claims}.", "mws_", "mws_.", "mws_!!.x",
    ):  # fmt: skip
        async with service.client(wrong) as guest:
            assert_problem(await guest.get(MEMORY), 401)
    token = parse(text)
    assert token is not None
    cipher = service.services.cipher
    digest = cipher.prepared_digest("default", token[0].literal)
    earlier = cipher.prepared_digest("default", "session token\0" + token[0].literal)
    assert len({digest, earlier, signature}) == 3
    for tried, status in ((digest, 401), (earlier, 200)):
        async with service.client(f"{claims}.{tried}") as guest:
            assert (await guest.get(MEMORY)).status_code == status
    async with service.client(text) as guest:
        assert (await guest.get(MEMORY)).status_code == 200
        gone = await ada.delete(f"{SESSIONS}/{session}/participants/cal")
        assert gone.status_code == 204
        assert_problem(await guest.get(MEMORY), 404)
        path = f"{SESSIONS}/{session}/participants/cal"
        assert (await ada.put(path, json={"access": "read"})).status_code == 200
        assert (await guest.get(MEMORY)).status_code == 200
        revoked = await chief.delete(f"/api/v1/keys/{prefix}")
        assert revoked.status_code == 200, revoked.text
        assert_problem(await guest.get(MEMORY), 401)


async def test_batches_and_json_rpc_are_inside_the_session(ada: httpx.AsyncClient) -> None:
    first, second = await start(ada), await start(ada)
    other = draft("x", memory_type="session", scope={"session_id": second})
    refused = await ada.post(BATCH, json={"entries": [other]}, headers=inside(first))
    assert_problem(refused, 422)
    own = draft("b", memory_type="session")
    made = await ada.post(BATCH, json={"entries": [own]}, headers=inside(first))
    assert made.status_code == 200, made.text
    asked = {"jsonrpc": "2.0", "id": 1, "method": "query_entries", "params": {"key": "b"}}
    for session, count in ((first, 1), (second, 0)):
        reply = await ada.post("/rpc", json=asked, headers=inside(session))
        assert reply.json()["result"]["total"] == count, reply.text
