"""Promotions over HTTP: statuses, conflicts with what people wrote, closed tiers, and the job."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.judge_items import JUDGE_JOB
from memorywall.longterm import promotion
from memorywall.records.principal import Permission, PrincipalKind
from tests.http.checks import assert_problem
from tests.http.test_sessions import begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

PATIENCE = 60.0
LEAP = "The export job of the billing service fails on leap days; run it a day later."
MOON = "The export job of the billing service runs at every full moon."
OPS = {"namespace": "ops", "key": "export", "memory_type": "semantic"}


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


@pytest.fixture
async def person(service: RunningService, ada: httpx.AsyncClient) -> httpx.AsyncClient:
    """A person whose namespace `ops` the agent may write to."""
    one = await service.agent("paula", kind=PrincipalKind.USER, permissions=[*Permission])
    made = await one.post("/api/v1/memory", json={**OPS, "value": {"text": MOON}})
    assert made.status_code == 201
    permissions = {"allow": [{"agent": name, "access": "write"} for name in ("ada", "paula")]}
    change = {"permissions": permissions}
    granted = await one.patch("/api/v1/memory/namespaces/ops", json=change)
    assert granted.status_code == 200, granted.text
    return one


async def case(client: httpx.AsyncClient, **value: Any) -> str:
    """The id of an episodic entry."""
    body = {"namespace": "cases", "memory_type": "episodic", "value": value}
    made = await client.post("/api/v1/memory", json=body)
    assert made.status_code == 201
    return str(made.json()["id"])


async def promote(client: httpx.AsyncClient, entry_id: str, **asked: Any) -> httpx.Response:
    body = {"to": "semantic", "namespace": "ops", **asked}
    return await client.post(f"/api/v1/memory/{entry_id}/promote", json=body)


async def test_candidates_of_one_text_that_are_promoted_at_once_are_stored_once(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = [await case(ada, text=text) for text in (LEAP, f"- {LEAP}", LEAP)]
    measure, measured = promotion.measure_candidate, asyncio.Barrier(len(candidates))

    async def meet(*args: Any, **options: Any) -> Any:
        found = await measure(*args, **options)
        await asyncio.wait_for(measured.wait(), PATIENCE)
        return found

    monkeypatch.setattr(promotion, "measure_candidate", meet)
    replies = await asyncio.gather(*(promote(ada, one) for one in candidates))
    made = [one.json() for one in replies]
    assert sorted(one["decision"] for one in made) == ["merged", "merged", "promoted"]
    (entry,) = (await ada.get("/api/v1/memory", params={"namespace": "ops"})).json()["entries"]
    assert {one["result"] for one in made} == {entry["id"]}
    assert {one["id"] for one in entry["provenance"]["evidence"]} == set(candidates)


async def test_a_key_limited_to_namespaces_sees_decisions_if_it_names_theirs(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    candidate = await case(ada, text=LEAP)
    made = (await promote(ada, candidate)).json()
    places = ["ops", "cases"]
    for names, expected in ((places, []), ([*places, "promotions"], [made["id"]])):
        async with await service.agent("ada", namespaces=names) as limited:
            assert (await promote(limited, candidate)).json() == made
            found = (await limited.get("/api/v1/promotions")).json()["promotions"]
            assert [one["id"] for one in found] == expected
            shown = await limited.get(f"/api/v1/promotions/{made['id']}")
            assert shown.status_code == (200 if expected else 403), shown.text


async def test_a_candidate_of_a_lower_authority_is_rejected_or_waits(
    ada: httpx.AsyncClient, person: httpx.AsyncClient
) -> None:
    weak = await case(ada, text=LEAP)
    refused = await promote(ada, weak, key="export")
    assert_problem(refused, 409, "REFUSED_BY_RULE")
    assert refused.json()["rule"] == "lower_authority"
    assert (await promote(ada, weak, key="export", dry_run=True)).json()["decision"] == "rejected"
    decided = (await ada.get("/api/v1/promotions", params={"decision": "rejected"})).json()
    (told,) = decided["promotions"]
    assert (told["candidate"], told["rule"], told["result"]) == (weak, "lower_authority", None)
    strong = await case(ada, text=LEAP, confidence=0.99, evidence_count=9)
    waits = await promote(ada, strong, key="export")
    assert (waits.status_code, waits.json()["decision"]) == (202, "deferred")
    proposal = (await person.get(f"/api/v1/memory/{waits.json()['result']}")).json()
    assert (proposal["kind"], proposal["status"]) == ("proposal", "draft")
    assert proposal["value"]["value"]["text"] == LEAP
    page = (await person.get("/api/v1/memory", params={"namespace": "ops"})).json()
    assert [one["value"]["text"] for one in page["entries"]] == [MOON]
    again = await promote(ada, strong, key="export")
    assert (again.status_code, again.json()) == (202, waits.json())
    reverted = await ada.post(f"/api/v1/promotions/{waits.json()['id']}/revert")
    assert reverted.json()["decision"] == "reverted"
    assert (await person.get(f"/api/v1/memory/{waits.json()['result']}")).status_code == 404
    twice = await ada.post(f"/api/v1/promotions/{waits.json()['id']}/revert")
    assert_problem(twice, 409, "INVALID_TRANSITION")


async def test_the_event_of_a_decision_has_its_score_and_no_content(ada: httpx.AsyncClient) -> None:
    entry_id = await case(ada, text=LEAP)
    made = (await promote(ada, entry_id)).json()
    page = await ada.get("/api/v1/agents/ada/events", params={"entry_id": made["id"]})
    (event,) = page.json()["events"]
    data = event["data"]
    assert (data["decision"], data["result"], data["score"]) == ("promoted", made["result"], 1.0)
    assert {one["name"] for one in data["parts"]} == {one["name"] for one in made["parts"]}
    assert "export job" not in page.text


async def test_what_a_closed_tier_does_with_direct_writes(
    service: RunningService, ada: httpx.AsyncClient, person: httpx.AsyncClient
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    closed = await admin.put("/api/v1/tiers/semantic", json={"admission": "promoted"})
    assert closed.json()["admission"] == "promoted"
    waits = await ada.post("/api/v1/memory", json={**OPS, "key": "leap", "value": {"text": LEAP}})
    assert (waits.status_code, waits.json()["kind"]) == (202, "proposal")
    assert waits.json()["value"]["rule"] == "admission"
    assert waits.headers["location"] == f"/api/v1/memory/{waits.json()['id']}"
    replaced = {**OPS, "value": {"text": LEAP}}
    weaker = await ada.put("/api/v1/memory", json=replaced, headers={"If-Match": "1"})
    assert_problem(weaker, 409, "REFUSED_BY_RULE")
    strong = {**OPS, "value": {"text": LEAP, "confidence": 0.99, "evidence_count": 9}}
    deferred = await ada.put("/api/v1/memory", json=strong, headers={"If-Match": "1"})
    assert (deferred.status_code, deferred.json()["kind"]) == (202, "proposal")
    # A tag says nothing that a promotion would have to judge.
    found = (await ada.get("/api/v1/memory/by-name", params=OPS)).json()
    tagged = await ada.patch(
        f"/api/v1/memory/{found['entry']['id']}", json={"tags": ["moon"]}, headers={"If-Match": "1"}
    )
    assert (tagged.status_code, tagged.json()["value"]) == (200, {"text": MOON})
    by_person = await person.put("/api/v1/memory", json=replaced, headers={"If-Match": "2"})
    assert by_person.status_code == 200, by_person.text
    assert by_person.json()["value"]["text"] == LEAP
    promoted = await promote(ada, await case(ada, text=LEAP), key="leap")
    assert promoted.json()["decision"] == "merged"
    refused = await admin.put("/api/v1/tiers/working", json={"admission": "promoted"})
    assert_problem(refused, 422, "VALIDATION_ERROR")


async def test_a_full_tier_defers_and_nothing_is_lost(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    await promote(ada, await case(ada, text=MOON))
    await admin.put("/api/v1/tiers/semantic", json={"capacity": 1})
    entry_id = await case(ada, text="The search cluster has two replicas in Frankfurt.")
    waits = await promote(ada, entry_id)
    assert (waits.status_code, waits.json()["rule"]) == (202, "capacity")
    await admin.put("/api/v1/tiers/semantic", json={})
    assert (await ada.get(f"/api/v1/memory/{entry_id}")).status_code == 200


async def test_an_archived_session_leaves_what_is_worth_keeping_once(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    for text in (
        "Hello!",
        "I prefer window seats on every flight, and I never fly on Sundays.",
        "Thanks, that is all.",
    ):
        await talk.add(text)
    await talk.do("POST", "/archive")
    assert await run_everywhere(service.services, JUDGE_JOB, early=True)
    assert not await run_everywhere(service.services, JUDGE_JOB, early=True)
    query = {"namespace": "remembered", "memory_type": "episodic", "agent_id": "ada"}
    page = (await ada.get("/api/v1/memory", params=query)).json()
    assert [one["value"]["text"] for one in page["entries"]] == [
        "I prefer window seats on every flight, and I never fly on Sundays."
    ]
    assert page["entries"][0]["provenance"]["session"] == talk.id
    decided = (await ada.get("/api/v1/promotions", params={"candidate": talk.id})).json()
    (told,) = decided["promotions"]
    assert (told["decision"], told["reason"]) == ("promoted", "1 of 3 turns were worth keeping")
    assert told["result"] is None


async def test_an_archived_session_with_calls_of_tools_leaves_an_episode(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    parts = [{"type": "text", "text": "I prefer window seats, and I never fly on Sundays."}]
    body = {"turns": [{"role": "user", "content": parts}]}
    assert (await ada.post(f"/api/v1/sessions/{talk.id}/turns", json=body)).is_success
    call = {"id": "call-1", "name": "track", "arguments": {"parcel": 7}}
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "no such parcel", "tool_call_id": "call-1", "is_error": True},
    ]
    added = await ada.post(f"/api/v1/sessions/{talk.id}/turns", json={"turns": turns})
    assert added.status_code == 201, added.text
    await talk.do("POST", "/archive")
    await run_everywhere(service.services, JUDGE_JOB, early=True)
    query = {"kind": "episode", "memory_type": "episodic", "agent_id": "ada"}
    (episode,) = (await ada.get("/api/v1/memory", params=query)).json()["entries"]
    assert episode["value"]["trigger"]["text"] == parts[0]["text"]
    query = {"namespace": "remembered", "memory_type": "episodic", "agent_id": "ada"}
    (kept,) = (await ada.get("/api/v1/memory", params=query)).json()["entries"]
    assert kept["value"] == {"text": parts[0]["text"]}
    assert episode["value"]["outcome"]["status"] == "failure"
    assert [one["tool"] for one in episode["value"]["actions"]] == ["track"]
    decided = (await ada.get("/api/v1/promotions", params={"candidate": talk.id})).json()
    assert [one["result"] for one in decided["promotions"]] == [episode["id"]]


async def test_a_candidate_is_decided_once_whoever_asks_at_the_same_time(
    ada: httpx.AsyncClient,
) -> None:
    entry_id = await case(ada, text=LEAP)
    replies = await asyncio.gather(*(promote(ada, entry_id) for _ in range(8)))
    assert {one.status_code for one in replies} == {200}
    assert len({one.json()["id"] for one in replies}) == 1
    page = (await ada.get("/api/v1/memory", params={"namespace": "ops"})).json()
    assert [one["id"] for one in page["entries"]] == [replies[0].json()["result"]]


async def test_a_crash_between_the_entry_and_its_decision_leaves_neither(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_id = await case(ada, text=LEAP)

    async def fail(*_: object) -> None:
        raise RuntimeError("the process ends here")

    with monkeypatch.context() as broken:
        broken.setattr("memorywall.longterm.promotion.record_decision", fail)
        assert (await promote(ada, entry_id)).status_code == 500
    assert (await ada.get("/api/v1/memory", params={"namespace": "ops"})).json()["entries"] == []
    assert (await promote(ada, entry_id)).json()["decision"] == "promoted"
    assert (await ada.get("/api/v1/memory", params={"namespace": "ops"})).json()["total"] == 1


async def test_a_candidate_that_is_gone_or_has_changed_meanwhile_is_not_promoted(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    await talk.add("I prefer window seats on every flight, and I never fly on Sundays.")
    await talk.do("POST", "/archive")
    assert (await ada.delete(f"/api/v1/sessions/{talk.id}")).status_code == 204
    await run_everywhere(service.services, JUDGE_JOB, early=True)
    decided = (await ada.get("/api/v1/promotions", params={"candidate": talk.id})).json()
    assert [one["decision"] for one in decided["promotions"]] == ["rejected"]
    missing = await promote(ada, talk.id)
    assert_problem(missing, 404, "ENTRY_NOT_FOUND")


@pytest.mark.parametrize(
    ("tier", "to"),
    [
        ("working", "session"),
        ("working", "episodic"),
        ("session", "episodic"),
        ("episodic", "semantic"),
        ("episodic", "procedural"),
    ],
)
async def test_each_way_from_a_tier_to_a_longer_lasting_one(
    ada: httpx.AsyncClient, tier: str, to: str
) -> None:
    body = {"namespace": "cases", "memory_type": tier, "value": {"text": LEAP}}
    made = (await ada.post("/api/v1/memory", json=body)).json()
    told = (await promote(ada, made["id"], to=to)).json()
    assert (told["decision"], told["source_tier"], told["to"]) == ("promoted", tier, to)
    entry = (await ada.get(f"/api/v1/memory/{told['result']}")).json()
    assert (entry["memory_type"], entry["namespace"]) == (to, "ops")
    assert entry["provenance"]["source_tier"] == tier
    assert (await ada.get(f"/api/v1/memory/{made['id']}")).json()["value"] == {"text": LEAP}


async def test_a_megabyte_of_evidence_is_refused_and_changes_nothing(
    ada: httpx.AsyncClient,
) -> None:
    entry_id = await case(ada, text=LEAP)
    large = await promote(ada, entry_id, value={"text": LEAP, "evidence": "x" * 1_000_000})
    assert_problem(large, 413, "VALUE_TOO_LARGE")
    many = [{"id": entry_id, "version": 1}] + [
        {"id": f"mem_{number}", "version": 1} for number in range(64)
    ]
    body = {"namespace": "ops", "memory_type": "semantic", "value": {}, "derived_from": many}
    assert_problem(await ada.post("/api/v1/memory", json=body), 422, "VALIDATION_ERROR")
    assert (await ada.get("/api/v1/memory", params={"namespace": "ops"})).json()["total"] == 0
    assert (await ada.get("/api/v1/promotions")).json()["promotions"] == []
