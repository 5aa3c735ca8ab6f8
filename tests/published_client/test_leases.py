"""The published client's leases on scopes of an intent (RFC-0003)."""

from __future__ import annotations

import pytest

from tests.published_client.stage import Stage


def test_a_lease_is_exclusive_in_its_scope(stage: Stage, colour: str) -> None:
    seen = stage.play("leases", colour)
    lease = seen["lease"]
    assert (lease["scope"], lease["agent_id"], lease["status"]) == ("research", "ana", "active")
    assert lease["intent_id"] == seen["intent"]
    assert lease["created_at"] < lease["expires_at"]
    assert seen["beside"]["scope"] == "synthesis"
    for attempt in ("held", "held_by_oneself"):
        refusal = seen[attempt]
        assert (refusal["error"], refusal["status"]) == ("LeaseConflictError", 409)
        assert refusal["existing_lease"]["id"] == lease["id"]
        assert refusal["existing_lease"]["agent_id"] == "ana"


def test_only_the_holder_renews_a_lease(stage: Stage, colour: str) -> None:
    seen = stage.play("leases", colour)
    assert seen["renewed"]["id"] == seen["lease"]["id"]
    assert seen["renewed"]["expires_at"] > seen["lease"]["expires_at"]
    for attempt in ("renewed_by_another", "released_by_another"):
        assert seen[attempt]["status"] in (403, 409), seen[attempt]
    held = {lease["id"]: lease for lease in seen["listed"]}
    assert held.keys() == {seen["lease"]["id"], seen["beside"]["id"]}
    assert held[seen["lease"]["id"]]["expires_at"] == seen["renewed"]["expires_at"]


def test_a_released_lease_is_free_for_others(stage: Stage, colour: str) -> None:
    seen = stage.play("leases", colour)
    assert seen["released"] is None
    assert [lease["id"] for lease in seen["listed_after"]] == [seen["beside"]["id"]]
    assert seen["taken"]["agent_id"] == "ben"
    assert seen["absent"]["error"] == "NotFoundError"

    live = stage.get(f"/intents/{seen['intent']}/leases")["leases"]
    assert {lease["id"] for lease in live} == {seen["beside"]["id"], seen["taken"]["id"]}
    (taken,) = (lease for lease in live if lease["id"] == seen["taken"]["id"])
    assert taken["fencing_token"] > seen["held"]["existing_lease"]["fencing_token"]


@pytest.mark.parametrize("kind", ["lease_acquired", "lease_released"])
def test_the_log_tells_of_leases(stage: Stage, colour: str, kind: str) -> None:
    seen = stage.play("leases", colour)
    events = stage.get(f"/intents/{seen['intent']}/events", event_type=kind)["events"]
    assert events
    assert events[0]["actor"] == "ana"


def test_with_block_holds_and_releases_a_lease(stage: Stage) -> None:
    seen = stage.play("leases", "blocking")["with"]
    assert seen["held"]["error"] == "LeaseConflictError"
    assert seen["lease"]["id"] in seen["inside"]
    assert seen["lease"]["id"] not in seen["outside"]
