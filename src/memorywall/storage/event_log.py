"""How the event log is written: a part of the contract in `storage/port.py`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from memorywall.records.event import Event
from memorywall.records.event_chain import DigestKey, LogHead, StoredEvent

if TYPE_CHECKING:
    from memorywall.storage.port import Transaction


class EventLog(Protocol):
    """The hash chain of each tenant's log; its bytes are made in `records/event_chain.py`."""

    async def head(self) -> LogHead:
        """The end of the tenant's log, after what was appended in this transaction; `seq` 0 and
        `NO_HASH` where nothing is logged. Remembered for as long as the transaction lasts."""
        ...

    async def append(self, stored: StoredEvent) -> None:
        """Adds an event that follows `head`, with its content, both byte for byte."""
        ...

    async def seqs_of_entries(self, entry_ids: Collection[str]) -> list[int]:
        """The numbers of all events about these entries, in order. It reads the whole log of the
        tenant."""
        ...

    async def erase_content(self, seqs: Collection[int]) -> int:
        """Deletes the contents of events with their salts, and what the queries' columns repeat of
        them; returns how many contents went. The envelopes stay, but for names that a client gave
        for a task or an intent. The bytes leave the files soon after:
        see `Store.is_erasure_complete`."""
        ...

    async def legacy(self, limit: int) -> list[Event]:
        """Up to `limit` events that were logged before the chain and have not been moved into it,
        in order."""
        ...

    async def drop_legacy(self, through: int) -> None:
        """Removes those up to a `seq`, which have been appended to the chain."""
        ...


class DigestKeys(Protocol):
    """Unwraps digest keys. Not a part of a backend: what opens a transaction binds it."""

    async def digest_key(self, transaction: Transaction, now: str) -> DigestKey:
        """The tenant's current digest key, which this transaction adds where there is none.

        now: the instant at which one that is new is made
        Raises KeyUnavailableError.
        """
        ...
