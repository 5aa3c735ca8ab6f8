"""PUT creates an entry by its name, or replaces the value of the entry of that name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.kinds.registry import register_kind
from memorywall.records.principal import Permission
from tests.http.checks import (
    ADMINISTRATOR,
    MEMORY,
    NAMESPACES,
    assert_problem,
    events_of,
    everything,
    keys_of,
    make,
)
from tests.http.test_governed_kinds import FREE, GOVERNED, VERDICT
from tests.support.service import RunningService, draft, open_service
from tests.work.crew import CLAIMS

pytestmark = pytest.mark.anyio

NAMED = {"namespace": "invoices"}
NEW = {"If-None-Match": "*"}
FACT: dict[str, Any] = {"memory_type": "semantic", "namespace": "facts"}
ANN = {"X-Subject": "ann"}


def at(version: int, **headers: str) -> dict[str, str]:
    return {"If-Match": str(version), **headers}


async def put(
    client: httpx.AsyncClient, headers: dict[str, str] | None = None, **fields: Any
) -> httpx.Response:
    return await client.put(MEMORY, json=draft(**fields), headers=headers or {})


async def test_put_creates_and_then_replaces(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await put(ada, tags=["a"], value={"n": 1})
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    entry = made.json()
    assert made.headers["location"] == f"{MEMORY}/{entry['id']}"
    changed = await put(ada, at(1), value={"n": 2})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    assert "location" not in changed.headers
    assert changed.json()["id"] == entry["id"]
    assert (await ada.get(f"{MEMORY}/{entry['id']}")).json() == changed.json()
    types = [one["type"] for one in await events_of(ada, "ada")]
    assert types == ["memory.created", "memory.updated"]


async def test_replacement_keeps_every_field_that_is_not_named(service: RunningService) -> None:
    ada = await service.agent("ada")
    given = {
        "memory_type": "episodic",
        "tags": ["a", "b"],
        "ttl": "duration:PT1H",
        "pinned": True,
        "priority": "high",
        "sensitivity": "restricted",
        "subjects": ["ann"],
        "scope": {"session_id": "s1"},
    }
    made = await make(ada, **given)
    name = {"memory_type": "episodic", "scope": {"session_id": "s1"}}
    changed = (await put(ada, at(1), value={"n": 2}, tags=None, subjects=None, **name)).json()
    assert changed["value"] == {"n": 2}
    kept = (*(set(given) - {"memory_type"}), "expires_at", "created_at", "id")
    assert {one: changed[one] for one in kept} == {one: made[one] for one in kept}
    lowered = await put(ada, at(2), sensitivity="internal", tags=[], ttl=None, **name)
    assert lowered.json()["sensitivity"] == "internal"
    assert (lowered.json()["tags"], lowered.json()["ttl"]) == ([], None)
    assert lowered.json()["priority"] == "high"


async def test_put_without_precondition_replaces_nothing(service: RunningService) -> None:
    ada = await service.agent("ada")
    await make(ada)
    before = await everything(service)
    problem = assert_problem(await put(ada, value={"n": 2}), 428, "PRECONDITION_REQUIRED")
    assert "If-Match" in problem["detail"]
    assert await everything(service) == before


async def test_if_none_match_creates_and_never_replaces(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await put(ada, NEW)
    assert made.status_code == 201
    problem = assert_problem(await put(ada, NEW, value={"n": 2}), 409, "ENTRY_EXISTS")
    assert (problem["current"], problem["current_version"]) == (made.json(), 1)


async def test_if_match_needs_that_version(service: RunningService) -> None:
    ada = await service.agent("ada")
    assert_problem(await put(ada, at(1)), 404, "ENTRY_NOT_FOUND")
    assert await keys_of(ada) == []
    made = await make(ada)
    problem = assert_problem(await put(ada, at(2), value={"n": 2}), 409, "VERSION_MISMATCH")
    assert (problem["current"], problem["current_version"]) == (made, 1)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**NEW, "If-Match": "1"}, 400),
        ({"If-None-Match": '"1"'}, 428),
        ({"If-Match": "*"}, 428),
    ],
)
async def test_other_preconditions_are_refused(
    service: RunningService, headers: dict[str, str], status: int
) -> None:
    ada = await service.agent("ada")
    await make(ada)
    before = await everything(service)
    assert_problem(await put(ada, headers, value={"n": 2}), status)
    assert await everything(service) == before


async def test_session_is_a_part_of_the_name(service: RunningService) -> None:
    ada = await service.agent("ada")
    for session in (None, "s1", "s2"):
        scope = None if session is None else {"session_id": session}
        assert (await put(ada, scope=scope)).status_code == 201
    changed = await put(ada, at(1), scope={"session_id": "s1"}, value={"n": 2})
    assert changed.json()["scope"] == {"session_id": "s1"}
    page = (await ada.get(MEMORY)).json()["entries"]
    assert {one["scope"].get("session_id"): one["version"] for one in page} == {
        None: 1,
        "s1": 2,
        "s2": 1,
    }


async def test_expired_entry_does_not_hold_its_name(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = (await put(ada, ttl="duration:PT1S")).json()
    service.clock.advance(2)
    assert_problem(await put(ada, at(1)), 404)
    again = await put(ada)
    assert (again.status_code, again.json()["version"]) == (201, 1)
    assert again.json()["id"] != made["id"]


async def test_repetition_gets_the_first_reply(service: RunningService) -> None:
    ada = await service.agent("ada")
    key = {"Idempotency-Key": "k1"}
    first = await put(ada, key)
    second = await put(ada, key)
    assert (second.status_code, second.content) == (201, first.content)
    # The same body under another precondition is another request.
    assert_problem(await put(ada, at(1, **key)), 422, "IDEMPOTENCY_KEY_REUSED")
    change = at(1, **{"Idempotency-Key": "k2"})
    replies = [await put(ada, change, value={"n": 2}) for _ in range(2)]
    assert [one.status_code for one in replies] == [200, 200]
    assert replies[0].content == replies[1].content
    assert replies[1].json()["version"] == 2


async def test_others_are_told_no_more_than_by_a_creation(service: RunningService) -> None:
    ada = await service.agent("ada", permissions=ADMINISTRATOR)
    ben = await service.agent("ben")
    await make(ada)
    # Memory of one agent: each agent has an entry of its own under the name.
    assert (await put(ben)).status_code == 201
    made = await make(ada, **FACT)
    for access, wanted in (("none", (403, 403, 403)), ("read", (403, 403, 403))):
        grants = {"permissions": {"default": access}}
        assert (await ada.patch(f"{NAMESPACES}/facts", json=grants)).status_code == 200
        replies = [await put(ben, headers, **FACT) for headers in ({}, NEW, at(1))]
        assert tuple(one.status_code for one in replies) == wanted
        # A name that is free is refused likewise.
        free = [await put(ben, headers, key="free", **FACT) for headers in ({}, NEW, at(1))]
        assert tuple(one.status_code for one in free) == wanted
    grants = {"permissions": {"default": "write"}}
    await ada.patch(f"{NAMESPACES}/facts", json=grants)
    changed = await put(ben, at(1), value={"n": 2}, **FACT)
    assert (changed.status_code, changed.json()["curated_by"]) == (200, "ben")
    assert changed.json()["id"] == made["id"]
    reader = await service.agent("ben", permissions=[Permission.READ])
    assert_problem(await put(reader, at(2), **FACT), 403)


async def test_writer_that_may_not_read_is_shown_no_value(service: RunningService) -> None:
    ada = await service.agent("ada")
    await make(ada, tags=["secret"], subjects=["ann"])
    writer = await service.agent("ada", permissions=[Permission.WRITE])
    assert "current" not in assert_problem(await put(writer, NEW), 409)
    assert "current" not in assert_problem(await put(writer, at(3)), 409)
    shown = (await put(writer, at(1), value={"n": 2})).json()
    assert (shown["value"], shown["tags"], shown.get("subjects", [])) == ({"n": 2}, [], [])


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_bound_request_replaces_the_entry_of_its_subject(
    service: RunningService, sensitivity: str
) -> None:
    ada = await service.agent("ada")
    made = (await put(ada, ANN, sensitivity=sensitivity)).json()
    assert made["namespace"] == "user/ann/invoices"
    assert_problem(await put(ada, ANN), 428)
    assert_problem(await put(ada, {**ANN, **NEW}), 409)
    changed = await put(ada, at(1, **ANN), value={"n": 2})
    assert (changed.status_code, changed.json()["id"]) == (200, made["id"])
    assert (changed.json()["sensitivity"], changed.json()["subjects"]) == (sensitivity, ["ann"])
    assert_problem(await put(ada, at(2, **{"X-Subject": "bob"})), 404)
    assert (await put(ada, {"X-Subject": "bob"})).status_code == 201


async def test_fenced_and_claimed_keys_are_guarded(service: RunningService) -> None:
    ada, ben = await service.agent("ada"), await service.agent("ben")
    state = {"namespace": "shared/global", "memory_type": "shared"}
    claim = await ada.post(CLAIMS, json={"key": "progress", "scope": "global"})
    assert claim.status_code == 201, claim.text
    token = {"Fencing-Token": str(claim.json()["fencing_token"])}
    assert_problem(await put(ben, **state), 409, "FENCED")
    assert (await put(ada, token, **state)).status_code == 201
    assert_problem(await put(ben, at(1), **state), 409, "FENCED")
    assert (await put(ada, at(1, **token), **state)).status_code == 200


async def test_entries_of_governed_kinds_are_refused(service: RunningService) -> None:
    ada = await service.agent("ada")
    with register_kind(FREE):
        assert (await put(ada, **VERDICT)).status_code == 201
        assert_problem(await put(ada, at(1), value={"words": 3}), 422)
        plain = await put(ada, at(1), value={"words": 3}, kind=None)
        assert (plain.status_code, "kind" in plain.json()) == (200, False)
        await make(ada, "other", **VERDICT)
    with register_kind(GOVERNED):
        assert_problem(await put(ada, key="new", **VERDICT), 422)
        assert_problem(await put(ada, at(1), key="other", value=VERDICT["value"]), 422)


async def test_capacity_counts_creations_and_no_replacements(tmp_path: Path) -> None:
    tier: dict[str, Any] = {"memory_type": "episodic"}
    async with open_service(tmp_path, episodic_capacity=2) as service:
        ada = await service.agent("ada")
        for key in ("a", "b"):
            assert (await put(ada, key=key, pinned=True, **tier)).status_code == 201
        assert_problem(await put(ada, key="c", **tier), 429, "CAPACITY_EXCEEDED")
        assert_problem(await put(ada, key="a", **tier), 428)
        assert (await put(ada, at(1), key="a", **tier)).status_code == 200


async def test_server_makes_the_key_of_a_new_entry(service: RunningService) -> None:
    ada = await service.agent("ada")
    body = draft()
    del body["key"]
    first, second = [(await ada.post(MEMORY, json=body)).json() for _ in range(2)]
    assert (first["key"], second["key"]) == (first["id"], second["id"])
    assert first["id"] != second["id"]
    named = (await ada.get(f"{MEMORY}/by-name", params={**NAMED, "key": first["key"]})).json()
    assert named["entry"] == first
    assert_problem(await ada.put(MEMORY, json=body), 422)


async def test_namespace_may_let_the_last_write_win(service: RunningService) -> None:
    chief = await service.agent("chief", permissions=ADMINISTRATOR)
    ben = await service.agent("ben", permissions=ADMINISTRATOR)
    await make(chief, **FACT)
    path = f"{NAMESPACES}/facts"
    wins = {"last_write_wins": True}
    assert_problem(await ben.patch(path, json=wins), 403)
    plain = await service.agent("chief")
    assert_problem(await plain.patch(path, json=wins), 403)
    assert_problem(await put(ben, value={"n": 2}, **FACT), 403)
    shown = (await chief.patch(path, json={**wins, "permissions": {"default": "write"}})).json()
    assert shown["last_write_wins"]
    assert (await chief.get(path)).json() == shown
    changed = await put(ben, value={"n": 2}, **FACT)
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    changed = await put(ben, {"If-Match": "*"}, value={"n": 2}, **FACT)
    assert (changed.status_code, changed.json()["version"]) == (200, 3)
    assert_problem(await put(ben, {"If-Match": "*"}, key="new", **FACT), 404)
    assert_problem(
        await ben.patch(f"{MEMORY}/{changed.json()['id']}", json={}, headers={"If-Match": "*"}), 428
    )
    # The permissions of the namespace and a precondition count as before.
    assert_problem(await put(ben, at(1), **FACT), 409)
    assert_problem(await put(ben, NEW, **FACT), 409)
    assert (await chief.patch(path, json={"permissions": {"default": "read"}})).json()[
        "last_write_wins"
    ]
    assert_problem(await put(ben, value={"n": 3}, **FACT), 403)
    assert_problem(await chief.patch(path, json={}), 422)
    await chief.patch(path, json={"last_write_wins": False})
    for condition in ({}, {"If-Match": "*"}):
        assert_problem(await put(chief, condition, value={"n": 3}, **FACT), 428)


async def test_last_write_never_wins_in_shared_state_and_own_memory(
    service: RunningService,
) -> None:
    chief = await service.agent("chief", permissions=tuple(Permission))
    wins = {"last_write_wins": True}
    for scope in ("shared/global", "shared/team/blue"):
        assert_problem(await chief.patch(f"{NAMESPACES}/{scope}", json=wins), 422)
    assert (await chief.patch(f"{NAMESPACES}/invoices", json=wins)).status_code == 200
    await make(chief)
    for condition in ({}, {"If-Match": "*"}):
        assert_problem(await put(chief, condition, value={"n": 2}), 428)
    with register_kind(FREE):
        await make(chief, "v", **{**FACT, "namespace": "invoices", **VERDICT})
    with register_kind(GOVERNED):
        fact = {**FACT, "namespace": "invoices"}
        assert_problem(await put(chief, key="v", value=VERDICT["value"], **fact), 422)
