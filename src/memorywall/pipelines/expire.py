"""Removes what has expired (RFC-0015 section 9.3) and forgets old replies."""

from __future__ import annotations

from memorywall.records.clock import format_instant
from memorywall.records.event import EventType
from memorywall.storage.port import Transaction
from memorywall.wall.administration import list_tenants
from memorywall.wall.door import Door, end

_CHUNK = 100


async def sweep(door: Door) -> int:
    """One round over all tenants, in small transactions. Returns how many entries went."""
    removed = 0
    for tenant in await list_tenants(door):
        while True:
            swept = await _sweep_some(door, tenant)
            removed += swept
            if swept < _CHUNK:
                break
        await _forget_replies(door, tenant)
    return removed


async def _sweep_some(door: Door, tenant: str) -> int:
    now = door.now()

    async def look(transaction: Transaction) -> bool:
        return bool(await transaction.entries.expired(tenant, now, 1))

    async def script(transaction: Transaction) -> int:
        entries = await transaction.entries.expired(tenant, now, _CHUNK)
        for entry in entries:
            await end(transaction, EventType.EXPIRED, entry, by=None, at=now)
        return len(entries)

    return (
        await door.store.write(tenant, script, long=True)
        if await door.store.read(tenant, look)
        else 0
    )


async def _forget_replies(door: Door, tenant: str) -> None:
    lifetime = door.settings.idempotency_lifetime.total_seconds() * 1000
    oldest_kept = format_instant(door.clock.now() - int(lifetime))

    async def script(transaction: Transaction) -> int:
        return await transaction.replies.prune(tenant, oldest_kept)

    await door.store.write(tenant, script)
