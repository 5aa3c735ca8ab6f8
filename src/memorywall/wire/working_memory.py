"""Requests, responses and operations of the working memory of a task."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.kinds.working_memory import ItemChange, ScratchReference, WorkingPolicy
from memorywall.records.entry import Sensitivity
from memorywall.records.errors import (
    MemoryCapacityError,
    TransitionError,
)
from memorywall.records.feature_errors import DecompositionRequiredError
from memorywall.records.filter import LARGEST_PAGE
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


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


_WORKING = OperationGroup(name="Tasks", source="memory wall 11.2")

WORKING_MEMORY_OPERATIONS: tuple[Operation, ...] = (
    _WORKING(
        "list_working_items",
        "GET /tasks/{task_id}/working",
        "Show the step and the items of a task's working memory.",
        query=WorkingMemoryQuery,
        reply=WorkingMemoryResponse,
    ),
    _WORKING(
        "begin_working_step",
        "POST /tasks/{task_id}/working/steps",
        "Begin a step of a task.",
        body=BeginStepRequest,
        reply=WorkingMemoryResponse,
        status=201,
        accepts_idempotency_key=True,
        raises=(TransitionError, DecompositionRequiredError, MemoryCapacityError),
    ),
    _WORKING(
        "end_working_step",
        "POST /tasks/{task_id}/working/steps/end",
        "End the step: remove all items except marked ones and those that they need.",
        source="memory wall, algorithm 11.2",
        reply=WorkingMemoryResponse,
        accepts_idempotency_key=True,
        raises=(TransitionError,),
    ),
    _WORKING(
        "tick_working_step",
        "POST /tasks/{task_id}/working/tick",
        "Count a sub-operation of the step, and remove items whose `ttl_ops` is over.",
        source="memory wall, algorithm 11.2",
        reply=WorkingMemoryResponse,
        accepts_idempotency_key=True,
        raises=(TransitionError,),
    ),
    _WORKING(
        "explain_working_memory",
        "GET /tasks/{task_id}/working/changes",
        "List evictions, compressions and externalizations with their reasons.",
        query=WorkingLogQuery,
        reply=WorkingLogResponse,
    ),
    _WORKING(
        "get_working_item",
        "GET /tasks/{task_id}/working/items/{name}",
        "Get an item with its content, even if the content was externalized.",
        query=WorkingMemoryQuery,
        reply=WorkingItemResponse,
    ),
    _WORKING(
        "keep_working_item",
        "PUT /tasks/{task_id}/working/items/{name}",
        "Add an item to the step, or replace the item of this name.",
        source="memory wall, algorithm 11.1",
        body=KeepItemRequest,
        reply=WorkingMemoryResponse,
        raises=(TransitionError, DecompositionRequiredError, MemoryCapacityError),
    ),
    _WORKING(
        "mark_working_item",
        "PATCH /tasks/{task_id}/working/items/{name}",
        "Mark an item to stay at the end of the step, or remove the mark.",
        source="memory wall 11.2.3",
        body=MarkItemRequest,
        reply=WorkingMemoryResponse,
        raises=(TransitionError,),
    ),
)
