"""Every memory call, with every argument the client's own entry class knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.published_client.colours import Client, refused

ABSENT = "mem_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    made = await _create(ana, name)
    return {
        "made": made,
        "got": {tier: await ana.get_memory(entry.id) for tier, entry in made.items()},
        "read_by_another": await ben.get_memory(made["semantic"].id),
        "lists": await _list(ana, name),
        "refused": await _refusals(ana, ben, name, made),
        **await _change(ana, made["working"].id),
        **await _delete(ana, name),
    }


async def _create(ana: Client, name: str) -> dict[str, Any]:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    return {
        "working": await ana.create_memory(
            "ana",
            f"{name}/desk",
            "progress",
            {"completed": 23, "errors": ["INV-7"]},
            tags=["batch", "invoices"],
            ttl="duration:PT1H",
            sensitivity="confidential",
        ),
        "episodic": await ana.create_memory(
            "ana",
            f"{name}/past",
            "vendor-format",
            {"lesson": "dates come day first"},
            memory_type="episodic",
            tags=["invoices", "vendor"],
            pinned=True,
            priority="high",
            sensitivity="internal",
        ),
        "semantic": await ana.create_memory(
            "ana",
            f"{name}/facts",
            "currency",
            {"subject": "ACME", "predicate": "bills in", "object": "EUR"},
            memory_type="semantic",
            tags=["vendor"],
            expires_at=tomorrow,
            priority="low",
            sensitivity="public",
        ),
    }


async def _list(ana: Client, name: str) -> dict[str, list[Any]]:
    async def keys(**conditions: Any) -> list[str]:
        return [entry.key for entry in await ana.list_memory("ana", **conditions)]

    past = f"{name}/past"
    for number in range(3):
        await ana.create_memory("ana", past, f"case-{number}", {"number": number}, "episodic")
    return {
        "namespace": await keys(namespace=past),
        "tags": await keys(namespace=f"{name}/*", tags=["invoices"]),
        "both_tags": await keys(namespace=f"{name}/*", tags=["vendor", "invoices"]),
        "memory_type": await keys(namespace=f"{name}/*", memory_type="working"),
        "page": await keys(namespace=past, limit=2, offset=1),
        "nothing": await keys(namespace=f"{name}/nothing"),
    }


async def _change(ana: Client, entry: str) -> dict[str, Any]:
    changed = await ana.update_memory(entry, 1, value={"completed": 24}, tags=["batch"])
    governed = await ana.update_memory(
        entry, 2, ttl="duration:PT2H", priority="high", sensitivity="internal"
    )
    return {
        "changed": changed,
        "governed": governed,
        "stale": await refused(ana.update_memory(entry, 1, value={"completed": 0})),
    }


async def _refusals(ana: Client, ben: Client, name: str, made: dict[str, Any]) -> dict[str, Any]:
    desk = f"{name}/desk"
    private = made["episodic"].id
    return {
        "exists": await refused(ana.create_memory("ana", desk, "progress", {"completed": 0})),
        "absent": await refused(ana.get_memory(ABSENT)),
        "absent_change": await refused(ana.update_memory(ABSENT, 1, value={})),
        "absent_delete": await refused(ana.delete_memory(ABSENT)),
        "no_page": await refused(ana.list_memory("ana", limit=0)),
        "text": await refused(ana.create_memory("ana", desk, "text", "not an object")),
        "unknown_type": await refused(ana.create_memory("ana", desk, "x", {}, "eternal")),
        "not_their_own": await refused(ben.create_memory("ana", desk, "x", {})),
        "read_by_another": await refused(ben.get_memory(private)),
        "changed_by_another": await refused(ben.update_memory(private, 1, value={})),
        "deleted_by_another": await refused(ben.delete_memory(private)),
    }


async def _delete(ana: Client, name: str) -> dict[str, Any]:
    entry = await ana.create_memory("ana", f"{name}/desk", "scratch", {"line": 1})
    return {
        "deleted": entry.id,
        "answer": await ana.delete_memory(entry.id),
        "gone": await refused(ana.get_memory(entry.id)),
    }
