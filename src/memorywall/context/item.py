"""The parts of a context: what may be in it, what is in it, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from memorywall.kinds.content_parts import spoken_text
from memorywall.kinds.sessions import StoredStatement, SummaryQuality

SegmentName = Literal[
    "system", "tools", "core", "semantic", "episodic", "shared", "summary", "turns", "procedural",
    "working", "added", "user",
]  # fmt: skip
Strategy = Literal["recency", "importance", "compaction", "hierarchical"]
DropReason = Literal[
    "over_budget", "expired", "foreign_session", "foreign_subject", "incomplete_tool_exchange",
    "summarized", "listed_by_name", "turns_shown", "superseded", "rejected",
]  # fmt: skip

SEGMENTS: tuple[SegmentName, ...] = (
    "system", "tools", "core", "semantic", "episodic", "shared", "summary", "turns", "procedural",
    "working", "added", "user",
)  # fmt: skip
"""The segments in their order. `added` holds what a later request adds to the slices before it."""
STRATEGIES: tuple[Strategy, ...] = ("recency", "importance", "compaction", "hierarchical")


_LARGE = 1_000_000
"""The bytes of items from which work on them takes more than some 5 milliseconds."""
_BYTES_OF_ITEM = 2_000
"""The bytes of a text that takes as long as the rest of an item."""
_COUNTING, _COUNTING_EXACTLY = 10, 100
"""How many times as long it takes to count the tokens of a text."""


class BudgetError(ValueError):
    """The window or a budget is smaller than what the context must contain.

    needed: the least window, or the least budget of `group`, that is enough
    group: the segments whose budget is too small; None for the window
    """

    def __init__(self, needed: int, group: str | None = None) -> None:
        self.needed = needed
        self.group = group
        super().__init__(f"{needed} tokens are needed")


class ContextItem(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A candidate for a context: an entry of the store, or a part of the request.

    id: the id of the entry, or a name such as `request.user`
    content: the text, or the content parts of a turn
    tokens: the number of tokens with everything that surrounds the text; 0 to count them
    score: the larger, the sooner it is taken
    sequence: the position of a turn in its session; of a summary, the last turn that it covers
    role, name, tool_calls, tool_call_id: those of a turn; `name` also of a tool, and the label of a
        block of core memory
    brief: one line that stands for a tool that does not fit
    session_id: the session that it belongs to; None for none
    subjects: the people that it is about
    expires_at, stale_at: instants in the stored form
    provenance: where it comes from
    reason: why it may be in the context
    trusted: false for content of documents and tools
    sources: ids and versions of the entries that it was derived from
    source_changed: whether a source that it was derived from has changed since
    beside: the ids of the items of which this one is a changed source
    contradicted_by: the ids of memories with more authority that say something else
    mandatory: whether a context without it is refused
    group: items of a segment with the same group are in the context together or not at all
    quoted: whether a turn is quoted instead of being a message
    quality: that of a summary; None for other items
    statements: of a summary, those of its text; empty where they were not stored
    """

    id: str
    segment: SegmentName
    content: str | list[dict[str, Any]]
    version: int = 1
    tokens: int = 0
    score: float = 0.0
    sequence: int = 0
    role: str = "user"
    name: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    brief: str = ""
    session_id: str | None = None
    subjects: tuple[str, ...] = ()
    expires_at: str | None = None
    stale_at: str | None = None
    provenance: str = ""
    reason: str = "requested"
    trusted: bool = True
    sources: tuple[tuple[str, int], ...] = ()
    source_changed: bool = False
    beside: tuple[str, ...] = ()
    contradicted_by: tuple[str, ...] = ()
    mandatory: bool = False
    group: str = ""
    quoted: bool = False
    quality: SummaryQuality | None = None
    statements: tuple[StoredStatement, ...] = ()

    @property
    def text(self) -> str:
        """The text, without images and thinking."""
        return spoken_text(self.content)


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """An item that is not in the context."""

    id: str
    segment: SegmentName
    tokens: int
    reason: DropReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A segment of a context.

    budget: the most tokens that it may have, with what other segments left
    tokens: those of its items and of its heading
    """

    name: SegmentName
    budget: int
    tokens: int
    items: tuple[ContextItem, ...]


class Slices(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a context that the next one of the session keeps, so that its prompt starts with
    the same bytes.

    epoch: the last turn that the chosen summary of the session covers; 0 without one
    first_turn: the first turn that is shown verbatim; 0 for none
    kept: of each segment before the turns, ids and versions of the items in their order
    """

    epoch: int = 0
    first_turn: int = 0
    kept: dict[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """A context.

    segments: those that are not empty, in order
    largest_summary: the tokens to which the summary was shortened, if it had more
    uncovered: the last turn that is not in the context and that no summary covers; 0 for none
    """

    window: int
    reserve: int
    tokens: int
    segments: tuple[Segment, ...]
    dropped: tuple[Dropped, ...]
    slices: Slices
    largest_summary: int = 0
    uncovered: int = 0

    @property
    def all_items(self) -> Iterator[ContextItem]:
        """The items of all segments, in order."""
        return (item for segment in self.segments for item in segment.items)

    def items(self, name: SegmentName) -> tuple[ContextItem, ...]:
        """The items of a segment."""
        return next((one.items for one in self.segments if one.name == name), ())


def are_large(items: Iterable[ContextItem], *, counted_exactly: bool = False) -> bool:
    """Whether work on items takes so long that it should not take place on the event loop.

    counted_exactly: whether tokens that are not known yet are counted by a tokenizer
    """
    counting = 1 + (_COUNTING_EXACTLY if counted_exactly else _COUNTING)
    sizes = (
        (len(one.content if isinstance(one.content, str) else str(one.content)), one.tokens)
        for one in items
    )
    cost = sum(_BYTES_OF_ITEM + size * (1 if tokens else counting) for size, tokens in sizes)
    return cost > _LARGE
