"""Writing the event log, reading all of it, and following it: a part of the contract in
`storage/port.py`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from memorywall.records.event import Event
from memorywall.records.event_chain import DigestKey, LogHead, StoredEvent

if TYPE_CHECKING:
    from memorywall.storage.port import Transaction


class EventLog(Protocol):
    """The hash chain of each tenant's log; `records/event_chain.py` makes its bytes."""

    async def head(self) -> LogHead:
        """Returns the end of the tenant's log, including the events of this transaction; `seq` 0
        and `NO_HASH` for an empty log. Cached for the duration of the transaction."""
        ...

    async def append(self, stored: StoredEvent) -> None:
        """Appends an event that follows `head`, with its content, both byte for byte."""
        ...

    async def list_from(self, seq: int, limit: int) -> list[Event]:
        """Returns events of the tenant's whole log from a `seq` on, in order."""
        ...

    async def seqs_of_entries(self, entry_ids: Collection[str]) -> list[int]:
        """Returns the numbers of all events about these entries, in order. Reads the whole log of
        the tenant."""
        ...

    async def containing(
        self, texts: Collection[bytes], after: int, limit: int, kind: str | None = None
    ) -> list[Event]:
        """Returns up to `limit` events with `seq` greater than `after` whose content contains any
        of these bytes, in order; optionally only those of a type. Reads all contents of the
        tenant."""
        ...

    async def list_forgotten(self, texts: Collection[bytes], since: str) -> list[Event]:
        """Returns the events `subject.forgotten` from an instant on, in stored form, whose content
        contains any of these bytes, in order of their instants. Reads no other event."""
        ...

    async def erase_content(self, seqs: Collection[int]) -> int:
        """Deletes the contents of events with their salts, and the copies of content in query
        columns; returns the number of deleted contents. The envelopes stay, except for task and
        intent ids that a client chose. The bytes leave the files soon after: see
        `Store.is_erasure_complete`."""
        ...

    async def legacy(self, limit: int) -> list[Event]:
        """Returns up to `limit` events that were logged before the chain and are not in it yet, in
        order."""
        ...

    async def drop_legacy(self, through: int) -> None:
        """Removes the legacy events up to a `seq`, which have been appended to the chain."""
        ...


class DigestKeys(Protocol):
    """Unwraps digest keys. Not a part of a backend: the code that opens a transaction binds it."""

    async def digest_key(self, transaction: Transaction, now: str) -> DigestKey:
        """Returns the tenant's current digest key. The transaction adds a key if there is none.

        now: the creation instant of a new key

        Raises KeyUnavailableError.
        """
        ...


class Watch(Protocol):
    """Wakes a reader that follows the log."""

    async def changed(self, timeout: float) -> None:
        """Returns after a commit since the last call, or after `timeout` seconds. May return
        without a commit; must never miss one."""
        ...

    def close(self) -> None:
        """Ends the watch."""
        ...
