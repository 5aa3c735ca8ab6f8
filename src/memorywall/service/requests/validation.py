"""Validation of fields, and expiry. Pure functions; messages never repeat a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memorywall.records.clock import (
    after,
    check_duration,
    check_instant,
    format_instant,
    iso_duration,
)
from memorywall.records.entry import VALUE_LIMIT, Scope
from memorywall.records.errors import ValidationError, ValueTooLargeError
from memorywall.records.group import GROUP_PREFIX, is_group
from memorywall.records.identifiers import (
    LONGEST_AGENT,
    LONGEST_KEY,
    LONGEST_NAME,
    LONGEST_TAG,
    MOST_TAGS,
    clean_name,
)
from memorywall.wire.operation import ATTACH

TASK_LIFETIME = "task_lifetime"
DURATION = "duration:"


def check_name(
    field: str,
    text: str,
    *,
    longest: int = LONGEST_NAME,
    without: str = "",
    is_new: bool = True,
) -> str:
    """A valid name in NFC, the form in which new names are stored. Raises ValidationError, which
    names the field.

    longest: characters
    without: characters that the name must not contain
    is_new: False for a name that may be stored already; see `clean_name`; default: true
    """
    name = clean_name(text, longest, is_new=is_new)
    if name is None:
        raise ValidationError(
            f"`{field}` must have 1 to {longest} printable characters and no space at either end;"
            " control, invisible and bidirectional characters are not allowed"
        )
    for character in without:
        if character in name:
            raise ValidationError(f"`{field}` must not contain any of: {' '.join(without)}")
    return name


def check_agent(field: str, agent: str, *, is_new: bool = True) -> str:
    """A valid id of an agent, user or service: a name that can be one segment of a path and names
    no group.

    is_new: see `check_name`
    """
    if is_group(agent):
        raise ValidationError(f"`{field}` must be a principal: only groups begin with `group:`")
    return check_name(field, agent, longest=LONGEST_AGENT, without="/", is_new=is_new)


def check_group(field: str, group: str) -> str:
    """A valid name of a group: a name that can be one segment of a path, without the prefix."""
    return check_agent(field, group)


def check_grantee(field: str, grantee: str) -> str:
    """A valid grantee of a grant or an access list: a principal, or `group:` and a group."""
    if is_group(grantee):
        return GROUP_PREFIX + check_group(field, grantee.removeprefix(GROUP_PREFIX))
    return check_agent(field, grantee)


def check_namespace(namespace: str) -> str:
    """A valid namespace; `*` is reserved for prefixes in queries."""
    return check_name("namespace", namespace, without="*")


def check_key(key: str) -> str:
    """A valid key of an entry."""
    return check_name("key", key, longest=LONGEST_KEY)


def check_content(field: str, content: str | Sequence[Mapping[str, Any]]) -> None:
    """Raises ValidationError, which names the field, unless the content of a message is a text or a
    list of content parts: objects with a `type`, those of the type `text` with a `text`."""
    if isinstance(content, str):
        return
    for place, part in enumerate(content):
        if not isinstance(part.get("type"), str):
            raise ValidationError(f"`{field}[{place}].type` must be a string such as `text`")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise ValidationError(f"`{field}[{place}].text` must be a string")


def check_tags(tags: Iterable[str], field: str = "tags", *, is_new: bool = True) -> tuple[str, ...]:
    """Valid tags without duplicates, in the given order; a comma separates tags in queries.

    is_new: see `check_name`
    """
    unique = tuple(
        dict.fromkeys(
            check_name(field, tag, longest=LONGEST_TAG, without=",", is_new=is_new) for tag in tags
        )
    )
    if len(unique) > MOST_TAGS:
        raise ValidationError(f"`{field}` has {len(unique)} tags, at most {MOST_TAGS} are allowed")
    return unique


def check_scope(scope: Scope) -> Scope:
    """A scope with valid ids."""
    named = {
        field: check_name(f"scope.{field}", name)
        for field in scope.__struct_fields__
        if (name := getattr(scope, field)) is not None
    }
    return Scope(**named)


def encode_value(value: dict[str, Any], field: str = "value") -> bytes:
    """A value as compact JSON text in UTF-8, the stored form (RFC-0015 section 1.3).

    field: the name of what makes the value large, for messages

    Raises ValueTooLargeError with a hint at attachments, ValidationError for a number that JSON
    cannot represent safely.
    """
    try:
        text = msgspec.json.encode(value)
    except (OverflowError, msgspec.EncodeError, RecursionError) as error:
        raise ValidationError(
            f"`{field}` contains a number or a nesting that cannot be stored"
        ) from error
    if len(text) > VALUE_LIMIT:
        hint = ATTACH if field == "value" else "shorten or split it"
        raise ValueTooLargeError(
            f"`{field}` has {len(text)} bytes, at most {VALUE_LIMIT} are allowed; {hint}"
        )
    return text


def stored_lifetime(ttl: str | None) -> str | None:
    """A `ttl` in its stored form: `duration:` and an ISO 8601 duration in place of a duration as
    people write it, such as `30m`. Any other text, also an invalid one, is unchanged."""
    if ttl is None or ttl == TASK_LIFETIME:
        return ttl
    length = iso_duration(ttl.removeprefix(DURATION))
    return DURATION + length if length.startswith("P") else ttl


def expiry(ttl: str | None, expires_at: str | None, now: int) -> str | None:
    """The instant of expiry in the stored form, None for none (RFC-0015 section 1.1).

    `expires_at` wins over `ttl`.

    ttl: in the form of `stored_lifetime`
    expires_at: an RFC 3339 instant with an offset, None for none
    now: milliseconds since the epoch
    """
    if ttl is not None and ttl != TASK_LIFETIME and not ttl.startswith(DURATION):
        raise ValidationError(
            "`ttl` must be a duration such as `60s`, `30m`, `90d` or `duration:PT60S`,"
            " `task_lifetime`, or null"
        )
    from_ttl = None
    if ttl is not None and ttl.startswith(DURATION):
        from_ttl = after(now, check_duration("ttl", ttl, prefix=DURATION))
    if expires_at is None:
        return from_ttl
    instant = check_instant("expires_at", expires_at)
    if instant <= format_instant(now):
        raise ValidationError("`expires_at` is in the past; delete the entry instead")
    return instant
