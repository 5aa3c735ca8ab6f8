"""The state of a store, for `memorywall status`: what a server reports, for all tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from memorywall.records.errors import MemorywallError
from memorywall.records.principal import Maintenance
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.version import __version__
from memorywall.wire.jobs import JobResponse, job_view
from memorywall.wire.service import (
    EmbeddingResponse,
    StoreResponse,
    TenantStatusResponse,
    TierUsageResponse,
)

if TYPE_CHECKING:
    from memorywall.service.requests.operation_context import OperationContext
    from memorywall.service.requests.services import SharedServices


class TenantState(msgspec.Struct, frozen=True, kw_only=True):
    """The entries by tier and the background jobs of a tenant."""

    tenant: str
    tiers: list[TierUsageResponse]
    jobs: list[JobResponse]


class StoreState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a server or of a store.

    status: `ready` for a server; `served` or `not served` for a store that was opened
    store: None if the caller may not see it
    embedding: None if the embedder cannot be opened
    tenants: those that the caller may see
    """

    status: str
    version: str
    store: StoreResponse | None
    embedding: EmbeddingResponse | None
    tenants: list[TenantState]


def state_of_server(response: TenantStatusResponse) -> StoreState:
    """The state that a server has reported to an administrator of a tenant."""
    return StoreState(
        status=response.status,
        version=response.version,
        store=response.store,
        embedding=response.embedding,
        tenants=[
            TenantState(tenant=response.tenant, tiers=response.tiers, jobs=response.jobs),
        ],
    )


async def state_of_store(service: SharedServices, *, served: bool) -> StoreState:
    """The state of an open store, with all tenants.

    served: whether a server used the store before this process opened it
    """
    # Imported here, because the state of a server needs no store.
    from memorywall.service.administration.tenants import list_tenants
    from memorywall.service.runner.maintenance import inspect

    described = await service.store.describe()
    tenants = []
    for tenant in await list_tenants(service):
        tiers, jobs = await inspect(service, tenant, Maintenance.ADMINISTER, _tiers_and_jobs)
        views = [job_view(job) for job in jobs]
        tenants.append(TenantState(tenant=tenant, tiers=tiers, jobs=views))
    return StoreState(
        status="served" if served else "not served",
        version=__version__,
        store=StoreResponse(
            engine=described.engine, version=described.version, schema=described.schema
        ),
        embedding=await _embedding(service),
        tenants=tenants,
    )


async def _tiers_and_jobs(
    context: OperationContext,
) -> tuple[list[TierUsageResponse], list[ScheduledJob]]:
    from memorywall.jobs.job_control import list_jobs
    from memorywall.operations.service import usage_of_tiers

    return await usage_of_tiers(context), await list_jobs(context)


async def _embedding(service: SharedServices) -> EmbeddingResponse | None:
    from memorywall.assembly import open_index

    try:
        async with open_index(service.settings, service) as index:
            backlog = await index.backlog()
    except MemorywallError:
        return None
    return EmbeddingResponse(model=backlog.model, backlog=backlog.changes)
