"""The records of work that the cases use."""

from __future__ import annotations

import itertools
from typing import Any

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator, Guardrails
from memorywall.records.intent import Intent, IntentGrant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access
from memorywall.records.task import Task, TaskStatus
from memorywall_testing.base import AGENT, NOW, TENANT, at

INTENT = "int_1"
GUARDRAILS = Guardrails(
    max_working_memory_per_task=5,
    max_episodic_memory_per_agent=0,
    allowed_semantic_namespaces=("policies", "policies/*"),
    denied_semantic_namespaces=(),
    memory_archive_required=False,
    others={"max_budget_usd": 1.5, "deep": [{"a": None}]},
)
ANYTHING: dict[str, Any] = {
    "text": 'quo"te \u2764\ufe0f \U0001f44d \\ \u2028',
    "numbers": [0, -1, 2**53 + 1, 2**63, 1e-7, 1.5],
    "": {"none": None, "true": True, "empty": [{}, []]},
}
"""Values of free-form JSON."""

_numbers = itertools.count(1)


def make_lease(**fields: Any) -> Lease:
    """A claim of `ada` for ten seconds, not yet taken, under an id of its own."""
    return Lease(
        **{
            "tenant": TENANT,
            "id": f"clm_{next(_numbers):026d}",
            "kind": LeaseKind.CLAIM,
            "parent": "shared/global",
            "name": "report",
            "holder": AGENT,
            "acquired_at": NOW,
            "renewed_at": NOW,
            "expires_at": at(10),
            **fields,
        }
    )


def make_intent(**fields: Any) -> Intent:
    """An intent of `ada`, newer by id than every one made before it."""
    return Intent(
        **{
            "tenant": TENANT,
            "id": f"int_{next(_numbers):026d}",
            "title": "Close the quarter",
            "created_by": AGENT,
            "created_at": NOW,
            "updated_at": NOW,
            **fields,
        }
    )


def make_grant(**fields: Any) -> IntentGrant:
    """A line that lets `grace` write, later by id than every one made before it."""
    return IntentGrant(
        **{
            "tenant": TENANT,
            "intent_id": INTENT,
            "id": f"acl_{next(_numbers):026d}",
            "principal_id": "grace",
            "access": Access.WRITE,
            "granted_by": AGENT,
            "granted_at": NOW,
            **fields,
        }
    )


TASKS_IN_ORDER: tuple[dict[str, Any], ...] = (
    {"id": "task_2"},
    {"id": "task_3", "status": TaskStatus.PENDING, "depends_on": ("task_1",)},
    {"id": "task_4", "status": TaskStatus.COMPLETED},
)
"""The fields of tasks of which one waits for `task_1`."""


def make_task(**fields: Any) -> Task:
    """A ready task that nobody is assigned to, newer by id than every one made before it."""
    return Task(
        **{
            "tenant": TENANT,
            "id": f"task_{next(_numbers):026d}",
            "intent_id": INTENT,
            "name": "extract",
            "created_by": AGENT,
            "created_at": NOW,
            "updated_at": NOW,
            **fields,
        }
    )


def make_coordinator(**fields: Any) -> Coordinator:
    """A coordinator, newer by id than every one made before it."""
    return Coordinator(
        **{
            "tenant": TENANT,
            "id": f"coord_{next(_numbers):026d}",
            "intent_id": INTENT,
            "agent_id": AGENT,
            "token": 1,
            "last_heartbeat": NOW,
            "granted_at": NOW,
            "expires_at": at(180),
            **fields,
        }
    )


def make_attachment(**fields: Any) -> Attachment:
    """An attachment without content, newer by id than every one made before it."""
    return Attachment(
        **{
            "tenant": TENANT,
            "id": f"att_{next(_numbers):026d}",
            "intent_id": INTENT,
            "filename": "report.pdf",
            "mime_type": "application/pdf",
            "uploaded_by": AGENT,
            "created_at": NOW,
            **fields,
        }
    )
