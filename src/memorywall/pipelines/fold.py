"""Moves noted accesses into the store, so that a restart forgets little of the order of use."""

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
