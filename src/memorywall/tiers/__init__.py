"""The tiers: a table of their properties, how tenants narrow them, and the scopes of shared
state."""

from __future__ import annotations

from memorywall.tiers.narrowing import check_narrowing, configured_tier, narrow_tier
from memorywall.tiers.table import (
    NAMESPACE_TIERS,
    TASK_TIERS,
    TIERS,
    TIERS_WITH_AGENT_LIMITS,
    VERSIONED_TIERS,
)

__all__ = [
    "NAMESPACE_TIERS",
    "TASK_TIERS",
    "TIERS",
    "TIERS_WITH_AGENT_LIMITS",
    "VERSIONED_TIERS",
    "check_narrowing",
    "configured_tier",
    "narrow_tier",
]
