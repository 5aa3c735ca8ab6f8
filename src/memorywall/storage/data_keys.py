"""Wrapped data keys: the contract of a backend for them, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from memorywall.records.idempotency import DataKey, KeyPurpose

Row = tuple[Any, ...]


class DataKeyRepository(Protocol):
    """Wrapped data keys."""

    async def get(self, key_id: str) -> DataKey | None:
        """Returns the data key with this id, or None."""
        ...

    async def current(
        self, owner: str = "", purpose: KeyPurpose = KeyPurpose.SEALING
    ) -> DataKey | None:
        """Returns the newest data key of an agent, or of the tenant as a whole, or None."""
        ...

    async def add(self, data_key: DataKey) -> None:
        """Adds a data key."""
        ...

    async def remove(self, owner: str) -> int:
        """Destroys all sealing keys of a subject, replaced ones too; returns their number. Data
        that is sealed with them cannot be opened afterwards. Digest keys stay."""
        ...

    async def wrappers(self) -> dict[str, int]:
        """Returns the number of data keys that each key-encryption key wraps, by its id: those of
        the tenant, or of all tenants in a transaction of the registry."""
        ...

    async def wrapped_otherwise(self, wrapped_by: str, after: str, limit: int) -> list[DataKey]:
        """Returns up to `limit` data keys of the tenant with an id greater than `after` that
        another key-encryption key than `wrapped_by` wraps, by id."""
        ...

    async def replace(self, data_key: DataKey) -> None:
        """Replaces the wrapped form and the purpose of a data key. Raises LookupError if the key is
        absent."""
        ...

    async def replaced(self) -> list[DataKey]:
        """Returns the data keys of the tenant with the purpose REPLACED, by id."""
        ...

    async def first(self) -> DataKey | None:
        """Returns the oldest data key of the tenant as a whole that has or had the purpose SEALING,
        or None."""
        ...

    async def discard(self, key_id: str) -> None:
        """Destroys one data key. Raises LookupError if the key is absent."""
        ...

    async def any(self) -> DataKey | None:
        """Returns any data key of any tenant, to test the key-encryption key, or None."""
        ...


def data_key_from_row(row: Sequence[Any] | None) -> DataKey | None:
    """Converts a row of the statements of `data_keys.sql` to a data key; None if there is no
    row."""
    if row is None:
        return None
    return DataKey(
        tenant=row[0],
        id=row[1],
        owner=row[2],
        wrapped=row[3],
        wrapped_by=row[4],
        created_at=row[5],
        purpose=KeyPurpose(row[6] or KeyPurpose.SEALING),
    )


def purpose_to_cell(purpose: KeyPurpose) -> str | None:
    """Converts a purpose to its column value: None means sealing, for rows older than the
    column."""
    return None if purpose is KeyPurpose.SEALING else purpose.value


def data_key_to_row(data_key: DataKey) -> Row:
    """Returns the bindings of the statement `add` of `data_keys.sql`."""
    return (
        data_key.tenant,
        data_key.id,
        data_key.owner,
        data_key.wrapped,
        data_key.wrapped_by,
        data_key.created_at,
        purpose_to_cell(data_key.purpose),
    )


def data_key_replacement(data_key: DataKey) -> Row:
    """Returns the bindings of the statement `replace` of `data_keys.sql` after the tenant."""
    return (
        data_key.id,
        data_key.wrapped,
        data_key.wrapped_by,
        purpose_to_cell(data_key.purpose),
    )
