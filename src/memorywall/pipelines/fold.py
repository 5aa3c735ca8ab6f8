"""Moves noted accesses and uses into the store, so that a restart forgets little of them."""

from __future__ import annotations

from memorywall.storage.port import Transaction
from memorywall.wall.door import Door


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
    waiting = dict(added)
    try:
        for tenant, uses in added.items():

            async def script(
                transaction: Transaction, tenant: str = tenant, uses: dict[str, int] = uses
            ) -> None:
                await transaction.recall.add_uses(tenant, uses)

            await door.store.write(tenant, script)
            del waiting[tenant]
    finally:
        for tenant, uses in waiting.items():
            door.accesses.give_back(tenant, uses)
    return added
