"""How far embedding is behind the log."""

from __future__ import annotations

from memorywall.storage.port import Transaction
from memorywall.wall.log import end_of_log


async def behind(transaction: Transaction, tenant: str, model: str) -> int:
    """How much of a tenant's log embedding under a model has yet to look at."""
    logged = await end_of_log(transaction, tenant)
    return max(0, logged - await transaction.recall.position(tenant, model))
