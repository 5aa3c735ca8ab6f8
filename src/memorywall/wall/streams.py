"""Reading and following an agent's event stream (RFC-0015 section 5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from memorywall.records.decision import Verb
from memorywall.records.event import Event
from memorywall.records.principal import Principal
from memorywall.storage.port import Transaction
from memorywall.wall.door import Door, authorize, owner_target

KEEP_ALIVE = 15.0
_PAGE = 500


async def list_events(
    door: Door, principal: Principal, agent: str, after: int, limit: int
) -> list[Event]:
    """Events of the agent's stream after a sequence number. Raises MemoryAccessError."""
    authorize(principal, Verb.OBSERVE, owner_target(principal.tenant, agent))

    async def script(transaction: Transaction) -> list[Event]:
        return await transaction.events.list(principal.tenant, agent, after, limit)

    return await door.store.read(script)


async def follow_events(
    door: Door, principal: Principal, agent: str, after: int
) -> AsyncGenerator[list[Event], None]:
    """The same without end, each event once and in order; an empty list is a sign of life."""
    authorize(principal, Verb.OBSERVE, owner_target(principal.tenant, agent))
    watch = door.store.watch()
    try:
        while True:
            events = await list_events(door, principal, agent, after, _PAGE)
            if events:
                after = events[-1].seq
            yield events
            if len(events) < _PAGE:
                await watch.changed(KEEP_ALIVE)
    finally:
        watch.close()
