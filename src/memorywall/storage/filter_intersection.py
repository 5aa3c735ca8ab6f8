"""Combines a query's filter with the visibility filter."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.identifiers import is_same_name
from memorywall.records.tier import Tier


def intersect_filter(wanted: EntryFilter, visibility: VisibilityFilter) -> VisibilityFilter:
    """Returns the part of the visibility filter that matches the query's filter."""
    working = not wanted.tiers or Tier.WORKING in wanted.tiers
    session = not wanted.tiers or Tier.SESSION in wanted.tiers
    episodic = not wanted.tiers or Tier.EPISODIC in wanted.tiers
    return replace(
        visibility,
        # In tiers that are isolated by agent, the owner is the agent.
        owners=_only(wanted.agent_id, visibility.owners),
        tasks=_only(wanted.task_id, visibility.tasks) if working else (),
        intents=_only(wanted.intent_id, visibility.intents) if working else (),
        coordinated=_only(wanted.intent_id, visibility.coordinated) if working else (),
        episodic=_only(wanted.agent_id, visibility.episodic) if episodic else (),
        by_group=tuple(
            (namespace, owner)
            for namespace, owner in visibility.by_group
            if episodic and (wanted.agent_id is None or is_same_name(wanted.agent_id, owner))
        ),
        session_owners=_only(wanted.agent_id, visibility.session_owners) if session else (),
    )


def within_limits(wanted: EntryFilter, visibility: VisibilityFilter) -> EntryFilter:
    """Returns the filter with the request's subjects, its session, and the namespaces that its key
    is limited to, as conditions."""
    if visibility.subjects is None and visibility.limited_to is None and visibility.session is None:
        return wanted
    return replace(
        wanted,
        only_about=visibility.subjects,
        only_in=visibility.limited_to,
        only_session=visibility.session,
    )


def _only(wanted: str | None, reached: tuple[str, ...]) -> tuple[str, ...]:
    if wanted is None:
        return reached
    return tuple(one for one in reached if is_same_name(wanted, one))
