"""What docs/openintent.md says of the published client's own faults is true."""

from __future__ import annotations

import pytest

from tests.published_client.stage import Stage

NO_MEMORY = ["AttributeError", "'AsyncOpenIntentClient' object has no attribute 'memory'"]
NO_TASKS = ["AttributeError", "'AsyncOpenIntentClient' object has no attribute 'tasks'"]
FAULTS = {
    **{f"memory.{method}": NO_MEMORY for method in ("store", "recall", "forget", "pin")},
    **{f"tasks.{method}": NO_TASKS for method in ("create", "complete", "fail", "list")},
    "governance.request_approval": [
        "AttributeError",
        "'AsyncOpenIntentClient' object has no attribute 'create_approval_request'",
    ],
    # It hands over the status and the version in the wrong order.
    "complete_intent": ["AttributeError", "'int' object has no attribute 'value'"],
    # It compares with a clock that knows no offset from UTC.
    "is_active": ["TypeError", "can't compare offset-naive and offset-aware datetimes"],
    # It writes the entry, and cannot read any reply or list that has it.
    "another_type": ["ValueError", "'session' is not a valid MemoryType"],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_this_fails_inside_the_client(stage: Stage, fault: str) -> None:
    assert stage.play("dead_ends", "blocking")[fault] == FAULTS[fault]


def test_conflict_containing_lease_is_reported_as_lease_conflict(stage: Stage) -> None:
    kind, _ = stage.play("dead_ends", "blocking")["conflict"]
    assert kind == "LeaseConflictError"
