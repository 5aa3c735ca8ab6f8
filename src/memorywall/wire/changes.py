"""Requests and responses of following the changes of memory."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.tier import Tier
from memorywall.wire.agents import EventResponse

LONGEST_WAIT = 20
"""Seconds; below the timeouts of clients and proxies, which are 30 seconds and more."""


class ChangeQuery(msgspec.Struct, frozen=True, kw_only=True):
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
    subject: Annotated[str | None, Meta(description="Only entries about this person.")] = None
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
