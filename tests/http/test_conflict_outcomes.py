"""The six outcomes of a conflict (memory wall, algorithm 11.7), by each way into semantic memory.

Facts have a test of their own, `tests/longterm/test_facts.py`; an import writes batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import httpx
import pytest

from memorywall.records.principal import Permission, PrincipalKind
from tests.http.checks import assert_problem
from tests.support.service import RunningService, TestClock

pytestmark = pytest.mark.anyio

MEMORY = "/api/v1/memory"
OLD, NEW = "The export runs at noon.", "The export runs at every full moon."
NAME = {"namespace": "ops", "key": "export", "memory_type": "semantic"}


class Conflict(NamedTuple):
    """A conflict and its outcome.

    existing: the authority of what is known
    value: what the new value has besides its text
    is_accepted: whether the new value is stored; None for one that waits for a person
    """

    existing: str
    value: dict[str, Any]
    is_accepted: bool | None
    by_person: bool = False


OUTCOMES = {
    "human_review_required": Conflict("verified", {}, None, by_person=True),
    "superseded": Conflict("inferred", {}, True),
    "superseded_by_newer": Conflict("agent_learned", {}, True),
    "manual_resolution": Conflict("agent_learned", {"confidence": 0.5}, None),
    "review_suggested": Conflict("human_curated", {"confidence": 0.99, "evidence_count": 9}, None),
    "lower_authority": Conflict("human_curated", {}, False),
}


class _People(NamedTuple):
    """An agent and a person who may write to the namespace, an administrator, and their clock."""

    agent: httpx.AsyncClient
    person: httpx.AsyncClient
    admin: httpx.AsyncClient
    clock: TestClock


@pytest.fixture
async def people(service: RunningService) -> _People:
    return _People(
        await service.agent("ada"),
        await service.agent("paula", kind=PrincipalKind.USER, permissions=[*Permission]),
        await service.agent("root", permissions=[*Permission]),
        service.clock,
    )


async def _make(people: _People, authority: str) -> dict[str, Any]:
    """Stores what is known, with an authority, for both to change."""
    writer = people.person if authority == "human_curated" else people.agent
    body: dict[str, Any] = {**NAME, "value": {"text": OLD}}
    if authority == "inferred":
        source = {"namespace": "cases", "memory_type": "episodic", "value": {"text": "Noon."}}
        made = (await people.agent.post(MEMORY, json=source)).json()
        body["derived_from"] = [{"id": made["id"], "version": 1}]
    entry: dict[str, Any] = (await writer.post(MEMORY, json=body)).json()
    allow = [{"agent": name, "access": "write"} for name in ("ada", "paula")]
    change = {"permissions": {"allow": allow}}
    granted = await people.admin.patch(f"{MEMORY}/namespaces/ops", json=change)
    assert granted.status_code == 200, granted.text
    if authority == "verified":
        confirmed = await people.person.put(
            f"{MEMORY}/{entry['id']}/confirmation", headers={"If-Match": "1"}
        )
        assert confirmed.status_code == 200, confirmed.text
        entry = confirmed.json()
    assert entry["provenance"]["authority"] == authority
    people.clock.advance(60)
    return entry


async def _holds(people: _People) -> tuple[str, str]:
    """The text that holds, and the state of its entry."""
    found = (await people.agent.get(f"{MEMORY}/by-name", params=NAME)).json()["entry"]
    return found["value"]["text"], found.get("state", "live")


async def _proposal(people: _People, entry_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await people.agent.get(f"{MEMORY}/{entry_id}")).json()
    assert (found["kind"], found["status"]) == ("proposal", "draft")
    value: dict[str, Any] = found["value"]
    return value


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_the_outcome_of_a_promotion(people: _People, outcome: str) -> None:
    one = OUTCOMES[outcome]
    known = await _make(people, one.existing)
    writer = people.person if one.by_person else people.agent
    value = {"text": NEW, **one.value}
    case = {"namespace": "cases", "memory_type": "episodic", "value": value}
    entry_id = (await writer.post(MEMORY, json=case)).json()["id"]
    asked = {"to": "semantic", "namespace": "ops", "key": "export"}
    reply = await writer.post(f"{MEMORY}/{entry_id}/promote", json=asked)
    if one.is_accepted:
        assert (reply.status_code, reply.json()["decision"]) == (200, "promoted")
        assert await _holds(people) == (NEW, "live")
        return
    assert await _holds(people) == (OLD, "live")
    if one.is_accepted is None:
        assert (reply.status_code, reply.json()["rule"]) == (202, outcome)
        proposal = await _proposal(people, reply.json()["result"])
        assert (proposal["rule"], proposal["contradicts"]) == (outcome, [known["id"]])
    else:
        assert assert_problem(reply, 409, "REFUSED_BY_RULE")["rule"] == outcome


@pytest.mark.parametrize("way", ["put", "batch"])
@pytest.mark.parametrize("outcome", [name for name, one in OUTCOMES.items() if not one.by_person])
async def test_the_outcome_of_a_write_to_a_closed_tier(
    people: _People, outcome: str, way: str
) -> None:
    one = OUTCOMES[outcome]
    known = await _make(people, one.existing)
    closed = await people.admin.put("/api/v1/tiers/semantic", json={"admission": "promoted"})
    assert closed.status_code == 200
    value = {"text": NEW, **one.value}
    if way == "put":
        headers = {"If-Match": str(known["version"])}
        reply = await people.agent.put(MEMORY, json={**NAME, "value": value}, headers=headers)
    else:
        element = {"id": known["id"], "version": known["version"], "value": value}
        reply = await people.agent.post(f"{MEMORY}/batch", json={"entries": [element]})
    if one.is_accepted is False:
        assert assert_problem(reply, 409, "REFUSED_BY_RULE")["rule"] == outcome
        assert await _holds(people) == (OLD, "live")
        return
    stored = reply.json() if way == "put" else reply.json()["entries"][0]
    if one.is_accepted:
        assert (reply.status_code, stored["id"]) == (200, known["id"])
        assert await _holds(people) == (NEW, "live")
        return
    assert reply.status_code == (202 if way == "put" else 200)
    proposal = await _proposal(people, stored["id"])
    assert (proposal["rule"], proposal["replaces"]) == (outcome, known["id"])
    assert await _holds(people) == (OLD, "live")
