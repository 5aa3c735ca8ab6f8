"""Intents: making, reading, changing (RFC-0001)."""

from __future__ import annotations

from typing import Any

from openintent import IntentStatus

from tests.published_client.colours import Client, refused

ABSENT = "int_01ARZ3NDEKTSV4RRFFQ69G5FAV"
# From where a new intent stands to its end, by way of every status but those of other intents.
WAY = (
    IntentStatus.BLOCKED,
    IntentStatus.ACTIVE,
    IntentStatus.SUSPENDED_AWAITING_INPUT,
    IntentStatus.ACTIVE,
    IntentStatus.COMPLETED,
)


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    made = await ana.create_intent(
        f"Reconcile {name}",
        "Match payments to invoices",
        constraints={"rules": ["never pay twice"]},
        initial_state={"phase": "reading", "done": 0},
    )
    changed = await ana.update_state(
        made.id, made.version, {"phase": "matching", "found": {"pairs": [1, 2]}}
    )
    return {
        "made": made,
        "got": await ana.get_intent(made.id),
        "changed": changed,
        "stale": await refused(ana.update_state(made.id, made.version, {"phase": "lost"})),
        "stale_status": await refused(
            ana.set_status(made.id, made.version, IntentStatus.COMPLETED)
        ),
        "absent": await refused(ana.get_intent(ABSENT)),
        "hidden": await refused(ben.get_intent(made.id)),
        "hidden_change": await refused(ben.update_state(made.id, 2, {"phase": "stolen"})),
        "lists": await _list(ana, ben, made.id),
        "statuses": await _walk(ana, made.id, changed.version),
        "abandoned": await _abandon(ana, name),
        "completed_list": await _ids(ana, status=IntentStatus.COMPLETED, limit=200),
    }


async def _ids(client: Client, **conditions: Any) -> list[str]:
    return [intent.id for intent in await client.list_intents(**conditions)]


async def _list(ana: Client, ben: Client, intent: str) -> dict[str, Any]:
    everything = await _ids(ana, limit=200)
    return {
        "in_all": intent in everything,
        "in_active": intent in await _ids(ana, status=IntentStatus.ACTIVE, limit=200),
        "in_draft": intent in await _ids(ana, status=IntentStatus.DRAFT, limit=200),
        "for_another": intent in await _ids(ben, limit=200),
        "first": everything[:1],
        "page_of_one": await _ids(ana, limit=1),
        "behind_the_end": await _ids(ana, limit=10, offset=len(everything)),
    }


async def _walk(ana: Client, intent: str, version: int) -> list[Any]:
    views = []
    for status in WAY:
        view = await ana.set_status(intent, version, status, reason=f"now {status.value}")
        version = view.version
        views.append(view)
    return views


async def _abandon(ana: Client, name: str) -> Any:
    made = await ana.create_intent(f"Give up {name}", "")
    return await ana.set_status(made.id, made.version, IntentStatus.ABANDONED)
