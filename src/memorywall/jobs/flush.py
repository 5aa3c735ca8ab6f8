"""Writes recorded accesses and uses to the store, so that a restart loses few of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from memorywall.jobs.tenant_failures import isolate_tenant
from memorywall.records.principal import Maintenance
from memorywall.service.context import ServiceContext
from memorywall.service.maintenance import maintain
from memorywall.service.operation_context import OperationContext

_USES_AT_ONCE = 500


async def flush_accesses(service: ServiceContext) -> None:
    """Flushes recorded accesses, owner by owner.

    After a failure the other owners of the tenant wait for the next flush; other tenants are not
    affected.
    """
    owners = service.usage_tracker.owners()
    for tenant in dict.fromkeys(tenant for tenant, _ in owners):
        with isolate_tenant("flush", tenant):
            for owner in [owner for its_tenant, owner in owners if its_tenant == tenant]:
                await _flush_owner(service, tenant, owner)


async def _flush_owner(service: ServiceContext, tenant: str, owner: str) -> None:
    async def function(context: OperationContext) -> dict[str, str]:
        # From here on, only accesses that the tenant's tiers evict by are recorded.
        await context.load_tiers()
        return await service.usage_tracker.flush(context.transaction, context.tenant, owner)

    written = await maintain(service, tenant, Maintenance.RECORD_USE, function)
    service.usage_tracker.forget(tenant, owner, written)


async def flush_uses(service: ServiceContext) -> dict[str, dict[str, int]]:
    """Adds recorded use counts to the store; returns the added counts, by tenant. Counts that could
    not be added, of one tenant or of several, stay recorded."""
    added: dict[str, dict[str, int]] = {}
    drained = service.usage_tracker.drain_uses()
    try:
        for tenant in list(drained):
            with isolate_tenant("uses", tenant):
                await _add_uses(service, tenant, drained[tenant], added.setdefault(tenant, {}))
    finally:
        for tenant, waiting in drained.items():
            if waiting:
                service.usage_tracker.count(tenant, waiting)
    return added


async def _add_uses(
    service: ServiceContext, tenant: str, waiting: dict[str, int], added: dict[str, int]
) -> None:
    """Adds the use counts of a tenant to the store, and moves them from `waiting` to `added`."""
    for some in _in_parts(dict(waiting)):

        async def function(context: OperationContext, some: dict[str, int] = some) -> None:
            await context.transaction.recall.add_uses(some)

        await maintain(service, tenant, Maintenance.RECORD_USE, function)
        for entry_id in some:
            added[entry_id] = waiting.pop(entry_id)


async def flush_key_uses(service: ServiceContext) -> None:
    """Stores the present instant as the last use of each API key that was used since the last
    flush. After a failure in a tenant, its uses are stored with the next use; other tenants are not
    affected."""
    for tenant, used in service.usage_tracker.drain_key_uses().items():

        async def function(context: OperationContext, used: list[str] = used) -> None:
            await context.transaction.identities.touch_keys(dict.fromkeys(used, context.now))

        with isolate_tenant("key_uses", tenant):
            await maintain(service, tenant, Maintenance.RECORD_USE, function)


def _in_parts(uses: dict[str, int]) -> Iterator[dict[str, int]]:
    """Splits uses into parts that each take a moment to write, so that other writes can run in
    between."""
    items = iter(uses.items())
    while some := dict(islice(items, _USES_AT_ONCE)):
        yield some
