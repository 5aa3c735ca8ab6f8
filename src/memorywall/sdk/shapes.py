"""What the SDK gives back."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any

import msgspec

from memorywall.records.entry import EMPTY_SCOPE, Priority, Provenance, Scope, Sensitivity
from memorywall.records.tier import Tier
from memorywall.wire.agents import EventData, EventView
from memorywall.wire.recall import Explain, GuidanceView
from memorywall.wire.work import IntentView


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


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was found; `explain`, where it was asked for, is what its score is made of."""

    entry: MemoryEntry
    score: float
    explain: Explain | None = None


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

    guidance: tuple[GuidanceView, ...]

    def __new__(cls, text: str, *, guidance: Iterable[GuidanceView]) -> ReshapedQuery:
        reshaped = super().__new__(cls, text)
        reshaped.guidance = tuple(guidance)
        return reshaped


class EventPage(list[EventView]):
    """Events in order; `next` is the `after` with which to go on."""

    def __init__(self, events: Iterable[EventView], *, next: int) -> None:
        super().__init__(events)
        self.next = next


class IntentPage(list[IntentView]):
    """One page of intents, newest first; `total` counts those on all pages."""

    def __init__(
        self, intents: Iterable[IntentView], *, total: int, limit: int, offset: int
    ) -> None:
        super().__init__(intents)
        self.total = total
        self.limit = limit
        self.offset = offset


def read_event(event: EventView) -> EventView:
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
