"""Reading and following an agent's event stream (RFC-0015 section 5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from memorywall.records.decision import Verb
from memorywall.records.event import Event
from memorywall.records.principal import Principal
from memorywall.storage.port import Transaction
from memorywall.wall.door import Door, authorize, owner_target

KEEP_ALIVE = 15.0
PAGE = 500


async def list_events(
    door: Door, principal: Principal, agent: str, after: int, limit: int
) -> list[Event]:
    """Events of the agent's stream after a sequence number. Raises MemoryAccessError."""
    authorize(principal, Verb.OBSERVE, owner_target(principal.tenant, agent))

    async def script(transaction: Transaction) -> list[Event]:
        return await transaction.events.list(principal.tenant, agent, after, limit)

    return await door.store.read(principal.tenant, script)


def follow_events(
    door: Door, principal: Principal, agent: str, after: int
) -> AsyncGenerator[list[Event], None]:
    """The same without end, each event once and in order; an empty list is a sign of life."""
    authorize(principal, Verb.OBSERVE, owner_target(principal.tenant, agent))
    return follow(
        door, principal.tenant, lambda seen: list_events(door, principal, agent, seen, PAGE), after
    )


async def follow(
    door: Door, tenant: str, look: Callable[[int], Awaitable[list[Event]]], after: int
) -> AsyncGenerator[list[Event], None]:
    """What `look` finds after one place of the log after another, whenever something happened.

    look: gives up to `PAGE` events after a place, in order, and raises when it may not any more
    """
    watch = door.store.watch(tenant)
    try:
        while True:
            events = await look(after)
            if events:
                after = events[-1].seq
            yield events
            if len(events) < PAGE:
                await watch.changed(KEEP_ALIVE)
    finally:
        watch.close()
