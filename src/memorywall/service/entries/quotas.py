"""Quotas of tenants: the most entries and bytes of all tiers together (RFC-0015 section 9.4).

A tenant has at most two quotas: one of the operator and one of its own administrator, of which the
tighter one applies. They are rows beside the limits of tiers and are loaded with them, so that a
create of a tenant without a quota runs no statement for it.
"""

from __future__ import annotations

from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryCapacityError
from memorywall.records.quota import Quota, QuotaSource
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.record_table import TIER_LIMITS


async def store_quota(context: OperationContext, source: QuotaSource, quota: Quota) -> None:
    """Replaces the quota of a source. The caller drops the cached tiers after the commit."""
    stored = context.transaction.records(TIER_LIMITS)
    await stored.remove(source.value)
    if not quota.is_empty:
        await stored.insert(quota.to_limits(context.tenant, source))


async def check_quota(context: OperationContext, entry: Entry, old: Entry | None = None) -> None:
    """Refuses an entry that exceeds the quota of the tenant. A change that stores no more bytes is
    never refused.

    old: the version that `entry` replaces, None for a new entry
    Raises MemoryCapacityError.
    """
    if not entry.listed:
        return
    if old is not None and not old.listed:
        old = None
    growth = entry.size - (0 if old is None else old.size)
    if old is not None and growth <= 0:
        return
    quota = (await context.load_tiers()).quota
    if quota is None:
        return
    usage = await context.transaction.entries.tenant_usage(context.now)
    refusal = None
    if old is None and quota.entries is not None and usage.entries >= quota.entries:
        refusal = f"this tenant has its quota of {quota.entries:,} entries; delete entries"
    elif quota.bytes is not None and usage.bytes + growth > quota.bytes:
        refusal = (
            f"this tenant's values would exceed its quota of {quota.bytes:,} bytes,"
            f" they have {usage.bytes:,}; delete entries"
        )
    if refusal is not None:
        raise MemoryCapacityError(refusal, current_count=usage.entries, max_capacity=quota.entries)
