"""The published client's intent calls (RFC-0001) and graph calls (RFC-0002)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.published_client.stage import Stage, assert_stored

WAY = ["blocked", "active", "suspended_awaiting_input", "active", "completed"]


def test_an_intent_is_what_the_client_sent(stage: Stage, colour: str) -> None:
    seen = stage.play("intents", colour)
    made = seen["made"]
    assert made["title"] == f"Reconcile intents-{colour}"
    assert made["description"] == "Match payments to invoices"
    assert made["constraints"] == {"rules": ["never pay twice"]}
    assert made["state"] == {"phase": "reading", "done": 0}
    assert (made["version"], made["status"], made["created_by"]) == (1, "active", "ana")
    assert (made["parent_intent_id"], made["depends_on"], made["confidence"]) == (None, [], 0)
    assert made["created_at"]
    assert seen["got"]["title"] == made["title"]


def test_state_changes_at_a_version_and_stale_ones_are_conflicts(stage: Stage, colour: str) -> None:
    seen = stage.play("intents", colour)
    assert seen["changed"]["version"] == 2
    assert seen["changed"]["state"] == {
        "phase": "matching",
        "done": 0,
        "found": {"pairs": [1, 2]},
    }
    for attempt in ("stale", "stale_status"):
        stale = seen[attempt]
        assert (stale["error"], stale["status"]) == ("ConflictError", 409)
        assert stale["current_version"] == 2


def test_statuses_follow_and_are_stored(stage: Stage, colour: str) -> None:
    seen = stage.play("intents", colour)
    views = seen["statuses"]
    assert [view["status"] for view in views] == WAY
    assert [view["version"] for view in views] == [3, 4, 5, 6, 7]
    assert seen["abandoned"]["status"] == "abandoned"

    stored = stage.get(f"/intents/{seen['made']['id']}")
    assert stored["status"] == "completed"
    assert stored["state"] == seen["changed"]["state"]
    assert seen["made"]["id"] in seen["completed_list"]
    assert seen["abandoned"]["id"] not in seen["completed_list"]
    changes = stage.get(f"/intents/{seen['made']['id']}/events", event_type="status_changed")
    assert len(changes["events"]) == len(WAY)
    assert changes["events"][0]["payload"]["reason"] == "now blocked"


def test_lists_apply_their_conditions_and_access_rules(stage: Stage, colour: str) -> None:
    lists = stage.play("intents", colour)["lists"]
    assert lists["in_all"]
    assert lists["in_active"]
    assert not lists["in_draft"]
    assert not lists["for_another"]
    assert lists["page_of_one"] == lists["first"]
    assert lists["behind_the_end"] == []


@pytest.mark.parametrize(
    ("attempt", "error", "status"),
    [
        ("absent", "NotFoundError", 404),
        ("hidden", "OpenIntentError", 403),
        ("hidden_change", "OpenIntentError", 403),
    ],
)
def test_what_is_absent_or_not_shared_is_refused(
    stage: Stage, colour: str, attempt: str, error: str, status: int
) -> None:
    refusal = stage.play("intents", colour)[attempt]
    assert (refusal["error"], refusal["status"]) == (error, status)


@pytest.fixture
def graph(stage: Stage) -> dict[str, Any]:
    """What the client saw of an intent with three children and a grandchild."""
    seen: dict[str, Any] = stage.play("graph", "blocking")
    return seen


def test_children_are_made_under_their_parent(stage: Stage, graph: dict[str, Any]) -> None:
    parent, first, second, leaf = (
        graph["made"][name] for name in ("parent", "first", "second", "leaf")
    )
    assert first["parent_intent_id"] == second["parent_intent_id"] == parent["id"]
    assert leaf["parent_intent_id"] == second["id"]
    assert first["depends_on"] == []
    assert second["depends_on"] == leaf["depends_on"] == [first["id"]]
    assert first["constraints"] == {"rules": ["cheap"]}
    assert first["state"] == {"phase": "new"}
    assert_stored(second, stage.get(f"/intents/{second['id']}"))


def test_relatives_are_found(graph: dict[str, Any]) -> None:
    made = graph["made"]
    assert graph["children"] == ["First", "Second"]
    assert graph["descendants"] == ["First", "Leaf", "Second"]
    assert graph["ancestors"] == [made["second"]["id"], made["parent"]["id"]], "nearest first"
    assert graph["dependencies"] == ["First"]
    assert graph["dependents"] == ["Leaf", "Second"]
    assert graph["childless"] == []


def test_child_is_ready_when_its_dependencies_are_completed(graph: dict[str, Any]) -> None:
    assert graph["ready"] == ["First"]
    assert graph["blocked"] == ["Second"]
    assert {"Second", "Third"} <= set(graph["ready_after"])
    assert graph["blocked_after"] == []


def test_dependencies_come_and_go_at_a_version(stage: Stage, graph: dict[str, Any]) -> None:
    first, edges = graph["made"]["first"], graph["edges"]
    assert edges["added"]["depends_on"] == [first["id"]]
    assert edges["added"]["version"] == 2
    assert edges["blocked"] == ["Second", "Third"]
    assert edges["removed"]["depends_on"] == []
    assert edges["removed"]["version"] == 3
    for attempt in ("stale", "stale_removal"):
        assert edges[attempt]["error"] == "ConflictError"
        assert edges[attempt]["current_version"] == 2
    assert edges["absent"]["error"] == "NotFoundError"
    log = stage.get(f"/intents/{edges['third']['id']}/events")["events"]
    types = [event["event_type"] for event in log]
    assert types == ["intent_created", "dependency_added", "dependency_removed"]
    assert log[1]["payload"]["dependency_id"] == first["id"]


@pytest.mark.parametrize("attempt", ["cycle", "itself"])
def test_a_cycle_is_the_clients_validation_error(graph: dict[str, Any], attempt: str) -> None:
    refusal = graph["edges"][attempt]
    assert (refusal["error"], refusal["status"]) == ("ValidationError", 400)


def test_the_graph_has_nodes_edges_and_a_sum(graph: dict[str, Any]) -> None:
    made, drawn = graph["made"], graph["graph"]
    ids = {name: made[name]["id"] for name in made}
    assert drawn["root_id"] == ids["parent"]
    assert {node["id"]: node["title"] for node in drawn["nodes"]} == {
        made[name]["id"]: made[name]["title"] for name in made
    }
    assert {(edge["from"], edge["to"], edge["type"]) for edge in drawn["edges"]} == {
        (ids["parent"], ids["first"], "parent"),
        (ids["parent"], ids["second"], "parent"),
        (ids["second"], ids["leaf"], "parent"),
        (ids["first"], ids["second"], "dependency"),
        (ids["first"], ids["leaf"], "dependency"),
    }
    assert drawn["aggregate_status"] == {
        "total": 4,
        "by_status": {"active": 4},
        "completion_percentage": 0,
    }
    assert graph["graph_after"]["aggregate_status"] == {
        "total": 5,
        "by_status": {"active": 4, "completed": 1},
        "completion_percentage": 20,
    }


@pytest.mark.parametrize("attempt", ["hidden", "hidden_child"])
def test_a_graph_is_closed_to_strangers(graph: dict[str, Any], attempt: str) -> None:
    assert (graph[attempt]["error"], graph[attempt]["status"]) == ("OpenIntentError", 403)
