"""The published client's memory calls (RFC-0015)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.published_client.stage import Stage, assert_stored


def test_the_client_discovers_the_server(stage: Stage, colour: str) -> None:
    seen = stage.play("discovery", colour)
    with stage.http("ana") as client:
        assert seen == client.get("/.well-known/openintent.json").json()
    assert seen["capabilities"]
    assert "RFC-0015" in seen["rfcs"]


@pytest.mark.parametrize("tier", ["working", "episodic", "semantic"])
def test_an_entry_of_each_type_is_what_the_server_has(stage: Stage, colour: str, tier: str) -> None:
    seen = stage.play("memory", colour)
    made: dict[str, Any] = seen["made"][tier]
    assert made["memory_type"] == tier
    assert made["agent_id"] == "ana"
    assert made["version"] == 1
    assert seen["got"][tier] == made
    if tier == "working":  # It has been changed since.
        return
    assert_stored(made, stage.get(f"/memory/{made['id']}"))


def test_every_argument_of_a_create_arrives(stage: Stage, colour: str) -> None:
    made = stage.play("memory", colour)["made"]
    working, episodic, semantic = made["working"], made["episodic"], made["semantic"]
    assert working["value"] == {"completed": 23, "errors": ["INV-7"]}
    assert working["tags"] == ["batch", "invoices"]
    assert working["ttl"] == "duration:PT1H"
    assert working["sensitivity"] == "confidential"
    assert working["created_at"] < working["expires_at"]
    assert episodic["pinned"] is True
    assert episodic["priority"] == "high"
    assert semantic["priority"] == "low"
    assert semantic["sensitivity"] == "public"
    assert semantic["created_at"] < semantic["expires_at"]


def test_lists_apply_their_conditions(stage: Stage, colour: str) -> None:
    assert stage.play("memory", colour)["lists"] == {
        "namespace": ["case-2", "case-1", "case-0", "vendor-format"],
        "tags": ["vendor-format", "progress"],
        "both_tags": ["vendor-format"],
        "memory_type": ["progress"],
        "page": ["case-1", "case-0"],
        "nothing": [],
    }


def test_changes_arrive_and_stale_ones_are_conflicts(stage: Stage, colour: str) -> None:
    seen = stage.play("memory", colour)
    assert seen["changed"]["version"] == 2
    assert seen["changed"]["value"] == {"completed": 24}
    assert seen["changed"]["tags"] == ["batch"]
    governed = seen["governed"]
    assert governed["version"] == 3
    assert (governed["ttl"], governed["priority"]) == ("duration:PT2H", "high")
    assert_stored(governed, stage.get(f"/memory/{governed['id']}"))

    stale = seen["stale"]
    assert (stale["error"], stale["status"]) == ("ConflictError", 409)
    assert stale["current_version"] == 3
    assert stale["body"]["current"]["value"] == {"completed": 24}


def test_a_deleted_entry_is_gone(stage: Stage, colour: str) -> None:
    seen = stage.play("memory", colour)
    assert seen["answer"] is None
    assert seen["gone"]["error"] == "NotFoundError"
    assert stage.status(f"/memory/{seen['deleted']}") == 404


@pytest.mark.parametrize(
    ("attempt", "error", "status"),
    [
        ("exists", "ConflictError", 409),
        ("absent", "NotFoundError", 404),
        ("absent_change", "NotFoundError", 404),
        ("absent_delete", "NotFoundError", 404),
        ("no_page", "ValidationError", 400),
        ("text", "OpenIntentError", 422),
        ("unknown_type", "OpenIntentError", 422),
        ("not_their_own", "OpenIntentError", 403),
        ("read_by_another", "OpenIntentError", 403),
        ("changed_by_another", "OpenIntentError", 403),
        ("deleted_by_another", "OpenIntentError", 403),
    ],
)
def test_a_refusal_is_raised_as_its_class(
    stage: Stage, colour: str, attempt: str, error: str, status: int
) -> None:
    refusal = stage.play("memory", colour)["refused"][attempt]
    assert (refusal["error"], refusal["status"]) == (error, status), refusal
    assert refusal["body"]["status"] == status


def test_shared_knowledge_is_readable_by_others(stage: Stage, colour: str) -> None:
    seen = stage.play("memory", colour)
    assert seen["read_by_another"] == seen["made"]["semantic"]
