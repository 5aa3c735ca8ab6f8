"""Seals records that an earlier version stored in clear text."""

from __future__ import annotations

from memorywall.jobs.tenant_failures import isolate_tenant
from memorywall.records.principal import Maintenance
from memorywall.service.administration import list_tenants
from memorywall.service.context import ServiceContext
from memorywall.service.maintenance import inspect, maintain
from memorywall.service.operation_context import OperationContext
from memorywall.service.record_writes import has_unsealed, seal_stored

_CHUNK = 100


async def seal_records(service: ServiceContext) -> None:
    """Runs one round over all tenants, in small transactions, until everything is sealed. A failure
    in a tenant does not affect other tenants."""
    for tenant in await list_tenants(service):
        with isolate_tenant("seal", tenant):
            while await inspect(service, tenant, Maintenance.SEAL, has_unsealed):
                await maintain(service, tenant, Maintenance.SEAL, _seal_some, long=True)


async def _seal_some(context: OperationContext) -> bool:
    return await seal_stored(context, _CHUNK)
