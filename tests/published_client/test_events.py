"""The published client reads and writes the event log of an intent, and follows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.published_client.stage import Stage

# What only the server may say.
RESERVED = ("memory.", "task.", "intent_", "lease_", "claim.", "coordinator.", "access_")
ALSO_RESERVED = {
    "state_patched",
    "status_changed",
    "attachment_added",
    "dependency_added",
    "dependency_removed",
}


def _is_reserved(kind: str) -> bool:
    return kind.startswith(RESERVED) or kind in ALSO_RESERVED


def test_every_type_the_client_knows_is_logged_or_reserved(stage: Stage, colour: str) -> None:
    seen = stage.play("events", colour)
    outcomes: dict[str, int] = seen["outcomes"]
    assert outcomes == {kind: 422 if _is_reserved(kind) else 201 for kind in outcomes}
    assert set(outcomes.values()) == {201, 422}
    said = [event["payload"]["said"] for event in seen["log"] if "said" in event["payload"]]
    assert said == [kind for kind in outcomes if not _is_reserved(kind)], "in the order logged"


def test_the_clients_own_helpers_write_what_they_say(stage: Stage, colour: str) -> None:
    helpers = stage.play("events", colour)["helpers"]
    assert {name: event["event_type"] for name, event in helpers.items()} == {
        "log_tool_call_started": "tool_call_started",
        "log_tool_call_completed": "tool_call_completed",
        "log_tool_call_failed": "tool_call_failed",
        "log_llm_request_started": "llm_request_started",
        "log_llm_request_completed": "llm_request_completed",
        "log_llm_request_failed": "llm_request_failed",
        "start_stream": "stream_started",
        "log_stream_chunk": "stream_chunk",
        "complete_stream": "stream_completed",
        "cancel_stream": "stream_cancelled",
    }
    assert helpers["log_tool_call_started"]["payload"]["arguments"] == {"query": "ACME"}
    assert helpers["log_llm_request_completed"]["payload"]["total_tokens"] == 7
    assert helpers["cancel_stream"]["payload"]["cancel_reason"] == "enough"


def test_an_event_keeps_its_actor_and_its_trace(stage: Stage, colour: str) -> None:
    seen = stage.play("events", colour)
    cause, traced = seen["cause"], seen["traced"]
    assert cause["actor"] == "ana"
    assert cause["intent_id"] == seen["intent"]
    assert traced["trace_id"] == "a" * 32
    assert traced["parent_event_id"] == cause["id"]
    stored = stage.get(f"/intents/{seen['intent']}/events", limit=3)["events"]
    assert [event["event_type"] for event in stored] == ["intent_created", "comment", "comment"]
    assert stored[2]["id"] == traced["id"]
    assert stored[2]["trace_id"] == traced["trace_id"]
    assert stored[2]["parent_event_id"] == cause["id"]


def test_the_log_is_filtered_as_asked(stage: Stage, colour: str) -> None:
    seen = stage.play("events", colour)
    log = seen["log"]
    assert seen["first_two"] == log[:2]
    assert seen["comments"] == [event for event in log if event["event_type"] == "comment"]
    assert seen["since_yesterday"] == len(log)
    assert seen["since_tomorrow"] == 0
    assert [event["id"] for event in log] == [
        event["id"]
        for event in stage.get(f"/intents/{seen['intent']}/events", limit=1_000)["events"]
    ]


@pytest.mark.parametrize("attempt", ["hidden", "forged"])
def test_a_log_is_closed_to_strangers(stage: Stage, colour: str, attempt: str) -> None:
    refusal = stage.play("events", colour)[attempt]
    assert (refusal["error"], refusal["status"]) == ("OpenIntentError", 403)


@pytest.mark.parametrize("reader", ["streamed", "queued"])
def test_a_stream_tells_what_happens_in_order(stage: Stage, reader: str) -> None:
    seen = stage.play("streams", "blocking")
    events: list[dict[str, Any]] = seen[reader]
    assert [event["data"] for event in events] == _tail(stage, seen["intent"], len(events))
    begun = next(
        place
        for place, event in enumerate(events)
        if event["data"]["payload"].get("text") == "begin"
    )
    assert [event["type"] for event in events[begun:]] == [
        "comment",
        "state_patched",
        "lease_acquired",
        "lease_released",
        "status_changed",
        "comment",
    ]
    # With an id, the client asks to go on from there when its connection breaks.
    assert all(event["id"] for event in events)


def _tail(stage: Stage, intent: str, count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = stage.get(f"/intents/{intent}/events", limit=1_000)["events"]
    return events[-count:]


def test_a_refused_stream_says_so(stage: Stage) -> None:
    refused = stage.play("streams", "blocking")["refused"]
    assert refused["type"] == "error"
    assert refused["data"]["status_code"] == 403
