"""What is particular to each tier: one table of properties and a little code.

TIERS is the place where a tier's rules stand as data.
"""

from __future__ import annotations

from memorywall.records.tier import Isolation, Tier, TierSpec
from memorywall.tiers.episodic import EPISODIC
from memorywall.tiers.procedural import PROCEDURAL
from memorywall.tiers.semantic import SEMANTIC
from memorywall.tiers.session import SESSION
from memorywall.tiers.shared import SHARED
from memorywall.tiers.working import WORKING

TIERS: dict[Tier, TierSpec] = {
    spec.tier: spec for spec in (WORKING, SESSION, EPISODIC, SEMANTIC, PROCEDURAL, SHARED)
}

NAMESPACE_TIERS = tuple(tier for tier in Tier if TIERS[tier].isolation is Isolation.NAMESPACE)
"""The tiers that are walled by namespace; the others are walled by agent."""
