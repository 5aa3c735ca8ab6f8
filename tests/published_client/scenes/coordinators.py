"""Who coordinates an intent (RFC-0013)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from openintent import Guardrails

from tests.published_client.colours import Client, refused

ABSENT = "coord_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Lead {name}", "")).id
    refused_first = await refused(ben.create_coordinator_lease("ben", intent))
    made = await ana.create_coordinator_lease(
        "ben",
        intent,
        guardrails=Guardrails(
            max_budget_usd=2.5,
            max_working_memory_per_task=3,
            max_episodic_memory_per_agent=50,
            denied_semantic_namespaces=["hr/*"],
        ).to_dict(),
        heartbeat_interval_seconds=30,
        expires_at=(datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        role="coordinator",
        coordinator_type="system",
        metadata={"shift": "night"},
    )
    return {
        "intent": intent,
        "not_an_admin": refused_first,
        "made": made,
        "got": await ana.get_coordinator_lease(made.id),
        "listed": await ana.list_coordinator_leases(intent),
        "listed_for_no_intent": await ana.list_coordinator_leases(),
        "held": await refused(ana.create_coordinator_lease("ana", intent)),
        "beat": await ben.coordinator_heartbeat(made.id),
        "beat_by_another": await refused(ana.coordinator_heartbeat(made.id)),
        "absent": await refused(ana.get_coordinator_lease(ABSENT)),
        # Whoever coordinates may do what an administrator of the intent may.
        "task": await ben.create_task(intent, "Assigned by the coordinator", assigned_agent="ana"),
    }
