"""The contract of a backend for `verify`: long sequential reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import msgspec

from memorywall.records.attachment import Attachment
from memorywall.records.entry import Entry
from memorywall.records.event import Event
from memorywall.records.event_chain import StoredEvent
from memorywall.records.idempotency import DataKey
from memorywall.records.recall import StoredSegment

UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, LookupError)
"""Errors of the conversion of a row that no writer can have written."""


class ConsistencyReader(Protocol):
    """Long sequential reads for `verify`, on one snapshot. Requests must not use them.

    Each read raises StoreDamagedError if the database or a row cannot be read.
    """

    def file_problems(self) -> Iterable[str]:
        """Yields the defects of its files that the database itself finds. Raises nothing."""
        ...

    def tenants(self) -> list[str]:
        """Returns all tenants' names."""
        ...

    def tenants_of_rows(self) -> list[str]:
        """Returns the tenant names in entries and events."""
        ...

    def entries(self, tenant: str) -> Iterator[Entry]:
        """Yields every entry, including expired entries, by id."""
        ...

    def versions(self, tenant: str) -> Iterator[Entry]:
        """Yields every earlier version of every entry, by id and then by version."""
        ...

    def attachments(self, tenant: str) -> Iterator[tuple[Attachment, list[bytes]]]:
        """Yields every attachment with its sealed chunks in order, by id."""
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

    def segments(self, tenant: str) -> Iterator[StoredSegment]:
        """Yields every index segment."""
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
