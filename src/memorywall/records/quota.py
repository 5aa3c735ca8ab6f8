"""The quota of a tenant: the most entries and bytes of all its tiers together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from memorywall.records.tier import TierLimits


class QuotaSource(StrEnum):
    """The source of a quota; its name takes the place of the tier in `TierLimits`.

    OPERATOR: the operator of the server, for a tenant
    TENANT: an administrator of the tenant; at most the quota of the operator
    """

    OPERATOR = "quota:operator"
    TENANT = "quota:tenant"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """The most that a tenant may store. None for no limit.

    entries: the number of entries that are not expired
    bytes: the bytes of the JSON texts of their values
    """

    entries: int | None = None
    bytes: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return self.entries is None and self.bytes is None

    @classmethod
    def of(cls, limits: TierLimits) -> Self:
        """The quota in a stored row."""
        return cls(entries=limits.capacity, bytes=limits.bytes)

    def to_limits(self, tenant: str, source: QuotaSource) -> TierLimits:
        """The row that stores the quota."""
        return TierLimits(tenant=tenant, tier=source.value, capacity=self.entries, bytes=self.bytes)


def tightest_quota(quotas: Iterable[Quota]) -> Quota:
    """The quota that applies if several are set."""
    given = tuple(quotas)
    return Quota(
        entries=min((one.entries for one in given if one.entries is not None), default=None),
        bytes=min((one.bytes for one in given if one.bytes is not None), default=None),
    )
