"""The kinds of contexts: what a compiled context contained, and the core memory of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier

USED = "used"
"""The relation between a context and an entry that its feedback named as used."""
_MOST_USED = 256
"""The used entries of a context that have an edge; feedback rarely names more than a few."""


class ContextPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                  forbid_unknown_fields=True, gc=False):  # fmt: skip
    """An item of a compiled context.

    id, version: those of the entry, or a name such as `request.user` for a part of the request
    digest: of the item as the context contains it
    content: the item itself if it is a part of the request
    source_changed: whether the context marked it so
    contradicted_by: the ids of the memories that prevail over it
    """

    segment: str
    id: str
    version: int
    tokens: int
    reason: str
    digest: str
    provenance: str = ""
    content: str | None = None
    source_changed: bool = False
    contradicted_by: tuple[str, ...] = ()


class StoredContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
                    forbid_unknown_fields=True):  # fmt: skip
    """The content of one compiled context, by reference.

    scope: the namespace of the shared state that the context was asked for; None for none
    shape: the digest of everything that decides about the form of a context, such as its window
    budgets: the budget of each segment
    segment_tokens: the tokens of each segment with its heading
    largest_summary: the tokens to which the summary was shortened, if it had more; 0 for a fifth of
        the window without the reserve
    epoch, first_turn, kept: what the next context of the session keeps; see `Slices`
    used, outcome, correction: the feedback; None before it
    attachment: the id of the attachment that holds `parts` when they are too large for an entry
    """

    session_id: str | None = None
    scope: str | None = None
    shape: str
    strategy: str
    window: int
    reserve: int
    tokens: int
    budgets: dict[str, int]
    segment_tokens: dict[str, int] = {}
    parts: tuple[ContextPart, ...]
    largest_summary: int = 0
    epoch: int = 0
    first_turn: int = 0
    kept: dict[str, list[tuple[str, int]]] = {}
    used: tuple[str, ...] = ()
    outcome: Literal["success", "failure", "corrected"] | None = None
    correction: str | None = None
    attachment: str | None = None


class CoreBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named block that is in every context of its agent, in whole; the agent edits it itself.

    label: the name of the block, such as `persona` or `user`
    text: at most 8,000 characters
    """

    label: Annotated[
        str,
        Meta(min_length=1, max_length=64, description="The name of the block, such as `persona`."),
    ]
    text: Annotated[str, Meta(max_length=8_000, description="The text of the block.")]


def _used(context: Any) -> Iterator[Edge]:
    return (Edge(USED, one, is_id=True) for one in context.used[:_MOST_USED])


def _block_text(block: Any) -> str:
    return f"{block.label}: {block.text}"


CONTEXT = KindSpec(
    name="context",
    schema=StoredContext,
    description="What one compiled context contained, by reference.",
    tier=Tier.SESSION,
    evictable=False,
    lifetime="",
    operations=("create_context", "add_context_outcome"),
    listed=False,
    is_searchable=False,
    edges=_used,
)
CORE = KindSpec(
    name="core",
    schema=CoreBlock,
    description="A named block of text that is in every context of its agent.",
    text=_block_text,
)
CONTEXT_KINDS: tuple[KindSpec, ...] = (CONTEXT, CORE)
