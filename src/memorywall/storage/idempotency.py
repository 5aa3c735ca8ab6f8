"""Stored responses: a part of the contract in `storage/port.py`."""

from __future__ import annotations

from typing import Protocol

from memorywall.records.idempotency import IdempotencyRecord


class IdempotencyRepository(Protocol):
    """Stored responses to Idempotency-Keys."""

    async def get(self, principal: str, key: str) -> IdempotencyRecord | None:
        """Returns the record of the key, or None. `entry_ids` contains the entries that still
        exist."""
        ...

    async def put(self, kept: IdempotencyRecord) -> None:
        """Stores a response under a new key."""
        ...

    async def names_key(self, key_id: str) -> bool:
        """Returns whether any stored response is sealed with this data key. Reads all of them."""
        ...

    async def has_older(self, created_before: str) -> bool:
        """Returns whether any response was stored before an instant."""
        ...

    async def prune(self, created_before: str) -> int:
        """Removes responses that were stored before an instant; returns their number."""
        ...

    async def remove(self, principal: str, limit: int) -> int:
        """Removes up to `limit` of the principal's stored responses; returns their number."""
        ...
