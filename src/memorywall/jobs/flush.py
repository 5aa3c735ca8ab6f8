"""Writes recorded accesses, uses and searches to the store, so that a restart loses few of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from memorywall.jobs.tenant_failures import isolate_tenant
from memorywall.records.clock import instant_to_milliseconds
from memorywall.records.principal import Maintenance
from memorywall.records.recall import LastUse
from memorywall.records.reuse import ReuseHistogram, add_interval, bucket_of
from memorywall.service.erasure.query_sample import store_notes
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.query_notes import QueryNote
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import maintain
from memorywall.storage.sql.record_table import REUSE_HISTOGRAMS

_USES_AT_ONCE = 500


async def flush_accesses(service: SharedServices) -> None:
    """Flushes recorded accesses, owner by owner.

    After a failure the other owners of the tenant wait for the next flush; other tenants are not
    affected.
    """
    owners = service.usage_tracker.owners()
    for tenant in dict.fromkeys(tenant for tenant, _ in owners):
        with isolate_tenant("flush", tenant):
            for owner in [owner for its_tenant, owner in owners if its_tenant == tenant]:
                await _flush_owner(service, tenant, owner)


async def _flush_owner(service: SharedServices, tenant: str, owner: str) -> None:
    async def function(context: OperationContext) -> dict[str, str]:
        # From here on, only accesses that the tenant's tiers evict by are recorded.
        await context.load_tiers()
        return await service.usage_tracker.flush(context.transaction, context.tenant, owner)

    written = await maintain(service, tenant, Maintenance.RECORD_USE, function)
    service.usage_tracker.forget(tenant, owner, written)


async def flush_uses(service: SharedServices) -> dict[str, dict[str, int]]:
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
    service: SharedServices, tenant: str, waiting: dict[str, int], added: dict[str, int]
) -> None:
    """Adds the use counts of a tenant to the store, and moves them from `waiting` to `added`."""
    for some in _in_parts(dict(waiting)):

        async def function(context: OperationContext, some: dict[str, int] = some) -> None:
            # An entry with new feedback and no new use is here only to be updated in the index.
            used = {entry_id: count for entry_id, count in some.items() if count}
            await _add_intervals(context, used)
            await context.transaction.recall.add_uses(used, context.now)

        await maintain(service, tenant, Maintenance.RECORD_USE, function)
        for entry_id in some:
            added[entry_id] = waiting.pop(entry_id)


async def _add_intervals(context: OperationContext, uses: Mapping[str, int]) -> None:
    """Adds the intervals since the last uses to the histograms of their namespaces. Uses of one
    flush are less than a minute apart."""
    histograms = context.transaction.records(REUSE_HISTOGRAMS)
    by_namespace: dict[str, list[LastUse]] = {}
    for last in await context.transaction.recall.last_uses(list(uses)):
        by_namespace.setdefault(last.namespace, []).append(last)
    for namespace, lasts in by_namespace.items():
        known = await histograms.get(namespace)
        counts = {} if known is None else known.counts
        for last in lasts:
            if last.at is not None:
                waited = context.moment - instant_to_milliseconds(last.at)
                add_interval(counts, last.kind, bucket_of(waited))
            if uses[last.entry_id] > 1:
                add_interval(counts, last.kind, 0, uses[last.entry_id] - 1)
        changed = ReuseHistogram(tenant=context.tenant, namespace=namespace, counts=counts)
        await (histograms.insert if known is None else histograms.replace)(changed)


async def flush_queries(service: SharedServices) -> None:
    """Stores a sample of the vectors of searches since the last flush. After a failure in a tenant,
    its searches are left out; other tenants are not affected."""
    for tenant, notes in service.query_notes.drain().items():

        async def function(context: OperationContext, notes: list[QueryNote] = notes) -> None:
            await store_notes(context, notes)

        with isolate_tenant("queries", tenant):
            await maintain(service, tenant, Maintenance.RECORD_USE, function)


async def flush_key_uses(service: SharedServices) -> None:
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
