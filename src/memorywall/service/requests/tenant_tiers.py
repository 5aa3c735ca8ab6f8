"""The tiers as they are in a tenant: table, settings and what the tenant has narrowed.

This is the only place where the three are put together. What is enforced and what `list_tiers`
shows comes from here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from memorywall.records.quota import Quota, QuotaSource, tightest_quota
from memorywall.records.tier import Tier, TierLimits, TierSpec
from memorywall.records.worthiness import WorthinessMode
from memorywall.settings import Settings
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_table import TIER_LIMITS
from memorywall.tiers import configured_tier, narrow_tier

WORTHINESS: Final = "worthiness"
"""The name in `TierLimits` of the row whose capacity is the place of a `WorthinessMode`: it is
loaded with the limits of tiers, so that a write runs no statement for it."""
_MODES = tuple(WorthinessMode)
_EVERY_TIER = frozenset(Tier)
_SECONDS_KNOWN = 1.0
"""For how long this process takes the limits of a tenant to be as they were. It learns of its own
changes at once, and of those of other processes after this time."""


@dataclass(frozen=True)
class TenantTiers:
    """The tiers of one tenant.

    configured: the tiers as the settings make them
    effective: the same as the tenant has narrowed them
    limits: how the tenant narrows them; without the tiers that it does not narrow
    quotas: the quotas of the tenant, by their origin
    worthiness: what the tenant does with texts that are not worth keeping
    own_worthiness: the same if the tenant has set it; None for what the settings say
    """

    configured: dict[Tier, TierSpec]
    effective: dict[Tier, TierSpec]
    limits: dict[Tier, TierLimits]
    quotas: dict[QuotaSource, Quota]
    worthiness: WorthinessMode = WorthinessMode.MARK
    own_worthiness: WorthinessMode | None = None

    @cached_property
    def quota(self) -> Quota | None:
        """The quota that applies, None for no quota."""
        return tightest_quota(self.quotas.values()) if self.quotas else None

    @cached_property
    def tracked(self) -> frozenset[Tier]:
        """The tiers whose eviction depends on last accesses."""
        return frozenset(
            tier for tier, spec in self.effective.items() if spec.eviction.reads_accesses
        )

    def with_capacity(self, tier: Tier, capacity: int | None) -> TierSpec:
        """The effective tier with another capacity in the place of the configured one; the tenant
        narrows it too. None for the configured capacity."""
        if capacity is None:
            return self.effective[tier]
        return narrow_tier(replace(self.configured[tier], capacity=capacity), self.limits.get(tier))


class TenantTierCache:
    """Keeps the tiers of tenants for a second, so that a create runs no statement for them.

    clock: seconds, which only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, TenantTiers]] = {}

    async def load(self, transaction: Transaction, settings: Settings) -> TenantTiers:
        """The tiers of the tenant that the transaction is bound to."""
        tenant = transaction.tenant
        known = self._known.get(tenant)
        if known is not None and known[0] > self._clock():
            return known[1]
        tiers = await read_tenant_tiers(transaction, settings)
        # A snapshot may be older than the last change; a transaction that writes is not.
        if transaction.digest_keys is not None:
            self._known[tenant] = (self._clock() + _SECONDS_KNOWN, tiers)
        return tiers

    def forget(self, tenant: str) -> None:
        """Drops what is known of a tenant, because it has changed."""
        self._known.pop(tenant, None)

    def tracked(self, tenant: str) -> Set[Tier]:
        """The tiers in which the last access may decide about an eviction, by the limits of the
        tenant that were loaded last; all tiers if none were."""
        known = self._known.get(tenant)
        return _EVERY_TIER if known is None else known[1].tracked


async def store_worthiness(transaction: Transaction, mode: WorthinessMode | None) -> None:
    """Replaces what the tenant does with texts that are not worth keeping; None for what the
    settings say. The caller drops the cached tiers after the commit."""
    stored = transaction.records(TIER_LIMITS)
    await stored.remove(WORTHINESS)
    if mode is not None:
        place = _MODES.index(mode)
        await stored.insert(TierLimits(tenant=transaction.tenant, tier=WORTHINESS, capacity=place))


async def read_tenant_tiers(transaction: Transaction, settings: Settings) -> TenantTiers:
    """The tiers of the tenant that the transaction is bound to, as they are stored."""
    stored = {one.tier: one for one in await transaction.records(TIER_LIMITS).page()}
    limits = {tier: stored[tier.value] for tier in Tier if tier.value in stored}
    configured = {tier: configured_tier(tier, settings) for tier in Tier}
    own = None if WORTHINESS not in stored else _MODES[stored[WORTHINESS].capacity or 0]
    return TenantTiers(
        configured=configured,
        effective={tier: narrow_tier(spec, limits.get(tier)) for tier, spec in configured.items()},
        limits=limits,
        quotas={one: Quota.of(stored[one.value]) for one in QuotaSource if one.value in stored},
        worthiness=own or WorthinessMode(settings.worthiness),
        own_worthiness=own,
    )
