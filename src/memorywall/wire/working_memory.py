"""Requests, responses and operations of the working memory of a task."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.kinds.working_memory import ItemChange, ScratchReference, WorkingPolicy
from memorywall.records.entry import Sensitivity
from memorywall.records.errors import (
    MemoryCapacityError,
    MemorywallError,
    ResourceNotFoundError,
    TransitionError,
)
from memorywall.records.feature_errors import DecompositionRequiredError
from memorywall.records.filter import LARGEST_PAGE
from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation

_PATH = "/api/v1/tasks/{task_id}/working"
_ITEM = _PATH + "/items/{name}"


class BeginStepRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step that begins."""

    goal: Annotated[str, Meta(max_length=4_096, description="The goal of the step.")] = ""
    policy: Annotated[
        WorkingPolicy | None,
        Meta(description="The limits and weights; null: those of the previous step."),
    ] = None


class KeepItemRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item of working memory."""

    content: Annotated[Any, Meta(description="A text or a JSON value; not null.")]
    depends_on: Annotated[
        list[str], Meta(description="Names of the items that the item needs.")
    ] = msgspec.field(default_factory=list)
    carry_forward: Annotated[
        bool, Meta(description="Whether the item stays at the end of the step.")
    ] = False
    ttl_ops: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="The sub-operations until the item is removed; null: the end of the step."
        ),
    ] = None
    sensitivity: Sensitivity = "internal"


class MarkItemRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether an item stays at the end of the step."""

    carry_forward: Annotated[
        bool, Meta(description="Whether the item stays at the end of the step.")
    ]


class WorkingMemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The agent whose working memory the request is about."""

    agent_id: Annotated[
        str | None,
        Meta(description="The agent; by default the caller, or else the agent of the task."),
    ] = None


class WorkingLogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of changes."""

    after: Annotated[
        int, Meta(ge=0, le=2**53, description="The sequence number after which events are listed.")
    ] = 0
    limit: Annotated[
        int, Meta(ge=1, le=LARGEST_PAGE, description="The most events of the page.")
    ] = 100


class WorkingItemResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item of working memory.

    id: of its entry
    content: null in a list while it is externalized
    tick: of its last write
    """

    id: str
    name: str
    content: Any
    tokens: int
    tick: int
    depends_on: tuple[str, ...] = ()
    carry_forward: bool = False
    ttl_ops: int | None = None
    compressed_from: int | None = None
    reference: ScratchReference | None = None


class WorkingMemoryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The working memory of an agent on a task.

    step, tick: counted from the first step on
    tokens: of all items; at most the budget of the policy
    changes: what the operation did to items, and why
    """

    task_id: str
    agent_id: str
    step: int
    is_open: bool
    tick: int
    goal: str
    policy: WorkingPolicy
    tokens: int
    items: list[WorkingItemResponse]
    changes: list[ItemChange] = []


class LoggedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an item in the log; `step` and `tick` are null where the item was judged."""

    seq: int
    timestamp: str
    agent_id: str
    step: int | None
    tick: int | None
    change: ItemChange


class WorkingLogResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of the items of a task, oldest first.

    next: the `after` of the next page; null on the last page
    """

    changes: list[LoggedChange]
    next: int | None


_CHANGES: tuple[type[MemorywallError], ...] = (ResourceNotFoundError, TransitionError)

WORKING_MEMORY_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="list_working_items",
        method="GET",
        path=_PATH,
        group="Tasks",
        summary="Show the step and the items of a task's working memory.",
        source="memory wall 11.2",
        permission=Permission.READ,
        query=WorkingMemoryQuery,
        reply=WorkingMemoryResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="begin_working_step",
        method="POST",
        path=_PATH + "/steps",
        group="Tasks",
        summary="Begin a step of a task.",
        source="memory wall 11.2",
        permission=Permission.WRITE,
        body=BeginStepRequest,
        reply=WorkingMemoryResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(*_CHANGES, DecompositionRequiredError, MemoryCapacityError),
    ),
    Operation(
        name="end_working_step",
        method="POST",
        path=_PATH + "/steps/end",
        group="Tasks",
        summary="End the step: remove all items except marked ones and those that they need.",
        source="memory wall, algorithm 11.2",
        permission=Permission.WRITE,
        reply=WorkingMemoryResponse,
        accepts_idempotency_key=True,
        raises=_CHANGES,
    ),
    Operation(
        name="tick_working_step",
        method="POST",
        path=_PATH + "/tick",
        group="Tasks",
        summary="Count a sub-operation of the step, and remove items whose `ttl_ops` is over.",
        source="memory wall, algorithm 11.2",
        permission=Permission.WRITE,
        reply=WorkingMemoryResponse,
        accepts_idempotency_key=True,
        raises=_CHANGES,
    ),
    Operation(
        name="explain_working_memory",
        method="GET",
        path=_PATH + "/changes",
        group="Tasks",
        summary="List evictions, compressions and externalizations with their reasons.",
        source="memory wall 11.2",
        permission=Permission.READ,
        query=WorkingLogQuery,
        reply=WorkingLogResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="get_working_item",
        method="GET",
        path=_ITEM,
        group="Tasks",
        summary="Get an item with its content, even if the content was externalized.",
        source="memory wall 11.2",
        permission=Permission.READ,
        query=WorkingMemoryQuery,
        reply=WorkingItemResponse,
        raises=(ResourceNotFoundError,),
    ),
    Operation(
        name="keep_working_item",
        method="PUT",
        path=_ITEM,
        group="Tasks",
        summary="Add an item to the step, or replace the item of this name.",
        source="memory wall, algorithm 11.1",
        permission=Permission.WRITE,
        body=KeepItemRequest,
        reply=WorkingMemoryResponse,
        raises=(*_CHANGES, DecompositionRequiredError, MemoryCapacityError),
    ),
    Operation(
        name="mark_working_item",
        method="PATCH",
        path=_ITEM,
        group="Tasks",
        summary="Mark an item to stay at the end of the step, or remove the mark.",
        source="memory wall 11.2.3",
        permission=Permission.WRITE,
        body=MarkItemRequest,
        reply=WorkingMemoryResponse,
        raises=_CHANGES,
    ),
)
