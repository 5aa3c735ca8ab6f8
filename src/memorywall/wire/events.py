"""Events of agents, and the changes of memory."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.event import Event, EventType
from memorywall.records.tier import Tier
from memorywall.wire.operation import UserOfRequest


class EventData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a lifecycle event of an entry (RFC-0015 section 5.2).

    status, previous_status, closed_reason: of a session, after and before the change; a reason that
        a client wrote itself is `request`
    state, previous_state: of an entry, if the change is one of its state
    decision, candidate, result, rule, score, parts: of a decision about a promotion, see
        `kinds.promotions`
    """

    entry_id: str
    namespace: str
    key: str
    memory_type: Tier
    version: int
    previous_version: int | None = None
    tags: tuple[str, ...]
    kind: str | None = None
    status: str | None = None
    previous_status: str | None = None
    closed_reason: str | None = None
    state: str | None = None
    previous_state: str | None = None
    decision: str | None = None
    candidate: str | None = None
    result: str | None = None
    rule: str | None = None
    score: float | None = None
    parts: Any = None


class EventResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event with the field names of RFC-0015 section 5.2 and of RFC-0001: `event_type`,
    `payload` and `created_at` repeat `type`, `data` and `timestamp`.

    data: `EventData` for an event about one entry, an object of the event type otherwise
    """

    id: str
    seq: int
    type: str
    event_type: str
    agent_id: str
    actor: str
    intent_id: str | None = None
    task_id: str | None = None
    trace_id: str | None = None
    parent_event_id: str | None = None
    data: Any
    payload: Any
    timestamp: str
    created_at: str


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """The trace that a client event belongs to (RFC-0020), as given by the client."""

    trace_id: Any = None
    parent_event_id: Any = None


_NO_TRACES = Traces()

_event = copier(
    Event,
    EventResponse,
    given=("trace_id", "parent_event_id", "data", "payload"),
    id=lambda event: f"evt_{event.seq}",
    event_type="type",
    created_at="timestamp",
)


def event_view(event: Event, *, with_values: bool = False) -> EventResponse:
    """The wire form of an event.

    with_values: whether an archive shows its values. The log of an intent shows them; an agent's
        own stream shows only the number of archived entries. Default: false.
    """
    data: EventData | msgspec.Raw
    traces = _NO_TRACES
    if event.tier is not None:
        data = EventData(
            entry_id=event.entry_id,
            namespace=event.namespace,
            key=event.key,
            memory_type=event.tier,
            version=event.version,
            previous_version=event.previous_version,
            tags=event.tags,
            kind=event.kind,
            **({} if event.data is None else msgspec.json.decode(event.data)),
        )
    else:
        text = event.data or b"{}"
        if b"trace_id" in text or b"parent_event_id" in text:
            traces = msgspec.json.decode(text, type=Traces)
        if event.type == EventType.ARCHIVED and not with_values:
            text = _without_snapshot(text)
        data = msgspec.Raw(text)
    return _event(
        event,
        trace_id=traces.trace_id,
        parent_event_id=traces.parent_event_id,
        data=data,
        payload=data,
    )


def _without_snapshot(data: bytes) -> bytes:
    archived = msgspec.json.decode(data).get("entries_archived", 0)
    return msgspec.json.encode({"entries_archived": archived})


class EventPageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order. `next` is the value of `after` for the next page."""

    events: list[EventResponse]
    next: int


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a stream.

    after: the `seq` of the last event that the client has
    entry_id: only events about this entry; a page may then have fewer events than `limit`, and the
        stream ends where `next` is `after`
    """

    after: Annotated[int, Meta(ge=0, le=2**62)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    entry_id: Annotated[str | None, Meta(description="Only events about this entry.")] = None


LONGEST_WAIT = 20
"""Seconds; below the timeouts of clients and proxies, which are 30 seconds and more."""


class ChangeQuery(UserOfRequest, frozen=True, kw_only=True):
    """The changes to deliver. An event must meet every given condition."""

    after: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=2**62,
                description="The `next` of the last page, or the `seq` of the last event; 0 for the"
                " whole log. Default: the present; the page is then empty, and its `next` is the"
                " position to follow from.",
            ),
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    wait: Annotated[
        int,
        Meta(ge=0, le=LONGEST_WAIT,
             description="Seconds to wait for a change if there is none yet (long poll)."),
    ] = 0  # fmt: skip
    namespace: Annotated[
        str | None, Meta(description="A namespace, or a prefix followed by `*`.")
    ] = None
    scope: Annotated[
        str | None,
        Meta(description="A scope of shared state: `global`, `agent`, or `team:` and a team."),
    ] = None
    key: Annotated[str | None, Meta(description="The exact key.")] = None
    memory_type: Tier | None = None
    kind: Annotated[
        str | None,
        Meta(description="The kind of the values; unlisted kinds are found by this filter only."),
    ] = None
    about: Annotated[str | None, Meta(description="Only entries about this person.")] = None
    task_id: Annotated[str | None, Meta(description="The task that the entry is bound to.")] = (
        msgspec.field(default=None, name="scope.task_id")
    )
    intent_id: Annotated[str | None, Meta(description="The intent that the entry is bound to.")] = (
        msgspec.field(default=None, name="scope.intent_id")
    )


class ChangePageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Changes in order.

    next: the value of `after` for the next page; it grows also where no event was delivered
    more: whether the log has further events that were not examined
    """

    events: list[EventResponse]
    next: int
    more: bool
