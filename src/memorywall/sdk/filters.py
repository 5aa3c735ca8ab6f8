"""The conditions of a query, as keyword arguments and as query parameters (RFC-0015 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict

from memorywall.records.tier import Tier

MemoryType: TypeAlias = (
    Tier | Literal["working", "session", "episodic", "semantic", "procedural", "shared"]
)
SHARED_TYPES = frozenset({Tier.SEMANTIC, Tier.PROCEDURAL, Tier.SHARED})


class FilterArguments(TypedDict, total=False):
    """What to look for; every condition given must hold.

    agent_id: the owning agent; the client's own where this is left out, `task_id` is too, and
        `memory_type` is a tier that belongs to agents
    namespace: matched whole, or at its beginning when it ends in `*`
    tags: all of them; tags_any: at least one of them
    kind, status: what the value means; kinds that are not listed only show where named
    state: what the server holds of it, `live` where this is left out
    subject: a person it is about
    origin, source: where the memory came from
    updated_after, updated_before: RFC 3339 text or a datetime with a time zone
    """

    agent_id: str | None
    namespace: str | None
    key: str | None
    memory_type: MemoryType | None
    tags: Sequence[str] | str | None
    tags_any: Sequence[str] | str | None
    task_id: str | None
    intent_id: str | None
    session_id: str | None
    kind: str | None
    status: str | None
    state: str | None
    subject: str | None
    origin: str | None
    source: str | None
    pinned: bool | None
    updated_after: datetime | str | None
    updated_before: datetime | str | None


_NAMES = {
    "task_id": "scope.task_id",
    "intent_id": "scope.intent_id",
    "session_id": "scope.session_id",
}


def needs_agent(wanted: Mapping[str, Any]) -> bool:
    """Whether a filter asks for agents' memory without saying whose."""
    return (
        wanted.get("agent_id") is None
        and wanted.get("task_id") is None
        and wanted.get("memory_type") is not None
        and wanted["memory_type"] not in SHARED_TYPES
    )


def parameters(wanted: Mapping[str, Any]) -> dict[str, str]:
    """A filter as query parameters. Raises TypeError for a condition that does not exist."""
    for name in wanted:
        if name not in FilterArguments.__annotations__:
            raise TypeError(f"there is no condition {name!r}; see memorywall.sdk.filters.Filter")
    return {
        _NAMES.get(name, name): _text(condition)
        for name, condition in wanted.items()
        if condition is not None
    }


def without_absent(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given."""
    return {name: given for name, given in fields.items() if given is not None}


def tag_list(tags: Sequence[str] | str) -> list[str]:
    """Tags as a list; a single one may be given as it is."""
    return [tags] if isinstance(tags, str) else list(tags)


def instant(moment: datetime | str) -> str:
    """A moment as text; the server refuses one without a time zone."""
    return moment.isoformat() if isinstance(moment, datetime) else moment


def _text(condition: Any) -> str:
    if isinstance(condition, bool):
        return "true" if condition else "false"
    if isinstance(condition, datetime):
        return instant(condition)
    return condition if isinstance(condition, str) else ",".join(condition)
