"""Leases on scopes of an intent (RFC-0003)."""

from __future__ import annotations

from typing import Any

from openintent import Permission

from tests.published_client.colours import Client, Colour, refused

ABSENT = "lse_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Share {name}", "")).id
    await ana.grant_access(intent, "ben", permission=Permission.WRITE)
    lease = await ana.acquire_lease(intent, "research", duration_seconds=60)
    beside = await ben.acquire_lease(intent, "synthesis")
    seen = {
        "intent": intent,
        "lease": lease,
        "beside": beside,
        "held": await refused(ben.acquire_lease(intent, "research")),
        "held_by_oneself": await refused(ana.acquire_lease(intent, "research")),
        "renewed": await ana.renew_lease(intent, lease.id, duration_seconds=3_600),
        "renewed_by_another": await refused(ben.renew_lease(intent, lease.id)),
        "released_by_another": await refused(ben.release_lease(intent, lease.id)),
        "listed": await ana.get_leases(intent),
        "absent": await refused(ana.release_lease(intent, ABSENT)),
        "released": await ana.release_lease(intent, lease.id),
        "listed_after": await ana.get_leases(intent),
        "taken": await ben.acquire_lease(intent, "research"),
    }
    if ana.colour is Colour.BLOCKING:
        seen["with"] = await _within(ana, ben, intent)
    return seen


async def _within(ana: Client, ben: Client, intent: str) -> dict[str, Any]:
    with await ana.lease(intent, "analysis", duration_seconds=60) as lease:
        held = await refused(ben.acquire_lease(intent, "analysis"))
        inside = await ana.get_leases(intent)
    return {
        "lease": lease,
        "held": held,
        "inside": [one.id for one in inside],
        "outside": [one.id for one in await ana.get_leases(intent)],
    }
