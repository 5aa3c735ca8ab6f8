"""The quota of a tenant (RFC-0015 section 9.4)."""

from __future__ import annotations

from memorywall.operations.binding import operation, tenant_setting
from memorywall.records.decision import Verb
from memorywall.records.errors import ValidationError
from memorywall.records.quota import Quota, QuotaSource
from memorywall.service.access.targets import owner_target
from memorywall.service.entries.quotas import store_quota
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.service.requests.tenant_tiers import TenantTiers, read_tenant_tiers
from memorywall.wire.quotas import QuotaResponse


@operation("get_quota")
async def get_quota(context: OperationContext, call: OperationCall) -> QuotaResponse:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, context.principal.id))
    return await _view(context)


@tenant_setting("set_quota")
async def set_quota(context: OperationContext, call: OperationCall) -> QuotaResponse:
    """Replaces the quota that the tenant sets for itself. Raises ValidationError."""
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, context.principal.id))
    most = _most(await read_tenant_tiers(context.transaction, context.service.settings))
    quota = Quota(entries=call.body.entries, bytes=call.body.bytes)
    for name in ("entries", "bytes"):
        asked, limit = getattr(quota, name), getattr(most, name)
        if asked is not None and limit is not None and asked > limit:
            raise ValidationError(
                f"`{name}` may only be lowered: the operator's quota is {limit:,} {name}"
            )
    await store_quota(context, QuotaSource.TENANT, quota)
    return await _view(context)


def _most(tiers: TenantTiers) -> Quota:
    return tiers.quotas.get(QuotaSource.OPERATOR) or Quota()


async def _view(context: OperationContext) -> QuotaResponse:
    tiers = await read_tenant_tiers(context.transaction, context.service.settings)
    quota, most = tiers.quota or Quota(), _most(tiers)
    usage = await context.transaction.entries.tenant_usage(context.now)
    return QuotaResponse(
        entries=quota.entries,
        bytes=quota.bytes,
        most_entries=most.entries,
        most_bytes=most.bytes,
        used_entries=usage.entries,
        used_bytes=usage.bytes,
    )
