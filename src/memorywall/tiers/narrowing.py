"""The properties of a tier on a server and in a tenant: the settings replace its capacity, and the
tenant narrows it. Pure functions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from memorywall.records.clock import check_duration, parse_duration
from memorywall.records.errors import ValidationError
from memorywall.records.tier import Tier, TierLimits, TierSpec
from memorywall.settings import Settings
from memorywall.tiers.table import CAPACITY_SETTINGS, PROMOTED_TIERS, TIERS

_DURATION = "duration:"


def configured_tier(tier: Tier, settings: Settings) -> TierSpec:
    """The tier as the settings of the server make it."""
    spec, name = TIERS[tier], CAPACITY_SETTINGS.get(tier)
    return spec if name is None else replace(spec, capacity=getattr(settings, name))


def narrow_tier(spec: TierSpec, limits: TierLimits | None) -> TierSpec:
    """The tier as a tenant has narrowed it.

    The result is never wider than `spec`, also if the server has lowered a capacity since the
    tenant set its own.

    limits: None for a tier that the tenant has not narrowed
    """
    if limits is None:
        return spec
    capacities = [one for one in (spec.capacity, limits.capacity) if one is not None]
    lifetimes = [one for one in (spec.default_ttl, limits.default_ttl) if one is not None]
    return replace(
        spec,
        capacity=min(capacities, default=None),
        default_ttl=min(lifetimes, key=_length, default=None),
        eviction=spec.eviction if limits.eviction is None else limits.eviction,
        admission=spec.admission if limits.admission is None else limits.admission,
    )


def check_narrowing(spec: TierSpec, limits: TierLimits) -> None:
    """Raises ValidationError, which names the field, if a tenant would widen the tier.

    spec: the tier as configured
    """
    capacity, most = limits.capacity, spec.capacity
    if capacity is not None and most is not None and capacity > most:
        raise ValidationError(
            f"`capacity` may only be lowered: this tier holds {most:,} entries"
            f" per {spec.capacity_scope}"
        )
    if limits.admission is not None and spec.tier not in PROMOTED_TIERS:
        names = ", ".join(PROMOTED_TIERS)
        raise ValidationError(f"`admission` may be set for these tiers: {names}")
    if limits.default_ttl is None:
        return
    length = check_duration("default_ttl", limits.default_ttl, prefix=_DURATION)
    if spec.default_ttl is not None and length > _length(spec.default_ttl):
        raise ValidationError(
            f"`default_ttl` may only be shortened: that of this tier is {spec.default_ttl}"
        )


def _length(ttl: str) -> timedelta:
    """Returns the duration of a `ttl` of the form `duration:`. Raises ValueError."""
    return parse_duration(ttl.removeprefix(_DURATION))
