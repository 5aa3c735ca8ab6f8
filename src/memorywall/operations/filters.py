"""Converts query parameters to filters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse
from memorywall.kinds.registry import spec_of
from memorywall.records.clock import instant_to_milliseconds, parse_instant
from memorywall.records.errors import RequestError, ValidationError
from memorywall.records.filter import EntryFilter
from memorywall.records.validity import ANY_TIME, DATE, instant_of_field
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.validation import check_tags
from memorywall.wire.entries import Conditions, EntryQuery, ExportQuery

_CLOCK_DIFFERENCE = 60_000
"""The milliseconds by which the clock of a caller may be ahead."""


def filter_of(call: OperationCall, asked: Conditions, limit: int | None) -> EntryFilter:
    """Returns the filter of a query string, with names as the request gives them; see
    `stored_filter`. Raises RequestError, which names the parameter."""
    namespace, prefix = whole_or_prefix(asked.namespace)
    spec = spec_of(asked.kind)
    instants = () if spec is None else spec.instants
    return EntryFilter(
        tenant=call.principal.tenant,
        tiers=() if asked.memory_type is None else (asked.memory_type,),
        agent_id=asked.agent_id,
        namespace=namespace,
        namespace_prefix=prefix,
        key=asked.key,
        tags=_split("tags", asked.tags),
        tags_any=_split("tags_any", asked.tags_any),
        task_id=asked.task_id,
        intent_id=asked.intent_id,
        pinned=asked.pinned,
        key_prefix=asked.key_prefix,
        created_after=instant("created_after", asked.created_after),
        created_before=instant("created_before", asked.created_before),
        updated_after=instant("updated_after", asked.updated_after),
        updated_before=instant("updated_before", asked.updated_before),
        before=asked.before if isinstance(asked, ExportQuery) else None,
        limit=limit,
        offset=asked.offset if isinstance(asked, EntryQuery) else 0,
        session_id=asked.session_id,
        kind=asked.kind,
        statuses=() if asked.status is None else (asked.status,),
        state=asked.state or "live",
        about=() if asked.about is None else (asked.about,),
        origin=asked.origin,
        source=asked.source,
        where=None if asked.where is None else parse(asked.where, ENTRY_FIELDS, instants),
    )


def only_about_user(call: OperationCall, wanted: EntryFilter) -> EntryFilter:
    """Returns the filter of a deletion, an export or a count: of a request that names its people
    only what is about one of them, without the entries about nobody that it may read as well."""
    if call.subject is None or wanted.about:
        return wanted
    return replace(wanted, about=call.principal.subject_forms or ())


def whole_or_prefix(asked: str | None) -> tuple[str | None, str | None]:
    """Returns a namespace as a whole name, or as a prefix if it ends in `*`."""
    if asked is not None and asked.endswith("*"):
        return None, asked[:-1]
    return asked, None


def _split(name: str, text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        return check_tags(text.split(","), name, is_new=False)
    except ValidationError as error:
        raise RequestError(error.detail) from None


def past_instant(name: str, text: str | None, now: str) -> str | None:
    """Returns an instant of a parameter that is not after `now` in the stored form, because a read
    as of a later instant cannot be repeated. A clock of a caller may be ahead: an instant in the
    next minute counts as now. Raises RequestError."""
    found = instant(name, text)
    if found is None or found <= now:
        return found
    if instant_to_milliseconds(found) - instant_to_milliseconds(now) > _CLOCK_DIFFERENCE:
        raise RequestError(f"`{name}` must not be in the future")
    return now


def instant_in_body(name: str, text: str | None) -> str | None:
    """Returns the instant in a body's field in the stored form. Raises ValidationError."""
    with in_body():
        return instant(name, text)


@contextmanager
def in_body() -> Iterator[None]:
    """Raises ValidationError in place of RequestError, for fields of a body."""
    try:
        yield
    except RequestError as error:
        raise ValidationError(error.detail) from None


def instant_of_validity(name: str, text: str | None) -> str | None:
    """Returns the instant at which something must hold in the stored form, or `ANY_TIME`. A date
    stands for the end of that day in UTC. Raises RequestError."""
    if text is None or text == ANY_TIME:
        return text
    if DATE.fullmatch(text) is not None:
        text += "T23:59:59.999Z"
    try:
        return parse_instant(text)
    except ValueError:
        raise RequestError(
            f"`{name}` must be a date such as 2026-11-01, an RFC 3339 instant with an offset, or"
            f" `{ANY_TIME}`"
        ) from None


def instant(name: str, text: str | None) -> str | None:
    """Returns the instant in a parameter in the stored form. A date stands for its beginning in
    UTC. Raises RequestError."""
    if text is None:
        return None
    found = instant_of_field("", text)
    if found is None:
        raise RequestError(
            f"`{name}` must be a date such as 2026-11-01, or an RFC 3339 instant with an offset,"
            " such as 2026-11-01T00:00:00Z"
        )
    return found
