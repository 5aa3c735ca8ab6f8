"""The results of SDK methods."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.kinds.promotions import PROPOSAL
from memorywall.kinds.sessions import TURN, ToolCall, turn_text
from memorywall.records.copier import copier
from memorywall.records.entry import (
    EMPTY_SCOPE,
    EntryState,
    Priority,
    Provenance,
    Scope,
    Sensitivity,
)
from memorywall.records.tier import Tier
from memorywall.records.worthiness import Verdict
from memorywall.wire.entries import EntryPageResponse as WireEntryPage
from memorywall.wire.entries import (
    EntryResponse,
    EvictionWarning,
    FoundEntry,
    RenderedPageResponse,
    ShadowedEntry,
)
from memorywall.wire.events import EventData, EventResponse
from memorywall.wire.intents import IntentResponse
from memorywall.wire.search import (
    ExplainResponse,
    GuidanceResponse,
    HighlightResponse,
    explain_nothing,
)

_LONGEST_SHOWN = 80
"""Characters of the text of a hit that its representation shows."""
Shape = TypeVar("Shape")
_decode_value = msgspec.json.Decoder(dict[str, Any]).decode


class _SaidTurn(msgspec.Struct):
    """What a turn says; a newer server may have further fields."""

    content: str | list[dict[str, Any]]
    tool_calls: tuple[ToolCall, ...] = ()


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """An entry as the server has stored it. Its fields are attributes, and its value is also a
    mapping; it is empty if the client may write the entry and may not read it.

    `entry["total"]` is `entry.value["total"]`. An entry with an empty value is false, like an empty
    dict.
    """

    id: str
    agent_id: str
    namespace: str
    key: str
    value: dict[str, Any] = {}
    memory_type: Tier
    version: int
    scope: Scope = EMPTY_SCOPE
    tags: tuple[str, ...] = ()
    ttl: str | None = None
    expires_at: str | None = None
    pinned: bool = False
    priority: Priority = "normal"
    sensitivity: Sensitivity = "internal"
    created_at: str = ""
    updated_at: str = ""
    created_by: str = ""
    curated_by: str | None = None
    provenance: Provenance | None = None
    kind: str | None = None
    kind_version: int = 0
    status: str | None = None
    state: EntryState = "live"
    subjects: tuple[str, ...] = ()
    warnings: tuple[EvictionWarning, ...] = ()
    """What the write that returned this entry has evicted."""
    worthiness: Verdict | None = None
    """Of a remembered text: whether it is worth keeping, and by which rule; None for others."""

    @property
    def waits(self) -> bool:
        """Whether it is a proposal: a write that waits for the decision of a person."""
        return self.kind == PROPOSAL.name

    @property
    def text(self) -> str:
        """What a turn says, with its calls of tools, and a fact or an episode on one line; of other
        entries the member `text` or `content` of the value, or else the value as JSON."""
        if self.kind == TURN.name:
            turn = msgspec.convert(self.value, _SaidTurn)
            return turn_text(turn.content, turn.tool_calls)
        if self.kind is not None:
            # The table of kinds takes a fifth of the import of the SDK.
            from memorywall.kinds.registry import line_of

            if shown := line_of(self.kind, self.kind_version, self.value):
                return shown
        for name in ("text", "content"):
            if isinstance(found := self.value.get(name), str):
                return found
        return msgspec.json.encode(self.value).decode()

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def __contains__(self, name: object) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a member of the value, or `default`."""
        return self.value.get(name, default)

    def keys(self) -> KeysView[str]:
        """The names of the value's members."""
        return self.value.keys()

    def values(self) -> ValuesView[Any]:
        """The value's members."""
        return self.value.values()

    def items(self) -> ItemsView[str, Any]:
        """Names and members of the value."""
        return self.value.items()


_decode_entries = msgspec.json.Decoder(list[MemoryEntry]).decode


def to_plain(result: Any) -> Any:
    """Converts a wire struct to the dicts, lists and scalars of its JSON text."""
    return msgspec.to_builtins(result, enc_hook=msgspec.json.decode)


def from_wire(result: Any, shape: type[Shape]) -> Shape:
    """Converts the result of an operation in this process to the SDK's type."""
    if isinstance(result, EntryResponse) and issubclass(shape, MemoryEntry):
        return cast(Shape, entry_from_view(result))
    if isinstance(result, FoundEntry) and issubclass(shape, DecodedName):
        entry = None if result.entry is None else entry_from_view(result.entry)
        return shape(entry, result.shadows)
    if isinstance(result, RenderedPageResponse) and issubclass(shape, DecodedPage):
        entries = _decode_entries(result.entries)
        return cast(Shape, _page(entries, result))
    if isinstance(result, WireEntryPage) and issubclass(shape, DecodedPage):
        return cast(Shape, _page([entry_from_view(one) for one in result.entries], result))
    return msgspec.convert(to_plain(result), shape)


def _page(entries: list[MemoryEntry], result: WireEntryPage | RenderedPageResponse) -> DecodedPage:
    return DecodedPage(
        entries,
        total=result.total,
        limit=result.limit,
        offset=result.offset,
        next_cursor=result.next_cursor or None,
    )


entry_from_view = copier(
    EntryResponse,
    MemoryEntry,
    value=lambda view: {} if view.value is UNSET else _decode_value(view.value),
)
"""Converts an entry from an operation in this process."""


class EntryPage(list[MemoryEntry]):
    """One page of a query; `total` counts the matches on all pages.

    next_cursor: of a query with a cursor or an order, the cursor of the next page; otherwise, and
        on the last page, None
    """

    def __init__(
        self,
        entries: Iterable[MemoryEntry],
        *,
        total: int,
        limit: int,
        offset: int,
        next_cursor: str | None = None,
    ) -> None:
        super().__init__(entries)
        self.total = total
        self.limit = limit
        self.offset = offset
        self.next_cursor = next_cursor


class BatchResult(list[MemoryEntry]):
    """The results of a batch, in the order of its elements.

    verdicts: with `judge`, what was decided about each element, None for an update
    """

    def __init__(
        self,
        entries: Iterable[MemoryEntry],
        *,
        created: int,
        updated: int,
        warnings: tuple[EvictionWarning, ...] = (),
        verdicts: Sequence[Verdict | None] = (),
    ) -> None:
        super().__init__(entries)
        self.verdicts = verdicts
        self.created = created
        self.updated = updated
        self.warnings = warnings


class DecodedPage(msgspec.Struct):
    """A page of a query as decoded from a response."""

    entries: list[MemoryEntry]
    total: int
    limit: int
    offset: int
    next_cursor: str | None = None


class DecodedRows(msgspec.Struct):
    """A page of chosen fields as decoded from a response."""

    entries: list[dict[str, Any]]
    next_cursor: str | None = None


class DecodedHistory(msgspec.Struct):
    """The versions of an entry as decoded from a response."""

    versions: list[MemoryEntry]
    events: list[EventResponse] = []


class EntryHistory(list[MemoryEntry]):
    """Versions of an entry, newest first.

    events: in tiers that keep no earlier versions, the events of the entry, newest first: who
        changed it when, without values; empty otherwise
    """

    def __init__(self, versions: Iterable[MemoryEntry], *, events: Iterable[EventResponse]) -> None:
        super().__init__(versions)
        self.events = [*events]


class DecodedName(msgspec.Struct):
    """The entry of a name as decoded from a response."""

    entry: MemoryEntry | UnsetType | None = UNSET
    shadows: tuple[ShadowedEntry, ...] = ()


class DecodedBatch(msgspec.Struct):
    """The results of a batch as decoded from a response."""

    entries: list[MemoryEntry]
    created: int
    updated: int
    warnings: tuple[EvictionWarning, ...] = ()
    verdicts: list[Verdict | None] = []


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A found entry; `relevance` is the probability that it answers the query, from 0 to 1.
    `explain`, if requested, contains the parts of its score and its relevance, and `highlight` is
    the best passage of a long text, None for a short one."""

    entry: MemoryEntry
    score: float
    relevance: float = 0.0
    explain: ExplainResponse | None = None
    highlight: HighlightResponse | None = None

    @property
    def session_id(self) -> str | None:
        """The session that the entry belongs to; None for none."""
        return self.entry.scope.session_id

    @property
    def sequence(self) -> int | None:
        """The position of a turn in its session; None for other entries."""
        return self.entry.value["sequence"] if self.entry.kind == TURN.name else None

    @property
    def text(self) -> str:
        """The text of the entry, see `MemoryEntry.text`."""
        return self.entry.text

    def __repr__(self) -> str:
        text = self.text if self.highlight is None else self.highlight.text
        short = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
        name = f"{self.entry.namespace}/{self.entry.key}"
        return f"SearchHit(score={self.score:.3f}, text={short!r}, name={name!r})"


class DecodedSearch(msgspec.Struct):
    """The result of a search as decoded from a response."""

    results: list[SearchHit]
    model: str | None
    pending: int
    searched: int | None = None
    relevance: float = 0.0
    answered: bool = False
    left_out: int = 0


class SearchResults(list[SearchHit]):
    """The result of a search, best hit first.

    relevance: the probability that one of the best hits answers the query, from 0 to 1
    answered: whether that is enough to answer from the hits
    left_out: the number of results that were left out for their relevance
    model: the embedding model of the search; None for a search by words only
    searched: the number of readable entries that the search covered; None from an older server
    pending: the number of searched entries that are not embedded yet and were searched by words
        only
    """

    def __init__(self, found: DecodedSearch) -> None:
        super().__init__(found.results)
        self.relevance = found.relevance
        self.answered = found.answered
        self.left_out = found.left_out
        self.model = found.model
        self.searched = found.searched
        self.pending = found.pending

    @property
    def note(self) -> str:
        """Whether a model was used, how many entries wait for it, and how to get one."""
        return explain_nothing(self.model, self.pending)

    def __repr__(self) -> str:
        covered = f"model={self.model!r}, pending={self.pending}, answered={self.answered}"
        if self.left_out:
            covered += f", left_out={self.left_out}"
        found = super().__repr__() if self else f"[], note={self.note!r}"
        return f"SearchResults({found}, {covered})"


class ReshapedQuery(str):
    """A query with guidance appended; `guidance` contains its parts."""

    guidance: tuple[GuidanceResponse, ...]

    def __new__(cls, text: str, *, guidance: Iterable[GuidanceResponse]) -> ReshapedQuery:
        reshaped = super().__new__(cls, text)
        reshaped.guidance = tuple(guidance)
        return reshaped


class EventPage(list[EventResponse]):
    """Events in order; pass `next` as `after` to get the next page."""

    def __init__(self, events: Iterable[EventResponse], *, next: int) -> None:
        super().__init__(events)
        self.next = next


class ChangePage(EventPage):
    """Changes in order; pass `next` as `after` to get the next page. `more` tells whether the log
    has further events."""

    def __init__(self, events: Iterable[EventResponse], *, next: int, more: bool) -> None:
        super().__init__(events, next=next)
        self.more = more


class IntentListing(list[IntentResponse]):
    """One page of intents, newest first; `total` counts the intents on all pages."""

    def __init__(
        self, intents: Iterable[IntentResponse], *, total: int, limit: int, offset: int
    ) -> None:
        super().__init__(intents)
        self.total = total
        self.limit = limit
        self.offset = offset


def read_event(event: EventResponse) -> EventResponse:
    """Converts an event for the caller: data about one entry is `EventData`, other data is a
    dict."""
    if not event.type.startswith("memory.") or "entry_id" not in (event.data or ()):
        return event
    try:
        data = msgspec.convert(event.data, EventData)
    except msgspec.ValidationError:
        return event
    return msgspec.structs.replace(event, data=data, payload=data)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The principal and the permissions of the client's key."""

    agent_id: str
    tenant: str = ""
    kind: str = ""
    permissions: tuple[str, ...] = ()
