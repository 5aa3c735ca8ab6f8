"""The conditions of a query, as keyword arguments and as query parameters (RFC-0015 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypeAlias, TypedDict

from memorywall.records.errors import ValidationError
from memorywall.records.tier import Tier

MemoryType: TypeAlias = (
    Tier | Literal["working", "session", "episodic", "semantic", "procedural", "shared"]
)
SHARED_TYPES = frozenset({Tier.SEMANTIC, Tier.PROCEDURAL, Tier.SHARED})


class FilterArguments(TypedDict, total=False):
    """The conditions of a query; all given conditions must hold.

    agent_id: the owning agent; default: the client's own agent if `task_id` is omitted, too, and
        `memory_type` is a tier that is isolated by agent
    namespace: a whole name, or a prefix that ends in `*`
    tags: all of them; tags_any: at least one of them
    kind, status: the kind and status of the value; entries of unlisted kinds appear only if named
    state: the state of the entry; default `live`
    about: a person that the entry is about
    user: the person that the request is bound to, as by `client.for_user`: it finds what is about
        the person and what is about nobody; `count`, `export` and `delete_matching` only what is
        about the person. Several people are separated by commas
    origin, source: the origin of the content
    key_prefix: the beginning of the key
    created_after, created_before, updated_after, updated_before: RFC 3339 text or a datetime with a
        time zone
    where: a condition on fields, such as `value.customer.tier = "gold"`
    as_of: only of `query`, `count` and `export`: RFC 3339 text or a datetime with a time zone, not
        in the future; entries of versioned tiers as they were at this instant
    schema_version: only of `query`: a major version of the schemas that the entries must fit
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
    about: str | None
    user: str | None
    origin: str | None
    source: str | None
    pinned: bool | None
    key_prefix: str | None
    created_after: datetime | str | None
    created_before: datetime | str | None
    updated_after: datetime | str | None
    updated_before: datetime | str | None
    where: str | None
    as_of: datetime | str | None
    schema_version: int | None


_NAMES = {
    "task_id": "scope.task_id",
    "intent_id": "scope.intent_id",
    "session_id": "scope.session_id",
}


def checked_name(field: str, name: Any) -> Any:
    """Returns a namespace or a key. Raises ValidationError for anything but a text; a sequence
    would be sent as another text and find nothing."""
    if not isinstance(name, str):
        raise ValidationError(f"`{field}` must be a text, such as 'users/ana', and no other type")
    return name


def needs_agent(wanted: Mapping[str, Any]) -> bool:
    """Returns whether a filter names a tier that is isolated by agent without an owner."""
    return (
        wanted.get("agent_id") is None
        and wanted.get("task_id") is None
        and wanted.get("memory_type") is not None
        and wanted["memory_type"] not in SHARED_TYPES
    )


def parameters(wanted: Mapping[str, Any]) -> dict[str, str]:
    """Returns a filter as query parameters."""
    for name in ("namespace", "key", "key_prefix"):
        if wanted.get(name) is not None:
            checked_name(name, wanted[name])
    return {
        _NAMES.get(name, name): _text(condition)
        for name, condition in wanted.items()
        if condition is not None
    }


def without_absent(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given fields."""
    return {name: given for name, given in fields.items() if given is not None}


def tag_list(tags: Iterable[str] | str) -> list[str]:
    """Returns tags as a list; a single tag needs no list."""
    return [tags] if isinstance(tags, str) else list(tags)


def instant(moment: datetime | date | str) -> str:
    """Returns an instant or a date as text; the server refuses an instant without a time zone."""
    return moment.isoformat() if isinstance(moment, date) else moment


def _text(condition: Any) -> str:
    if isinstance(condition, bool):
        return "true" if condition else "false"
    if isinstance(condition, datetime):
        return instant(condition)
    return str(condition) if isinstance(condition, str | int) else ",".join(condition)
