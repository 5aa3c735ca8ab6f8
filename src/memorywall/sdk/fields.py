"""The fields of a written entry, from the caller's form to the wire's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from msgspec import UNSET, UnsetType

from memorywall.records.clock import iso_duration
from memorywall.records.entry import Origin, Priority, Scope, Sensitivity
from memorywall.records.errors import ValidationError
from memorywall.sdk.batch import Sources, source_list
from memorywall.sdk.filters import instant, tag_list, without_absent
from memorywall.sdk.indexing import WaitFor
from memorywall.sdk.values import checked_value

_TASK_LIFETIME = "task_lifetime"
_ON_THE_WIRE = "duration:"


class SharedOptions(TypedDict, total=False):
    """The fields of a shared entry besides its name, value and tier; see `client.memory.set`."""

    tags: Sequence[str] | str | None
    ttl: timedelta | str | int | UnsetType | None
    expires_at: datetime | str | UnsetType | None
    pinned: bool | None
    priority: Priority | None
    sensitivity: Sensitivity | None
    derived_from: Sources | None
    kind: str | None
    subjects: Sequence[str] | None
    origin: Origin | None
    source: str | None
    context_id: str | None
    fencing_token: int | None
    wait_for: WaitFor | None


class WriteOptions(SharedOptions, total=False):
    """The fields of an entry besides its name, value and tier; see `client.memory.set`."""

    scope: Scope | Mapping[str, str] | None


def entry_fields(value: Any, options: WriteOptions) -> dict[str, Any]:
    """Returns the members of a request that writes an entry, besides its name and tier.

    Raises ValidationError for a value that is no object.
    """
    given = dict(options)
    given.pop("fencing_token", None)
    given.pop("wait_for", None)
    tags, subjects = options.get("tags"), options.get("subjects")
    sources = options.get("derived_from")
    given["tags"] = None if tags is None else tag_list(tags)
    given["subjects"] = None if subjects is None else list(subjects)
    given["derived_from"] = None if sources is None else source_list(sources)
    ttl, expires_at = given.pop("ttl", UNSET), options.get("expires_at", UNSET)
    given.pop("expires_at", None)
    fields = {"value": checked_value(value), **without_absent(given)}
    if ttl is not UNSET:
        fields["ttl"] = lifetime(ttl)
    if expires_at is not UNSET:
        fields["expires_at"] = None if expires_at is None else instant(expires_at)
    return fields


def lifetime(ttl: Any, field: str = "ttl") -> Any:
    """Returns the lifetime of an entry in the form of the wire.

    ttl: see `duration`, or `task_lifetime`; the form of the wire is returned unchanged
    field: the name of the argument, for the error

    Raises ValidationError for any other text.
    """
    given = duration(ttl)
    if not isinstance(given, str) or given == _TASK_LIFETIME or given.startswith(_ON_THE_WIRE):
        return given
    if not given.startswith("P"):
        raise ValidationError(
            f"`{field}` must be a duration such as `60s`, `30m`, `12h`, `90d` or `PT60S`, a number"
            f" of seconds, or `{_TASK_LIFETIME}`"
        )
    return f"{_ON_THE_WIRE}{given}"


def duration(length: Any) -> Any:
    """Returns a length of time as an ISO 8601 duration.

    length: a timedelta, seconds as a number or a text, or a number with `s`, `m`, `h` or `d` such
        as "30m"; anything else is returned unchanged
    """
    if isinstance(length, timedelta):
        return f"PT{max(int(length.total_seconds()), 0)}S"
    if isinstance(length, int) and not isinstance(length, bool):
        return f"PT{length}S"
    return iso_duration(length) if isinstance(length, str) else length


def with_durations(fields: Any, *names: str) -> Any:
    """Returns fields of which these, if they are there, are ISO 8601 durations; anything but a
    mapping unchanged."""
    if not isinstance(fields, Mapping):
        return fields
    return {name: duration(value) if name in names else value for name, value in fields.items()}


def session_of(options: WriteOptions) -> str | None:
    """Returns the session that a write names, which is a part of the name of its entry."""
    scope = options.get("scope")
    if isinstance(scope, Scope):
        return scope.session_id
    return None if scope is None else scope.get("session_id")


def checked_text(text: Any) -> str:
    """Returns a text. Raises ValidationError for anything else, and for an empty text."""
    if not isinstance(text, str) or not text.strip():
        raise ValidationError("give a text to remember; `memory.put` stores objects")
    return text
