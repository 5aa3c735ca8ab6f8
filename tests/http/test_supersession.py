"""One memory supersedes another: what lists and searches then show, and who may say so."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.clock import format_instant
from tests.http.checks import MEMORY, assert_problem, events_of, make
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

FACTS: dict[str, Any] = {"memory_type": "semantic", "namespace": "facts"}


async def _facts(client: httpx.AsyncClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """An older and a newer fact."""
    older = await make(client, **FACTS, key="old", value={"text": "The office is in Graz."})
    newer = await make(client, **FACTS, key="new", value={"text": "The office is in Linz."})
    return older, newer


async def _supersede(
    client: httpx.AsyncClient, older: dict[str, Any], newer_id: str, version: int | None = None
) -> httpx.Response:
    headers = {"If-Match": str(version or older["version"])}
    path = f"{MEMORY}/{older['id']}/superseded_by"
    return await client.put(path, json={"newer_id": newer_id}, headers=headers)


async def _found(client: httpx.AsyncClient, **asked: Any) -> set[str]:
    reply = await client.post(f"{MEMORY}/search", json={"query": "office", **asked})
    assert reply.status_code == 200, reply.text
    return {hit["entry"]["key"] for hit in reply.json()["results"]}


async def test_a_superseded_entry_leaves_lists_and_searches_until_it_is_reinstated(
    service: RunningService,
) -> None:
    ada = await service.agent("ada")
    older, newer = await _facts(ada)
    reply = await _supersede(ada, older, newer["id"])
    assert reply.status_code == 200, reply.text
    changed = reply.json()
    assert (changed["state"], changed["version"]) == ("superseded", older["version"] + 1)
    assert changed["provenance"]["superseded_by"] == newer["id"]
    assert reply.headers["etag"] == f'"{changed["version"]}"'
    listed = (await ada.get(MEMORY, params={"namespace": "facts"})).json()["entries"]
    assert [one["key"] for one in listed] == ["new"]
    assert await _found(ada) == {"new"}
    assert await _found(ada, state="superseded") == {"old"}
    by_id = (await ada.get(f"{MEMORY}/{older['id']}")).json()
    assert by_id["state"] == "superseded"

    path, headers = f"{MEMORY}/{older['id']}/superseded_by", {"If-Match": str(changed["version"])}
    reply = await ada.delete(path, headers=headers)
    assert reply.status_code == 200, reply.text
    assert reply.json().get("state", "live") == "live"
    assert "superseded_by" not in reply.json()["provenance"]
    assert await _found(ada) == {"old", "new"}
    events = [one["data"].get("state") for one in await events_of(ada, "ada")]
    assert [state for state in events if state] == ["superseded", "live"]


async def test_an_update_keeps_what_supersedes_an_entry(service: RunningService) -> None:
    ada = await service.agent("ada")
    older, newer = await _facts(ada)
    changed = (await _supersede(ada, older, newer["id"])).json()
    reply = await ada.patch(
        f"{MEMORY}/{older['id']}",
        json={"tags": ["moved"]},
        headers={"If-Match": str(changed["version"])},
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["provenance"]["superseded_by"] == newer["id"]
    assert reply.json()["state"] == "superseded"


async def test_what_is_refused_changes_nothing(service: RunningService) -> None:
    ada = await service.agent("ada")
    older, newer = await _facts(ada)
    assert_problem(await _supersede(ada, older, newer["id"], version=9), 409, "VERSION_MISMATCH")
    assert_problem(await _supersede(ada, older, older["id"]), 422, "VALIDATION_ERROR")
    assert_problem(await _supersede(ada, older, "mem_missing"), 404, "ENTRY_NOT_FOUND")
    path = f"{MEMORY}/{older['id']}/superseded_by"
    without = await ada.put(path, json={"newer_id": newer["id"]})
    assert without.status_code == 428, without.text
    not_yet = await ada.delete(path, headers={"If-Match": str(older["version"])})
    assert_problem(not_yet, 409, "INVALID_TRANSITION")
    assert await _found(ada) == {"old", "new"}

    changed = (await _supersede(ada, older, newer["id"])).json()
    again = await _supersede(ada, older, newer["id"], version=changed["version"])
    assert_problem(again, 409, "INVALID_TRANSITION")
    # The newer entry cannot be superseded by one that is not live.
    assert_problem(await _supersede(ada, newer, older["id"]), 422, "VALIDATION_ERROR")


async def test_it_needs_the_right_to_update_the_older_entry_and_to_read_the_newer(
    service: RunningService,
) -> None:
    ada, bob = await service.agent("ada"), await service.agent("bob")
    older, newer = await _facts(ada)
    own = await make(bob, key="own", value={"text": "The office is in Wels."})
    assert_problem(await _supersede(bob, older, own["id"]), 403, "ACCESS_DENIED")
    assert (await _supersede(bob, own, newer["id"])).status_code == 200
    # What the caller cannot read answers as what does not exist.
    hidden = await make(ada, namespace="private", key="k", value={"text": "The office is gone."})
    mine = await make(bob, key="mine", value={"text": "The office is in Enns."})
    denied = await _supersede(bob, mine, hidden["id"])
    assert denied.status_code in {403, 404}
    assert await _found(bob) >= {"mine"}


async def test_a_search_takes_dates_instants_and_a_clock_that_is_ahead(
    service: RunningService,
) -> None:
    ada = await service.agent("ada")
    held = {
        "text": "The office is in Graz.",
        "valid_from": "2020-01-01",
        "valid_until": "2020-06-30",
    }
    await make(ada, **FACTS, key="old", value=held)
    await make(
        ada, **FACTS, key="new", value={**held, "valid_from": "2020-07-01", "valid_until": None}
    )
    assert await _found(ada) == {"new"}
    listed = (await ada.get(MEMORY, params={"namespace": "facts"})).json()["entries"]
    assert {one["key"] for one in listed} == {"old", "new"}
    assert await _found(ada, valid_at="any") == {"old", "new"}
    assert await _found(ada, valid_at="2020-06-30") == {"old"}
    assert await _found(ada, valid_at="2020-07-01T00:00:00Z") == {"new"}
    ahead = service.clock.now() + 500
    assert await _found(ada, as_of=format_instant(ahead)) == {"new"}
    reply = await ada.post(
        f"{MEMORY}/search", json={"query": "office", "as_of": format_instant(ahead + 3_600_000)}
    )
    assert "as_of" in assert_problem(reply, 422, "VALIDATION_ERROR")["detail"]
    wrong = await ada.post(f"{MEMORY}/search", json={"query": "office", "valid_at": "soon"})
    assert "valid_at" in assert_problem(wrong, 422, "VALIDATION_ERROR")["detail"]


async def test_recall_says_nothing_rather_than_noise(service: RunningService) -> None:
    ada = await service.agent("ada")
    await _facts(ada)
    reply = (await ada.post("/api/v1/recall", json={"question": "Where is the office?"})).json()
    assert reply["answered"]
    assert {hit["entry"]["key"] for hit in reply["results"]} == {"old", "new"}
    assert all(0 < hit["relevance"] <= 1 for hit in reply["results"])
    noise = "Which violinist taught her cousin to repair antique clocks in the office of the mayor?"
    reply = (await ada.post("/api/v1/recall", json={"question": noise})).json()
    assert (reply["results"], reply["answered"], reply["left_out"]) == ([], False, 2)
    plain = (await ada.post(f"{MEMORY}/search", json={"query": noise})).json()
    assert len(plain["results"]) == 2
    least = {"query": noise, "min_relevance": 0.99}
    cut = (await ada.post(f"{MEMORY}/search", json=least)).json()
    assert (cut["results"], cut["left_out"]) == ([], 2)
