"""The tiers: a table of their properties, and the scopes of shared state."""

from __future__ import annotations

from memorywall.tiers.table import NAMESPACE_TIERS, TIERS, VERSIONED_TIERS

__all__ = ["NAMESPACE_TIERS", "TIERS", "VERSIONED_TIERS"]
