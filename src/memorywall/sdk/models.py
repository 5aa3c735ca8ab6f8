"""What the SDK gives back."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.records.entry import (
    EMPTY_SCOPE,
    EntryState,
    Priority,
    Provenance,
    Scope,
    Sensitivity,
)
from memorywall.records.tier import Tier
from memorywall.wire.agents import EventData, EventResponse
from memorywall.wire.entries import EntryPageResponse as WireEntryPage
from memorywall.wire.entries import EntryResponse, FoundEntry, RenderedPageResponse
from memorywall.wire.recall import ExplainResponse, GuidanceResponse
from memorywall.wire.work import IntentResponse

Shape = TypeVar("Shape")
_decode_value = msgspec.json.Decoder(dict[str, Any]).decode


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the server has it: its fields as attributes, its value also as a mapping.

    `entry["total"]` is `entry.value["total"]`; an entry whose value is empty counts as false, as
    an empty dict does.
    """

    id: str
    agent_id: str
    namespace: str
    key: str
    value: dict[str, Any]
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

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def __contains__(self, name: object) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def get(self, name: str, default: Any = None) -> Any:
        """A member of the value, or `default`."""
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
    """A wire struct as the dicts, lists and scalars that its JSON text is read as."""
    return msgspec.to_builtins(result, enc_hook=msgspec.json.decode)


def from_wire(result: Any, shape: type[Shape]) -> Shape:
    """What an operation in this process returned, as the type the SDK gives back."""
    if isinstance(result, EntryResponse) and issubclass(shape, MemoryEntry):
        return cast(Shape, entry_from_view(result))
    if isinstance(result, FoundEntry) and issubclass(shape, DecodedName):
        return shape(None if result.entry is None else entry_from_view(result.entry))
    if isinstance(result, RenderedPageResponse) and issubclass(shape, DecodedPage):
        entries = _decode_entries(result.entries)
        return shape(entries, total=result.total, limit=result.limit, offset=result.offset)
    if isinstance(result, WireEntryPage) and issubclass(shape, DecodedPage):
        entries = [entry_from_view(one) for one in result.entries]
        return shape(entries, total=result.total, limit=result.limit, offset=result.offset)
    return msgspec.convert(to_plain(result), shape)


def entry_from_view(view: EntryResponse) -> MemoryEntry:
    """An entry that an operation in this process returned."""
    return MemoryEntry(
        id=view.id,
        agent_id=view.agent_id,
        namespace=view.namespace,
        key=view.key,
        value=_decode_value(view.value),  # type: ignore[arg-type]
        memory_type=view.memory_type,
        version=view.version,
        scope=view.scope,
        tags=view.tags,
        ttl=view.ttl,
        expires_at=view.expires_at,
        pinned=view.pinned,
        priority=view.priority,
        sensitivity=view.sensitivity,
        created_at=view.created_at,
        updated_at=view.updated_at,
        created_by=view.created_by,
        curated_by=view.curated_by,
        provenance=view.provenance,
        kind=view.kind,
        kind_version=view.kind_version,
        status=view.status,
        state=view.state,
        subjects=view.subjects,
    )


class EntryPage(list[MemoryEntry]):
    """One page of a query; `total` counts the matches on all pages."""

    def __init__(
        self, entries: Iterable[MemoryEntry], *, total: int, limit: int, offset: int
    ) -> None:
        super().__init__(entries)
        self.total = total
        self.limit = limit
        self.offset = offset


class BatchResult(list[MemoryEntry]):
    """What a batch wrote, in the order of its elements."""

    def __init__(self, entries: Iterable[MemoryEntry], *, created: int, updated: int) -> None:
        super().__init__(entries)
        self.created = created
        self.updated = updated


class DecodedPage(msgspec.Struct):
    """A page of a query as it is read from a reply."""

    entries: list[MemoryEntry]
    total: int
    limit: int
    offset: int


class DecodedName(msgspec.Struct):
    """The entry of a name, as it is read from a reply."""

    entry: MemoryEntry | UnsetType | None = UNSET


class DecodedBatch(msgspec.Struct):
    """What a batch wrote, as it is read from a reply."""

    entries: list[MemoryEntry]
    created: int
    updated: int


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was found; `explain`, where it was asked for, is what its score is made of."""

    entry: MemoryEntry
    score: float
    explain: ExplainResponse | None = None


class DecodedSearch(msgspec.Struct):
    """What a search found, as it is read from a reply."""

    results: list[SearchHit]
    model: str | None
    pending: int


class SearchResults(list[SearchHit]):
    """What a search found, best first.

    model: the one that meaning was compared with, None for words alone
    pending: how many of the entries searched were found by words only, not being embedded yet
    """

    def __init__(self, hits: Iterable[SearchHit], *, model: str | None, pending: int) -> None:
        super().__init__(hits)
        self.model = model
        self.pending = pending


class ReshapedQuery(str):
    """A question with its guidance appended; `guidance` has that piece by piece."""

    guidance: tuple[GuidanceResponse, ...]

    def __new__(cls, text: str, *, guidance: Iterable[GuidanceResponse]) -> ReshapedQuery:
        reshaped = super().__new__(cls, text)
        reshaped.guidance = tuple(guidance)
        return reshaped


class EventPage(list[EventResponse]):
    """Events in order; `next` is the `after` with which to go on."""

    def __init__(self, events: Iterable[EventResponse], *, next: int) -> None:
        super().__init__(events)
        self.next = next


class IntentListing(list[IntentResponse]):
    """One page of intents, newest first; `total` counts those on all pages."""

    def __init__(
        self, intents: Iterable[IntentResponse], *, total: int, limit: int, offset: int
    ) -> None:
        super().__init__(intents)
        self.total = total
        self.limit = limit
        self.offset = offset


def read_event(event: EventResponse) -> EventResponse:
    """The event as a caller gets it: what it says of one entry is `EventData`, all else a dict."""
    if not event.type.startswith("memory.") or "entry_id" not in (event.data or ()):
        return event
    try:
        data = msgspec.convert(event.data, EventData)
    except msgspec.ValidationError:
        return event
    return msgspec.structs.replace(event, data=data, payload=data)


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the server takes this client for."""

    agent_id: str
    tenant: str = ""
    kind: str = ""
    permissions: tuple[str, ...] = ()
