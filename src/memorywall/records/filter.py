"""What a caller looks for (RFC-0015 section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.records.tier import Tier

LARGEST_PAGE = 1_000
DEFAULT_PAGE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Every condition must hold; an empty one holds for all.

    namespace is matched whole, namespace_prefix at the beginning. `before` is an entry id: only
    entries made before that one, which is how a long listing goes on. `except_owner` leaves out
    what lies behind that agent's wall. limit None is no limit. How many match in all is worked out
    only when `counted`.
    """

    tenant: str
    tiers: tuple[Tier, ...] = ()
    agent_id: str | None = None
    namespace: str | None = None
    namespace_prefix: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    task_id: str | None = None
    intent_id: str | None = None
    pinned: bool | None = None
    updated_after: str | None = None
    updated_before: str | None = None
    before: str | None = None
    except_owner: str | None = None
    limit: int | None = DEFAULT_PAGE
    offset: int = 0
    counted: bool = True
