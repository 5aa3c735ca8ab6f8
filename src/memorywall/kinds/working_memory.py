"""The kinds of working memory: an item, and the state of a task's steps (memory wall 11.2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import KindSpec
from memorywall.records.tier import Tier

LONGEST_NAME = 128
MOST_DEPENDENCIES = 64
DEFAULT_BUDGET = 70_656
"""The tokens of working memory in a window of 128,000 tokens (memory wall 11.2.1)."""

Count = Annotated[int, Meta(ge=0)]


class _WorkingValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
             forbid_unknown_fields=True):  # fmt: skip
    """A value of a kind."""


class ScratchReference(_WorkingValue, frozen=True, kw_only=True):
    """The reference that an item has instead of content in an attachment.

    uri: the path of the content, JSON text, in the API
    schema_hash: a digest of the shape of the content: the types of its members, without values
    tokens: the tokens of the content
    """

    uri: str
    schema_hash: str
    tokens: Count


class Scratch(_WorkingValue, frozen=True, kw_only=True):
    """An item of working memory.

    name: unique among the items of the task that are not leaving
    order: counts the items that were added to the task, from 1
    content: a text or a JSON value; None while it is externalized
    tokens: of the content, or of the reference
    depends_on: names of the items that it needs; none of them goes before it
    carry_forward: whether it stays at the end of the present step
    ttl_ops: ticks after the last write until it goes; None for the whole step
    tick: the tick of the last write
    reference: where the content is, if it is externalized
    compressed_from: the tokens before it was compressed, None if it was not
    leaving: why it goes, None while it stays; it no longer counts and waits to be judged
    leaves_at: since when, an instant in the stored form
    """

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    order: Annotated[int, Meta(ge=1)]
    content: Any = None
    tokens: Count
    depends_on: tuple[str, ...] = ()
    carry_forward: bool = False
    ttl_ops: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    tick: Count = 0
    reference: ScratchReference | None = None
    compressed_from: Count | None = None
    leaving: str | None = None
    leaves_at: str | None = None


class WorkingPolicy(_WorkingValue, frozen=True, kw_only=True, omit_defaults=False):
    """The limits of working memory and the weights of utility, each with its default.

    carry_share: kappa of the memory wall
    prune_below: theta of the memory wall
    """

    budget: Annotated[
        int, Meta(ge=1, le=100_000_000, description="The most tokens of all items.")
    ] = DEFAULT_BUDGET
    carry_share: Annotated[
        float, Meta(ge=0, le=1, description="The share of the budget that a step may carry on.")
    ] = 0.3
    prune_below: Annotated[
        float, Meta(ge=0, le=1, description="The utility below which an overflow prunes an item.")
    ] = 0.3
    relevance: Annotated[
        float, Meta(ge=0, le=1, description="The weight of relevance in the utility.")
    ] = 0.5
    recency: Annotated[
        float, Meta(ge=0, le=1, description="The weight of recency in the utility.")
    ] = 0.3
    dependency: Annotated[
        float, Meta(ge=0, le=1, description="The weight of dependents in the utility.")
    ] = 0.2
    compress_to: Annotated[
        float, Meta(gt=0, lt=1, description="The share of its tokens that a text is compressed to.")
    ] = 0.5


class WorkingState(_WorkingValue, frozen=True, kw_only=True):
    """The steps of an agent on a task.

    step: counts the steps, from 1; 0 before the first
    is_open: whether a step has begun and not ended
    tick: counts the ticks of all steps
    added: counts the items of all steps
    goal: what the step is to achieve; the relevance of items is measured by it
    """

    step: Count = 0
    is_open: bool = False
    tick: Count = 0
    added: Count = 0
    goal: str = ""
    policy: WorkingPolicy = WorkingPolicy()


Reason = Literal[
    "step_boundary_eviction", "carry_forward_overflow", "ttl_expired", "low_utility_prune",
    "over_budget",
]  # fmt: skip
Action = Literal["evicted", "compressed", "externalized"]


class ItemChange(_WorkingValue, frozen=True, kw_only=True):
    """A change that the server made to an item, and the reason.

    item: its name
    tokens_before, tokens_after: of the item
    utility: at the time; None where it did not matter
    promotion: whether the item was promoted before it went, and why; None while that is not judged
    """

    item: str
    action: Action
    reason: Reason
    tokens_before: int
    tokens_after: int = 0
    utility: float | None = None
    promotion: str | None = None


SCRATCH = KindSpec(
    name="scratch",
    schema=Scratch,
    description="An item of the working memory of a task.",
    tier=Tier.WORKING,
    evictable=False,
    texts=("content",),
    operations=(
        "keep_working_item",
        "mark_working_item",
        "end_working_step",
        "tick_working_step",
    ),
    statuses=("active", "leaving"),
    status=lambda item: "active" if item.leaving is None else "leaving",
    is_searchable=False,
    due=lambda item: item.leaves_at,
)
WORKING_STATE = KindSpec(
    name="working_state",
    schema=WorkingState,
    description="The steps of an agent on a task, and the limits of their working memory.",
    tier=Tier.WORKING,
    evictable=False,
    lifetime="",
    texts=("goal",),
    operations=("begin_working_step", "end_working_step", "tick_working_step"),
    listed=False,
    is_searchable=False,
)

WORKING_KINDS: tuple[KindSpec, ...] = (SCRATCH, WORKING_STATE)
