"""The contract of a backend for `verify`: long sequential reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.idempotency import DataKey


class ConsistencyReader(Protocol):
    """Long sequential reads for `verify`, on one snapshot. Requests must not use them."""

    def tenants(self) -> list[str]:
        """Returns all tenants' names."""
        ...

    def tenants_of_rows(self) -> list[str]:
        """Returns the tenant names in entries and events."""
        ...

    def entries(self, tenant: str) -> Iterator[Entry]:
        """Yields every entry, including expired entries, by id."""
        ...

    def events(self, tenant: str) -> Iterator[Event]:
        """Yields every event, by entry id and then by `seq`."""
        ...

    def log(self, tenant: str) -> Iterator[StoredEvent]:
        """Yields every event as it is stored, by `seq`."""
        ...

    def data_keys(self, tenant: str) -> list[DataKey]:
        """Yields the wrapped data keys of the tenant."""
        ...

    def sizes(self) -> tuple[int, int]:
        """Returns the number of entries and the number of events."""
        ...

    def index_problems(self) -> Iterable[str]:
        """Yields the differences between the entries and every index, tag and count derived from
        them."""
        ...

    def close(self) -> None:
        """Closes the snapshot."""
        ...
