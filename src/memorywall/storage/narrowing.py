"""What a filter leaves of a reach, whatever looks for it then."""

from __future__ import annotations

from dataclasses import replace

from memorywall.records.decision import Reach
from memorywall.records.filter import Filter
from memorywall.records.tier import Tier


def narrowed(wanted: Filter, reach: Reach) -> Reach:
    """The reach, as far as the filter leaves anything of it."""
    working = not wanted.tiers or Tier.WORKING in wanted.tiers
    episodic = not wanted.tiers or Tier.EPISODIC in wanted.tiers
    return replace(
        reach,
        # Behind an agent's wall the owner is the agent.
        owners=_only(wanted.agent_id, reach.owners),
        tasks=_only(wanted.task_id, reach.tasks) if working else (),
        intents=_only(wanted.intent_id, reach.intents) if working else (),
        coordinated=_only(wanted.intent_id, reach.coordinated) if working else (),
        episodic=_only(wanted.agent_id, reach.episodic) if episodic else (),
    )


def _only(wanted: str | None, reached: tuple[str, ...]) -> tuple[str, ...]:
    if wanted is None:
        return reached
    return (wanted,) if wanted in reached else ()
