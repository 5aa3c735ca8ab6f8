"""Writes recorded accesses and uses to the store, so that a restart loses few of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from memorywall.records.principal import Maintenance
from memorywall.service.context import ServiceContext
from memorywall.service.maintenance import maintain
from memorywall.service.operation_context import OperationContext

_USES_AT_ONCE = 500


async def flush_accesses(service: ServiceContext) -> None:
    """Flushes recorded accesses, owner by owner."""
    for tenant, owner in service.usage_tracker.owners():

        async def function(context: OperationContext, owner: str = owner) -> dict[str, str]:
            # From here on, only accesses that the tenant's tiers evict by are recorded.
            await context.load_tiers()
            return await service.usage_tracker.flush(context.transaction, context.tenant, owner)

        written = await maintain(service, tenant, Maintenance.RECORD_USE, function)
        service.usage_tracker.forget(tenant, owner, written)


async def flush_uses(service: ServiceContext) -> dict[str, dict[str, int]]:
    """Adds recorded use counts to the store; returns the added counts, by tenant."""
    added = service.usage_tracker.drain_uses()
    waiting = [(tenant, some) for tenant, uses in added.items() for some in _in_parts(uses)]
    try:
        while waiting:
            tenant, some = waiting[-1]

            async def function(context: OperationContext, some: dict[str, int] = some) -> None:
                await context.transaction.recall.add_uses(some)

            await maintain(service, tenant, Maintenance.RECORD_USE, function)
            waiting.pop()
    finally:
        for tenant, some in waiting:
            service.usage_tracker.count(tenant, some)
    return added


def _in_parts(uses: dict[str, int]) -> Iterator[dict[str, int]]:
    """Splits uses into parts that each take a moment to write, so that other writes can run in
    between."""
    items = iter(uses.items())
    while some := dict(islice(items, _USES_AT_ONCE)):
        yield some
