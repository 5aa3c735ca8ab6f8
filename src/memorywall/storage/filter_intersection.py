"""What a filter leaves of a reach, whatever looks for it then."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier


def intersect_filter(wanted: EntryFilter, visibility: VisibilityFilter) -> VisibilityFilter:
    """The reach, as far as the filter leaves anything of it."""
    working = not wanted.tiers or Tier.WORKING in wanted.tiers
    episodic = not wanted.tiers or Tier.EPISODIC in wanted.tiers
    return replace(
        visibility,
        # Behind an agent's wall the owner is the agent.
        owners=_only(wanted.agent_id, visibility.owners),
        tasks=_only(wanted.task_id, visibility.tasks) if working else (),
        intents=_only(wanted.intent_id, visibility.intents) if working else (),
        coordinated=_only(wanted.intent_id, visibility.coordinated) if working else (),
        episodic=_only(wanted.agent_id, visibility.episodic) if episodic else (),
    )


def within_subjects(wanted: EntryFilter, visibility: VisibilityFilter) -> EntryFilter:
    """The filter, with the subjects that the request is bound to as a condition of it."""
    return (
        wanted if visibility.subjects is None else replace(wanted, only_about=visibility.subjects)
    )


def _only(wanted: str | None, reached: tuple[str, ...]) -> tuple[str, ...]:
    if wanted is None:
        return reached
    return (wanted,) if wanted in reached else ()
