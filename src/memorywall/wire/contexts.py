"""Compiled contexts: requests, responses, operations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.kinds.sessions import SummaryQuality
from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.feature_errors import (
    ContextBudgetError,
    SessionClosedError,
    SessionQuarantinedError,
)
from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

GroupName = Literal["system", "semantic", "episodic", "session", "procedural", "working"]
StrategyName = Literal["recency", "importance", "compaction", "hierarchical"]
FormatName = Literal["segments", "openai", "responses", "anthropic", "text"]
ShownFormat = Annotated[
    FormatName,
    Meta(description="segments, openai, responses, anthropic or text; default: segments."),
]
PartsShown = Literal["reference", "whole"]
CounterName = Literal["estimate", "o200k_base", "cl100k_base"]
ContextOutcome = Literal["success", "failure", "corrected"]
Window = Annotated[int, Meta(ge=1, le=10_000_000)]
Budget = Annotated[float, Meta(gt=0, le=10_000_000)]


class ContextRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requirements of the next call of a model.

    session_id: the session whose turns and summary the context contains; default: that of the
        request, none without one
    task_id: the task whose shared state the context contains; None for none
    shared: a scope of shared state, `global`, `agent` or `team:` and a team, whose live claims and
        entries the context contains; None for none
    query: what memories are searched for; default: the text of `user`, or of the newest turn
    model: the name of a model whose window is known; default: none
    window: the tokens of the model for prompt and output; default: those of `model`, or 128,000
    reserve: the tokens for the output; default: those of `model`, or 12.8 % of the window
    budgets: tokens from 1 on, or a share of the window below 1, by group of segments
    strategy: which turns are taken
    format: `segments`, messages of `openai` (chat completions) or `anthropic`, items of OpenAI's
        `responses`, or plain `text`
    counter: `estimate`, or a vocabulary with the extra `memorywall[tokens]`
    system: the system text
    tools: functions, as OpenAI, Anthropic or the Model Context Protocol describe them, and other
        tools as their provider defines them
    user: the message of the user, text or content parts; None when the newest turn is this message
    memories: the most memories of each tier that are searched for
    revalidated: whether items are still right, by id, as the caller has checked since: one that is
        is shown without the marks `source_changed` and `stale`, and one that is not is left out
    store: whether the context can be shown again and judged, which needs `memory.write`
    parts: what is shown of a turn's parts that are in attachments: a `reference` with the beginning
        of the text, or the `whole` part as it was sent
    """

    session_id: str | None = None
    task_id: str | None = None
    shared: str | None = None
    query: Annotated[
        str | None, Meta(description="The query for memories; default: the message.")
    ] = None
    model: str | None = None
    window: Window | None = None
    reserve: Annotated[int, Meta(ge=0)] | None = None
    budgets: dict[GroupName, Budget] = {}
    strategy: StrategyName = "hierarchical"
    format: FormatName = "segments"
    counter: CounterName = "estimate"
    system: str = ""
    tools: Annotated[tuple[dict[str, Any], ...], Meta(max_length=10_000)] = ()
    user: str | list[dict[str, Any]] | None = None
    memories: Annotated[int, Meta(ge=0, le=50)] = 12
    revalidated: Annotated[
        dict[str, bool],
        Meta(max_length=1_000, description="Whether each item is still correct, by its id."),
    ] = {}
    store: bool = True
    parts: PartsShown = "reference"


class ContextQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The format of a stored context."""

    format: ShownFormat = "segments"


class ContextItemResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item of a context.

    id, version: those of the entry, or a name such as `request.user`
    tokens: with everything that surrounds the text
    reason: why it is in the context
    provenance: where it comes from
    digest: of the item as the context contains it
    marks: `untrusted` for content of documents and tools, `source_changed` if a source that it was
        derived from changed since, `contradicted` if memory with more authority says something
        else, `stale` for a turn whose time is over
    contradicted_by: the ids of that memory
    content: the text or the content parts, in the format `segments` and for items that are
        `source_changed` or `stale`
    quality: of a summary: how much of what it must keep its whole text has
    """

    id: str
    version: int
    tokens: int
    reason: str
    provenance: str
    digest: str
    marks: list[str] = []
    contradicted_by: tuple[str, ...] = ()
    content: str | list[dict[str, Any]] | None = None
    quality: SummaryQuality | UnsetType = UNSET


class SegmentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of a context, with its budget after the unused tokens were given away."""

    name: str
    budget: int
    tokens: int
    items: list[ContextItemResponse]


class DroppedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that the context does not contain, with the reason."""

    id: str
    segment: str
    tokens: int
    reason: str


class ContextResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A context.

    id: the id of the stored context; None if it was not stored
    tokens: of the whole context, at most the window without the reserve
    dropped: the first 1,000 items that were left out
    turns_omitted: the oldest turns of the session that were not considered
    lessons: ids of the lessons that changed the order of the memories
    messages: in the formats `openai` and `anthropic`; the items in the format `responses`
    system: the system blocks of `anthropic`
    tools: the tools that are in the context in whole; in the formats of providers,
        functions have the form of the provider
    text: in the format `text`
    changed: ids of items of a stored context whose version is not kept any more
    erased: ids of items of a stored context that were deleted, are not live, or may not be
        read any more
    """

    id: str | None
    window: int
    reserve: int
    tokens: int
    strategy: str
    segments: list[SegmentResponse]
    dropped: list[DroppedItem] = []
    turns_omitted: int = 0
    lessons: list[str] = []
    messages: list[dict[str, Any]] | None = None
    system: list[dict[str, Any]] | None = None
    tools: list[Any] = []
    text: str | None = None
    changed: list[str] = []
    erased: list[str] = []


class ContextOutcomeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The feedback on a context.

    used: the ids of the items that the answer used; only they count as used
    outcome: success, failure, or corrected by the user
    correction: the right answer
    """

    used: Annotated[tuple[str, ...], Meta(max_length=1_000)] = ()
    outcome: Annotated[
        ContextOutcome, Meta(description="Whether the answer was right; corrected by the user.")
    ]
    correction: Annotated[str, Meta(max_length=10_000)] | None = None


class ContextOutcomeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The feedback as it was recorded.

    counted: the ids of the entries that now count as used
    """

    id: str
    outcome: ContextOutcome
    counted: list[str]


_CONTEXT = OperationGroup(name="Context", source="memory wall 11.2.2")

CONTEXT_OPERATIONS: tuple[Operation, ...] = (
    # A stored context needs `memory.write` as well; the function checks it.
    _CONTEXT(
        "create_context",
        "POST /context",
        "Compile the context for the next call of a model, within its window.",
        permission=Permission.READ,
        body=ContextRequest,
        reply=ContextResponse,
        shrink="send fewer `tools`, or a shorter `system` or `user`",
        raises=(
            ResourceNotFoundError,
            ContextBudgetError,
            SessionClosedError,
            SessionQuarantinedError,
        ),
    ),
    _CONTEXT(
        "get_context",
        "GET /context/{context_id}",
        "Show a compiled context again, with the items that were erased or changed since.",
        query=ContextQuery,
        reply=ContextResponse,
    ),
    _CONTEXT(
        "add_context_outcome",
        "POST /context/{context_id}/outcome",
        "Record which items of a context an answer used, and the outcome.",
        body=ContextOutcomeRequest,
        reply=ContextOutcomeResponse,
    ),
)
