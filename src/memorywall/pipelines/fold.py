"""Moves noted accesses and uses into the store, so that a restart forgets little of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from memorywall.storage.port import Transaction
from memorywall.wall.door import Door

_USES_AT_ONCE = 500


async def fold_accesses(door: Door) -> None:
    """Folds what is noted now, owner by owner."""
    for tenant, owner in door.accesses.owners():

        async def script(
            transaction: Transaction, tenant: str = tenant, owner: str = owner
        ) -> dict[str, str]:
            return await door.accesses.fold(transaction, tenant, owner)

        door.accesses.forget(tenant, owner, await door.store.write(tenant, script))


async def fold_uses(door: Door) -> dict[str, dict[str, int]]:
    """Adds to the store how often entries were used; returns what was added, by tenant."""
    added = door.accesses.take_uses()
    waiting = [(tenant, some) for tenant, uses in added.items() for some in _in_parts(uses)]
    try:
        while waiting:
            tenant, some = waiting[-1]

            async def script(
                transaction: Transaction, tenant: str = tenant, some: dict[str, int] = some
            ) -> None:
                await transaction.recall.add_uses(tenant, some)

            await door.store.write(tenant, script)
            waiting.pop()
    finally:
        for tenant, some in waiting:
            door.accesses.count(tenant, some)
    return added


def _in_parts(uses: dict[str, int]) -> Iterator[dict[str, int]]:
    """Uses in parts of which each takes a moment to write: others write meanwhile."""
    items = iter(uses.items())
    while some := dict(islice(items, _USES_AT_ONCE)):
        yield some
