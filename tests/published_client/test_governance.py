"""The published client's coordinators (RFC-0013), access (RFC-0011) and attachments (RFC-0005)."""

from __future__ import annotations

import pytest

from tests.published_client.stage import Stage


def test_a_coordinator_is_what_the_client_sent(stage: Stage, colour: str) -> None:
    seen = stage.play("coordinators", colour)
    made = seen["made"]
    assert (made["agent_id"], made["intent_id"]) == ("ben", seen["intent"])
    assert (made["role"], made["coordinator_type"]) == ("coordinator", "system")
    assert (made["scope"], made["status"]) == ("intent", "active")
    assert made["heartbeat_interval_seconds"] == 30
    assert made["metadata"] == {"shift": "night"}
    assert made["granted_at"] < made["expires_at"]
    guardrails = made["guardrails"]
    assert guardrails["max_budget_usd"] == 2.5
    assert guardrails["max_working_memory_per_task"] == 3
    assert guardrails["max_episodic_memory_per_agent"] == 50
    assert guardrails["denied_semantic_namespaces"] == ["hr/*"]
    assert guardrails["memory_archive_required"] is True
    assert seen["got"] == made
    assert [one["id"] for one in seen["listed"]] == [made["id"]]
    assert seen["listed_for_no_intent"] == []


def test_an_intent_has_one_coordinator(stage: Stage, colour: str) -> None:
    seen = stage.play("coordinators", colour)
    assert (seen["held"]["error"], seen["held"]["status"]) == ("LeaseConflictError", 409)
    assert (seen["not_an_admin"]["error"], seen["not_an_admin"]["status"]) == (
        "OpenIntentError",
        403,
    )
    assert seen["absent"]["error"] == "NotFoundError"
    assert seen["task"]["assigned_agent"] == "ana"


def test_a_heartbeat_is_the_coordinators_own(stage: Stage, colour: str) -> None:
    seen = stage.play("coordinators", colour)
    assert seen["beat"]["id"] == seen["made"]["id"]
    assert seen["beat_by_another"]["status"] == 403
    stored = stage.get(f"/coordinators/{seen['made']['id']}")
    assert stored["last_heartbeat"] == seen["beat"]["last_heartbeat"]


def test_a_new_intent_is_closed(stage: Stage, colour: str) -> None:
    seen = stage.play("access", colour)
    new = seen["new"]
    assert (new["intent_id"], new["default_policy"]) == (seen["intent"], "closed")
    assert new["entries"] == []
    reads, refusal = seen["outsider"]
    assert not reads
    assert (refusal["error"], refusal["status"]) == ("OpenIntentError", 403)


def test_read_grant_allows_only_reading(stage: Stage, colour: str) -> None:
    seen = stage.play("access", colour)
    grant, reads, refusal = seen["reader"]
    assert (grant["principal_id"], grant["principal_type"]) == ("ben", "agent")
    assert (grant["permission"], grant["granted_by"]) == ("read", "ana")
    assert grant["reason"] == "to review"
    assert grant["granted_at"] < grant["expires_at"]
    assert reads
    assert refusal["status"] == 403
    assert seen["with_reader"]["entries"] == [grant]
    assert seen["not_an_admin"]["status"] == 403


def test_revoked_grant_gives_no_access(stage: Stage, colour: str) -> None:
    seen = stage.play("access", colour)
    reads, refusal = seen["revoked"]
    assert not reads
    assert refusal["status"] == 403
    assert seen["revoked_again"]["error"] == "NotFoundError"


def test_a_list_is_set_whole(stage: Stage, colour: str) -> None:
    seen = stage.play("access", colour)
    assert (seen["opened"]["default_policy"], seen["opened"]["entries"]) == ("open", [])
    reads, written = seen["open"]
    assert reads
    assert (written["actor"], written["payload"]) == ("ben", {"text": "me too"})
    closed = seen["closed"]
    assert closed["default_policy"] == "closed"
    (entry,) = closed["entries"]
    assert (entry["principal_id"], entry["permission"]) == ("ben", "admin")
    assert entry["id"]
    assert seen["admin"] == closed
    # The client's own default is to open.
    assert seen["opened_by_default"]["default_policy"] == "open"
    stored = stage.get(f"/intents/{seen['intent']}/acl")
    assert (stored["default_policy"], stored["entries"]) == ("open", [])


def test_an_attachment_is_what_the_client_sent(stage: Stage, colour: str) -> None:
    seen = stage.play("attachments", colour)
    made = seen["made"]
    assert made["intent_id"] == seen["intent"]
    assert (made["filename"], made["mime_type"]) == ("invoice-7.pdf", "application/pdf")
    assert made["size"] == 1_234
    assert made["storage_url"] == "https://files.example/scans/invoice-7.pdf"
    # The asynchronous class cannot send metadata.
    assert made["metadata"] == ({"pages": 2} if colour == "blocking" else {})
    assert made["uploaded_by"] == "ana"
    assert made["created_at"]
    assert seen["listed"] == [made]
    added = stage.get(f"/intents/{seen['intent']}/events", event_type="attachment_added")
    assert len(added["events"]) == 1


def test_a_deleted_attachment_is_gone(stage: Stage, colour: str) -> None:
    seen = stage.play("attachments", colour)
    assert seen["answer"] is None
    assert seen["listed_after"] == []
    assert stage.status(f"/intents/{seen['intent']}/attachments/{seen['made']['id']}") == 404
    assert seen["absent"]["error"] == "NotFoundError"


@pytest.mark.parametrize("attempt", ["hidden", "deleted_by_another"])
def test_attachments_are_closed_to_strangers(stage: Stage, colour: str, attempt: str) -> None:
    refusal = stage.play("attachments", colour)[attempt]
    assert (refusal["error"], refusal["status"]) == ("OpenIntentError", 403)
