"""What a backend owes `verify`: long sequential reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.idempotency import DataKey


class ConsistencyReader(Protocol):
    """Long sequential reads for `verify`, on one snapshot; not for the path of a request."""

    def tenants(self) -> list[str]:
        """All tenants' names."""
        ...

    def tenants_of_rows(self) -> list[str]:
        """The names that entries and events give as their tenant."""
        ...

    def entries(self, tenant: str) -> Iterator[Entry]:
        """Every entry there is, expired ones too, by id."""
        ...

    def events(self, tenant: str) -> Iterator[Event]:
        """Every event, by entry id and within that by `seq`."""
        ...

    def log(self, tenant: str) -> Iterator[StoredEvent]:
        """Every event as it is stored, by `seq`."""
        ...

    def data_keys(self, tenant: str) -> list[DataKey]:
        """The wrapped data keys of the tenant."""
        ...

    def sizes(self) -> tuple[int, int]:
        """How many entries and how many events there are."""
        ...

    def index_problems(self) -> Iterable[str]:
        """What does not agree between the entries and each index, tag and count over them."""
        ...

    def close(self) -> None:
        """Lets the snapshot go."""
        ...
