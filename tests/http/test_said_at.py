"""`X-Said-At`: nothing is stored about a person who was forgotten since it was said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memorywall.exceptions import SubjectForgottenError, ValidationError
from memorywall.records.clock import format_instant
from memorywall.records.event import WorkEventType
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.http.checks import BATCH, MEMORY, assert_problem, everything, keys_of, make
from tests.support.service import RunningService, draft
from tests.work.crew import ok

pytestmark = pytest.mark.anyio

ANA = {"X-User": "ana"}
SESSIONS = "/api/v1/sessions"
CLAIMS = "/api/v1/claims"
NFC, NFD = "Jos\u00e9", "Jose\u0301"


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=tuple(Permission)) as client:
        yield client


def said(service: RunningService, seconds: float = 0) -> dict[str, str]:
    """The header of something that was said this long from now."""
    return {"X-Said-At": format_instant(service.clock.now() + round(seconds * 1000))}


async def forget(client: httpx.AsyncClient, person: str = "ana") -> dict[str, Any]:
    return dict(ok(await client.post(f"/api/v1/subjects/{quote(person)}/forget")))


def assert_forgotten(response: httpx.Response) -> dict[str, Any]:
    problem = assert_problem(response, 409, "SUBJECT_FORGOTTEN")
    assert "`X-Said-At`" in problem["detail"]
    assert "ana" not in problem["detail"]
    return problem


async def test_what_was_said_before_is_refused_and_what_was_said_after_is_stored(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service, -1)
    ok(await ada.post(MEMORY, json=draft("early"), headers={**ANA, **before}), 201)
    gone = await forget(ada)
    assert gone["receipt"] is not None
    log = await everything(service)
    for header in (before, said(service)):
        assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers={**ANA, **header}))
    service.clock.advance(1)
    zone = {"X-Said-At": "2026-02-02T03:40:00+01:00"}
    assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers={**ANA, **zone}))
    assert await everything(service) == log
    # Others, nobody, no header, and what the person says again.
    for number, headers in enumerate(
        ({"X-User": "bob", **before}, before, ANA, {**ANA, **said(service)})
    ):
        ok(await ada.post(MEMORY, json=draft(f"k{number}"), headers=headers), 201)
    together = {"X-User": "bob, ana", **before}
    assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers=together))


async def test_a_person_of_whom_nothing_is_stored_can_be_forgotten(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    for _ in range(2):
        before = said(service)
        gone = await forget(ada)
        assert (gone["receipt"], gone["entries"]) == (None, {})
        assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers={**ANA, **before}))
        service.clock.advance(1)
    events = [
        one
        for one in (await everything(service)).events
        if one.type == WorkEventType.SUBJECT_FORGOTTEN
    ]
    assert len(events) == 2
    for one in events:
        content = json.loads(one.data or b"")
        assert content.pop("subject_digest").startswith("~")
        assert content == {"entries": 0, "derived": 0, "versions": 0, "events": 0}
        assert (one.stream, one.entry_id, one.namespace, one.key, one.subjects) == (
            "", "", "", "", None,
        )  # fmt: skip


async def _writes(ada: httpx.AsyncClient) -> list[tuple[str, str, Any, dict[str, str]]]:
    """One request of each family, about nothing that is stored about the person."""
    shared = await make(ada, "shared", memory_type="episodic", value={"text": "likes tea"})
    free = await make(ada, "free", memory_type="episodic")
    path = f"{MEMORY}/{shared['id']}"
    return [
        ("POST", MEMORY, draft("k"), {}),
        ("PUT", MEMORY, draft("k"), {}),
        ("PATCH", path, {"value": {"n": 2}}, {"If-Match": "1"}),
        ("POST", BATCH, {"entries": [draft("l"), draft("m")]}, {}),
        ("POST", "/api/v1/remember", {"text": "Her dentist is in Bonn."}, {}),
        ("POST", SESSIONS, {}, {}),
        ("POST", CLAIMS, {"key": "k"}, {}),
        ("POST", "/api/v1/context", {"query": "tea"}, {}),
        ("POST", f"{MEMORY}/{free['id']}/promote", {"to": "semantic", "namespace": "n"}, {}),
        ("POST", f"{MEMORY}/{free['id']}/attachments", {"filename": "a.txt"}, {}),
    ]


async def test_every_write_is_refused_and_no_read_and_no_deletion(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    writes = await _writes(ada)
    gone = await make(ada, "gone", memory_type="episodic")
    before = said(service)
    await forget(ada)
    log = await everything(service)
    bound = {**ANA, **before}
    for method, path, body, headers in writes:
        refused = await ada.request(method, path, json=body, headers={**bound, **headers})
        assert refused.status_code == 409, (method, path, refused.text)
        assert_forgotten(refused)
    assert await everything(service) == log
    kept = ok(await ada.get(MEMORY, headers=bound))["entries"]
    assert sorted(one["key"] for one in kept) == ["free", "gone", "shared"]
    found = ok(await ada.post(f"{MEMORY}/search", json={"query": "tea"}, headers=bound))
    assert "shared" in [one["entry"]["key"] for one in found["results"]]
    ok(await ada.delete(f"{MEMORY}/{gone['id']}", headers={**bound, "If-Match": "1"}), 204)
    # The same requests are no mistake of this test.
    later = {**ANA, **said(service, 1)}
    for method, path, body, headers in writes[1:]:
        sent = await ada.request(method, path, json=body, headers={**later, **headers})
        assert sent.is_success, (method, path, sent.text)


async def test_turns_of_a_session_are_refused_inside_and_outside_of_a_binding(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service)
    await forget(ada)
    service.clock.advance(1)
    session = ok(await ada.post(SESSIONS, json={"subject": "ana"}), 201)["id"]
    other = ok(await ada.post(SESSIONS, json={}), 201)["id"]
    turns = {"turns": [{"role": "user", "content": "Hello"}]}
    path = f"{SESSIONS}/{session}/turns"
    for headers in (ANA, {}, {"X-Session-ID": session}):
        assert_forgotten(await ada.post(path, json=turns, headers={**headers, **before}))
    inside = {"X-Session-ID": session, **before}
    assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers=inside))
    assert ok(await ada.get(path))["turns"] == []
    ok(await ada.post(path, json=turns, headers={**ANA, **said(service)}), 201)
    ok(await ada.post(f"{SESSIONS}/{other}/turns", json=turns, headers=before), 201)


async def test_subjects_of_an_entry_count_as_those_of_the_request(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service)
    about = await make(ada, "old", subjects=["bob"])
    await forget(ada)
    body = draft("k", subjects=["bob", "ana"])
    for fields in ({}, {"sensitivity": "restricted"}):
        assert_forgotten(await ada.post(MEMORY, json={**body, **fields}, headers=before))
    batch = {"entries": [draft("first"), body]}
    assert assert_forgotten(await ada.post(BATCH, json=batch, headers=before))["index"] == 1
    change = {"subjects": ["bob", "ana"]}
    path, match = f"{MEMORY}/{about['id']}", {"If-Match": "1"}
    assert_forgotten(await ada.patch(path, json=change, headers={**match, **before}))
    assert await keys_of(ada) == ["old"]
    ok(await ada.patch(path, json=change, headers=match))
    # It has the subjects of its source.
    drawn = draft("drawn", derived_from=[{"id": about["id"], "version": 2}])
    assert_forgotten(await ada.post(MEMORY, json=drawn, headers=before))


@pytest.mark.parametrize(("forgotten", "named"), [(NFC, NFD), (NFD, NFC)])
async def test_every_form_of_a_name_is_the_person(
    service: RunningService, ada: httpx.AsyncClient, forgotten: str, named: str
) -> None:
    before = said(service)
    await forget(ada, forgotten)
    bound = [(b"X-User", named.encode()), *((k.encode(), v.encode()) for k, v in before.items())]
    for form in (bound, [(b"X-User", forgotten.encode()), *bound[1:]]):
        assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers=form))
    body = draft("k", subjects=[named])
    assert_forgotten(await ada.post(MEMORY, json=body, headers=before))
    # Upper and lower case are two people, as everywhere.
    other = [(b"X-User", named.lower().encode()), *bound[1:]]
    ok(await ada.post(MEMORY, json=draft("k"), headers=other), 201)


async def test_a_name_that_the_log_contains_for_another_reason_is_not_forgotten(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service)
    await forget(ada)
    for name in ("ada", "system", "subject_digest", "entries"):
        headers = {"X-User": name, **before}
        ok(await ada.post(MEMORY, json=draft(name), headers=headers), 201)


async def test_other_tenants_and_other_refusals_come_first(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service)
    await forget(ada)
    elsewhere = await service.agent("eve", tenant="other")
    ok(await elsewhere.post(MEMORY, json=draft("k"), headers={**ANA, **before}), 201)
    reader = await service.agent("ray", permissions=(Permission.READ,))
    refused = await reader.post(MEMORY, json=draft("k"), headers={**ANA, **before})
    assert_problem(refused, 403)
    bob = await service.agent("bo", subjects=("bob",))
    assert_problem(await bob.post(MEMORY, json=draft("k"), headers={**ANA, **before}), 403)
    refused = await ada.patch(
        f"{MEMORY}/mem_absent", json={"tags": []}, headers={"If-Match": "1", **ANA, **before}
    )
    assert_problem(refused, 404)


async def test_a_repetition_gets_the_first_reply(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    before = said(service)
    once = {**ANA, **before, "Idempotency-Key": "once"}
    first = ok(await ada.post(MEMORY, json=draft("k"), headers=once), 201)
    assert ok(await ada.post(MEMORY, json=draft("k"), headers=once), 201) == first
    await forget(ada)
    assert_problem(await ada.post(MEMORY, json=draft("k"), headers=once), 410, "REPLY_ERASED")
    again = {**once, "Idempotency-Key": "again"}
    assert_forgotten(await ada.post(MEMORY, json=draft("k"), headers=again))


@pytest.mark.parametrize(
    "wrong", ["", "yesterday", "2026-02-02", "2026-02-02T02:40:00", "1770000000"]
)
async def test_an_instant_without_an_offset_is_refused(
    service: RunningService, ada: httpx.AsyncClient, wrong: str
) -> None:
    log = await everything(service)
    headers = {**ANA, "X-Said-At": wrong}
    refused = assert_problem(await ada.post(MEMORY, json=draft("k"), headers=headers), 422)
    assert "`X-Said-At` must be an RFC 3339 instant with an offset" in refused["detail"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "create_entry", "params": draft("k")}
    data = (await ada.post("/rpc", json=call, headers=headers)).json()["error"]["data"]
    assert (data["status"], data["detail"]) == (422, refused["detail"])
    assert await everything(service) == log
    # A read stores nothing, and does not read the header.
    ok(await ada.get(MEMORY, headers=headers))


async def test_json_rpc_reads_the_header(service: RunningService, ada: httpx.AsyncClient) -> None:
    before = said(service)
    await forget(ada)
    call = {"jsonrpc": "2.0", "id": 1, "method": "create_entry", "params": draft("k")}
    refused = (await ada.post("/rpc", json=call, headers={**ANA, **before})).json()["error"]
    assert refused["data"]["error"] == "SUBJECT_FORGOTTEN"
    params = {**draft("k"), "subjects": ["ana"]}
    refused = (await ada.post("/rpc", json={**call, "params": params}, headers=before)).json()
    assert refused["error"]["data"]["error"] == "SUBJECT_FORGOTTEN"
    answer = (await ada.post("/rpc", json=call, headers=ANA)).json()
    assert answer["result"]["subjects"] == ["ana"]


async def test_the_async_client_takes_an_instant(service: RunningService) -> None:
    key = await service.key("ada", permissions=tuple(Permission))
    transport = httpx.ASGITransport(service.app)
    before = service.services.now()
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        await client.forget("ana")
        with pytest.raises(SubjectForgottenError, match="`X-Said-At`"):
            await client.for_user("ana", said_at=before).memory.set("n", "k", {}, "episodic")
        with pytest.raises(ValidationError, match="`said_at`"):
            client.for_user("ana", said_at="yesterday")
