"""Promotions where they meet access rules, sealing, closed tiers, and later changes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.jobs.job_runner import run_everywhere
from memorywall.jobs.judge_items import JUDGE_JOB
from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, NAMESPACES, assert_problem
from tests.http.test_promotions import LEAP, MOON, case, promote
from tests.http.test_sessions import begin
from tests.support.service import RunningService
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

RATES = "The rate limit of the payment gateway is 40 requests a minute."
CLOSED = {"admission": "promoted"}


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada", permissions=[*Permission])


async def hold(
    service: RunningService, client: httpx.AsyncClient, text: str, *readers: str, **fields: Any
) -> str:
    """The id of an entry of the name `vault/k`, older than what follows. Others may only read it,
    and only those named."""
    value = {"text": text, **fields.pop("members", {})}
    body = {"namespace": "vault", "memory_type": "semantic", "key": "k", "value": value, **fields}
    made = await client.post(MEMORY, json=body)
    assert made.status_code == 201, made.text
    access = {"ada": "admin", **dict.fromkeys(readers, "read")}
    allow = [{"agent": agent, "access": level} for agent, level in access.items()]
    change = {"permissions": {"default": "none", "allow": allow}}
    assert (await client.patch(f"{NAMESPACES}/vault", json=change)).status_code == 200
    service.clock.advance(1)
    return str(made.json()["id"])


async def sealed_case(client: httpx.AsyncClient, **value: Any) -> str:
    """The id of a confidential episodic entry about a person."""
    body = {"namespace": "cases", "memory_type": "episodic", "value": value}
    body |= {"sensitivity": "confidential", "subjects": ["annabel"]}
    made = await client.post(MEMORY, json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def stored(service: RunningService) -> str:
    """Everything in the tables that promotions write, as it is at rest."""
    tables = ("entries", "entry_history", "edges", "events", "event_contents", "namespaces")
    return str([rows(service, f"SELECT * FROM {one}") for one in tables])


@pytest.mark.parametrize("readers", [(), ("bob",)])
@pytest.mark.parametrize("dry_run", [True, False])
async def test_who_may_not_write_to_a_namespace_learns_nothing_by_a_promotion(
    service: RunningService, ada: httpx.AsyncClient, readers: tuple[str, ...], dry_run: bool
) -> None:
    bob = await service.agent("bob")
    await hold(service, ada, LEAP, *readers)
    replies = set()
    for text in (LEAP, MOON, RATES):
        entry_id = await case(bob, text=text)
        for key in ("k", "other"):
            told = await promote(bob, entry_id, namespace="vault", key=key, dry_run=dry_run)
            replies.add((told.status_code, told.text))
    ((status, _),) = replies
    assert status == 403
    assert (await ada.get(MEMORY, params={"namespace": "vault"})).json()["total"] == 1


async def test_the_holder_of_a_name_becomes_as_secret_as_what_replaces_it(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    held = await hold(service, ada, MOON)
    told = (
        await promote(ada, await sealed_case(ada, text=RATES), namespace="vault", key="k")
    ).json()
    assert (told["decision"], told["result"]) == ("promoted", held)
    got = (await ada.get(f"{MEMORY}/{held}")).json()
    assert (got["sensitivity"], got["subjects"]) == ("confidential", ["annabel"])
    assert got["value"] == {"text": RATES}
    assert "payment gateway" not in stored(service)
    assert "annabel" not in stored(service)


async def test_the_holder_of_a_name_fits_its_schema_and_keeps_the_origin_of_its_source(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    held = await hold(service, ada, MOON)
    body = {"namespace": "cases", "memory_type": "episodic", "origin": "document"}
    candidate = (await ada.post(MEMORY, json={**body, "value": {"text": RATES}})).json()["id"]
    assert (await promote(ada, candidate, namespace="vault", key="k")).status_code == 200
    assert (await ada.get(f"{MEMORY}/{held}")).json()["provenance"]["origin"] == "document"
    schema = {"properties": {"text": {"type": "string", "maxLength": 70}}}
    made = await ada.put(
        f"{MEMORY}/schemas/short/vault", json={"version": "1.0.0", "schema": schema}
    )
    assert made.status_code in (200, 201), made.text
    service.clock.advance(1)
    long = await promote(ada, await case(ada, text=LEAP), namespace="vault", key="k")
    assert assert_problem(long, 409, "REFUSED_BY_RULE")["rule"] == "schema"


async def test_proposals_and_decisions_hide_whom_a_sealed_candidate_is_about(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    place = {"namespace": "user/annabel/notes", "memory_type": "semantic"}
    unsure = {"text": MOON, "confidence": 0.5}
    body = {**place, "key": "k", "value": unsure, "sensitivity": "confidential"}
    held = (await ada.post(MEMORY, json={**body, "subjects": ["annabel"]})).json()
    candidate = await sealed_case(ada, text=RATES, confidence=0.4)
    waits = await promote(ada, candidate, namespace=place["namespace"], key="k")
    assert (waits.status_code, waits.json()["rule"]) == (202, "manual_resolution")
    await ada.put("/api/v1/tiers/semantic", json=CLOSED)
    change = {"value": {"text": LEAP, "confidence": 0.4}}
    patched = await ada.patch(f"{MEMORY}/{held['id']}", json=change, headers={"If-Match": "1"})
    assert (patched.status_code, patched.json()["namespace"]) == (202, place["namespace"])
    assert "annabel" not in stored(service)
    proposal = (await ada.get(f"{MEMORY}/{waits.json()['result']}")).json()
    assert proposal["subjects"] == ["annabel"]
    assert proposal["provenance"]["derived_from"][0]["id"] == candidate


async def test_another_value_of_a_candidate_and_one_that_found_no_room_are_decided_anew(
    ada: httpx.AsyncClient,
) -> None:
    entry_id = await case(ada, text=LEAP)
    results = [(await promote(ada, entry_id, value={"text": one})).json() for one in (MOON, RATES)]
    assert len({one["result"] for one in results}) == 2
    await ada.put("/api/v1/tiers/semantic", json={"capacity": 2})
    waits = await promote(ada, entry_id)
    assert (waits.status_code, waits.json()["rule"]) == (202, "capacity")
    await ada.put("/api/v1/tiers/semantic", json={})
    made = await promote(ada, entry_id)
    assert (made.status_code, made.json()["decision"]) == (200, "promoted")
    assert made.json()["id"] == waits.json()["id"]


async def test_reverting_overwrites_no_later_change(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    held = await hold(service, ada, MOON)
    told = (await promote(ada, await case(ada, text=RATES), namespace="vault", key="k")).json()
    change = {"value": {"text": "Since then it is 50."}}
    await ada.patch(f"{MEMORY}/{held}", json=change, headers={"If-Match": "2"})
    refused = await ada.post(f"/api/v1/promotions/{told['id']}/revert")
    assert_problem(refused, 409, "INVALID_TRANSITION")
    assert (await ada.get(f"{MEMORY}/{held}")).json()["value"] == change["value"]
    assert (await ada.get(f"/api/v1/promotions/{told['id']}")).json()["decision"] == "promoted"


async def test_a_closed_tier_weighs_no_decision_again(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    held = await hold(service, ada, MOON, members={"confidence": 0.5, "evidence_count": 1})
    await ada.put("/api/v1/tiers/semantic", json=CLOSED)
    same = await case(ada, text=MOON)
    merged = (await promote(ada, same, namespace="vault")).json()
    assert (merged["decision"], merged["result"]) == ("merged", held)
    assert (await ada.get(f"{MEMORY}/{held}")).json()["value"]["evidence_count"] == 2
    service.clock.advance(1)
    told = (await promote(ada, await case(ada, text=RATES), namespace="vault", key="k")).json()
    assert (told["decision"], told["result"]) == ("promoted", held)
    assert (await ada.post(f"/api/v1/promotions/{told['id']}/revert")).status_code == 200
    assert (await ada.get(f"{MEMORY}/{held}")).json()["value"]["text"] == MOON


async def test_nothing_is_merged_with_what_is_withdrawn(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    held = await hold(service, ada, MOON)
    await ada.post(f"{MEMORY}/{held}/retract", json={"reason": "it is wrong"})
    refused = await promote(ada, await case(ada, text=MOON), namespace="vault", key="k")
    assert assert_problem(refused, 409, "REFUSED_BY_RULE")["rule"] == "not_live"


async def test_a_text_that_waits_is_not_told_as_stored(ada: httpx.AsyncClient) -> None:
    await ada.put("/api/v1/tiers/episodic", json=CLOSED)
    waits = await ada.post("/api/v1/remember", json={"text": RATES})
    assert (waits.status_code, waits.json()["kind"]) == (202, "proposal")


async def test_nothing_is_merged_with_what_is_about_others_or_ends_sooner(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    made = {"namespace": "cases", "memory_type": "episodic", "value": {"text": RATES}}
    results = []
    for subjects in (["ann"], ["bob"], []):
        body = {**made, "subjects": subjects}
        candidate = (await ada.post(MEMORY, json=body)).json()["id"]
        results.append((await promote(ada, candidate)).json())
    assert [one["decision"] for one in results] == ["promoted"] * 3
    short = {**made, "memory_type": "semantic", "value": {"text": LEAP}, "ttl": "duration:PT1H"}
    await ada.post(MEMORY, json={**short, "namespace": "ops"})
    lasting = (await promote(ada, await case(ada, text=LEAP))).json()
    assert lasting["decision"] == "promoted"
    got = (await ada.get(f"{MEMORY}/{lasting['result']}")).json()
    assert got["expires_at"] is None


async def test_people_of_one_agent_who_say_the_same_are_both_remembered(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    for person in ("ann", "bob"):
        talk = await begin(ada, subject=person)
        await talk.add("I prefer window seats on every flight, and I never fly on Sundays.")
        await talk.do("POST", "/archive")
        await run_everywhere(service.services, JUDGE_JOB, early=True)
    query = {"namespace": "remembered", "memory_type": "episodic", "agent_id": "ada"}
    page = (await ada.get(MEMORY, params=query)).json()
    assert sorted(one["subjects"] for one in page["entries"]) == [["ann"], ["bob"]]


async def test_what_was_reverted_does_not_come_back_with_its_source(ada: httpx.AsyncClient) -> None:
    candidate = await case(ada, text=LEAP)
    told = (await promote(ada, candidate)).json()
    await ada.post(f"{MEMORY}/{candidate}/retract", json={"reason": "it is wrong"})
    assert (await ada.post(f"/api/v1/promotions/{told['id']}/revert")).status_code == 200
    assert (await ada.post(f"{MEMORY}/{candidate}/undo", json={})).status_code == 200
    assert (await ada.get(f"{MEMORY}/{told['result']}")).json()["state"] == "withdrawn"


async def test_decisions_are_no_knowledge(ada: httpx.AsyncClient) -> None:
    told = (await promote(ada, await case(ada, text=LEAP))).json()
    assert_problem(await promote(ada, told["id"]), 422, "VALIDATION_ERROR")
