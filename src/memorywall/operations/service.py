"""Capabilities and health of the server."""

from __future__ import annotations

from memorywall.jobs.job_control import list_jobs
from memorywall.operations.binding import multi_transaction_operation
from memorywall.recall.index import index_of
from memorywall.records.decision import Verb
from memorywall.records.errors import UnavailableError
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.records.session import context_pollution
from memorywall.records.tier import Eviction, Tier
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.capacity import find_nearly_full
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.storage.port import REGISTRY
from memorywall.storage.sql.record_table import SESSION_COUNTERS
from memorywall.version import __version__
from memorywall.wire.jobs import job_view
from memorywall.wire.results import HttpResponse
from memorywall.wire.service import (
    CapabilitiesResponse,
    DiscoveryResponse,
    EmbeddingResponse,
    Limits,
    ReadinessResponse,
    StatusResponse,
    StoreResponse,
    TenantStatusResponse,
    TierUsageResponse,
    tier_usage_views,
)

_RFCS = [
    "RFC-0001",
    "RFC-0002",
    "RFC-0003",
    "RFC-0005",
    "RFC-0011",
    "RFC-0012",
    "RFC-0013",
    "RFC-0015",
]
_CAPABILITIES = [
    "memory",
    "memory.batch",
    "memory.namespaces",
    "memory.events",
    "memory.export",
    "memory.archive",
    "memory.shared",
    "memory.search",
    "memory.reshape",
    "intents",
    "intents.graph",
    "tasks",
    "coordinators",
    "leases",
    "claims",
    "access",
    "attachments",
]


@multi_transaction_operation("get_capabilities")
async def get_capabilities(transactions: OperationTransactions) -> CapabilitiesResponse:
    settings = transactions.service.settings
    return CapabilitiesResponse(
        version=__version__,
        rfcs=_RFCS,
        capabilities=_CAPABILITIES,
        memory_types=list(Tier),
        eviction_policies=[one for one in Eviction if one is not Eviction.REFUSE],
        extensions={
            "export": "/api/v1/memory/export",
            "events": "/api/v1/agents/{agent_id}/events",
            "search": "/api/v1/memory/search",
        },
        limits=Limits(
            episodic_capacity=settings.episodic_capacity,
            working_capacity_per_task=settings.working_capacity_per_task,
        ),
    )


@multi_transaction_operation("discover")
async def discover(transactions: OperationTransactions) -> DiscoveryResponse:
    return DiscoveryResponse(version=__version__, rfcs=_RFCS, capabilities=_CAPABILITIES)


@multi_transaction_operation("health")
async def health(transactions: OperationTransactions) -> StatusResponse:
    return StatusResponse(status="ok")


@multi_transaction_operation("ready")
async def ready(transactions: OperationTransactions) -> ReadinessResponse:
    readiness, reason = await _find_readiness(transactions)
    if reason is not None:
        raise UnavailableError(f"writes are refused: {reason}")
    return readiness


async def _find_readiness(
    transactions: OperationTransactions,
) -> tuple[ReadinessResponse, str | None]:
    """The state of the server, and why writes are refused; None if they are not."""
    service = transactions.service
    await service.store.read(REGISTRY, service.cipher.check)
    backlog = await index_of(transactions).backlog()
    embedding = EmbeddingResponse(model=backlog.model, backlog=backlog.changes)
    reason = await service.room.find_reason(service.store)
    status = "ready" if reason is None else "full"
    return ReadinessResponse(status=status, embedding=embedding), reason


@multi_transaction_operation("get_status")
async def get_status(transactions: OperationTransactions) -> TenantStatusResponse:
    tiers, jobs, pollution = await transactions.read(_tiers_and_jobs)
    store = await transactions.service.store.describe()
    readiness, _ = await _find_readiness(transactions)
    return TenantStatusResponse(
        status=readiness.status,
        embedding=readiness.embedding,
        version=__version__,
        tenant=transactions.principal.tenant,
        store=StoreResponse(engine=store.engine, version=store.version, schema=store.schema),
        tiers=tiers,
        context_pollution=pollution,
        jobs=[job_view(job) for job in jobs],
    )


async def _tiers_and_jobs(
    context: OperationContext,
) -> tuple[list[TierUsageResponse], list[ScheduledJob], float | None]:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, ""))
    sums = await context.transaction.records(SESSION_COUNTERS).sums()
    pollution = context_pollution(sums["context_tokens"], sums["used_tokens"])
    return await usage_of_tiers(context), await list_jobs(context), pollution


async def usage_of_tiers(context: OperationContext) -> list[TierUsageResponse]:
    """The usage of each tier of the tenant, with the agents whose memory is nearly full."""
    usage = await context.transaction.entries.usage_by_tier()
    return tier_usage_views(usage, await find_nearly_full(context))


@multi_transaction_operation("metrics")
async def metrics(transactions: OperationTransactions) -> HttpResponse:
    index = index_of(transactions)
    # Only sums over all tenants, because this operation needs no key.
    measured = {
        "backlog": (await index.backlog()).changes,
        "index": index.measure(),
        "refusals": transactions.service.refusals.counts(),
        "verdicts": transactions.service.verdicts.by_rule(),
        "full_tiers": transactions.service.full_tiers,
        "requests": transactions.service.requests.by_operation(),
        "context_tokens": transactions.service.context_tokens,
        "loop": transactions.service.loop,
        "jobs": transactions.service.job_runs.measure(),
    }

    def render() -> HttpResponse:
        # The packages of metrics take a fifth of the start of a command, and few use them.
        from memorywall.service.requests.metrics import render_metrics

        return render_metrics(**measured)

    # In a thread, because the first import takes long.
    return await transactions.service.store.compute(render)
