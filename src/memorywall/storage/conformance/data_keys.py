"""Wrapped data keys."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random

from memorywall.records.idempotency import DataKey
from memorywall.storage.conformance.base import TENANT, StoreCase, at
from memorywall.storage.port import Store, Transaction


def _data_key(number: int, tenant: str = TENANT) -> DataKey:
    """A data key, newer by id than those with smaller numbers."""
    return DataKey(
        tenant=tenant,
        id=f"dek_{number:026d}",
        wrapped=bytes([0, 255, number]),
        wrapped_by=f"kek-{number}",
        created_at=at(number),
    )


async def _add(store: Store, *data_keys: DataKey) -> None:
    async def script(transaction: Transaction) -> None:
        for data_key in data_keys:
            await transaction.data_keys.add(data_key)

    await store.write(script)


async def _get(store: Store, data_key: DataKey) -> DataKey | None:
    return await store.read(lambda to: to.data_keys.get(data_key.tenant, data_key.id))


class DataKeysConformance(StoreCase):
    """`port.DataKeys`."""

    async def test_without_keys(self, store: Store) -> None:
        assert await store.read(lambda to: to.data_keys.any()) is None
        assert await store.read(lambda to: to.data_keys.current(TENANT)) is None
        assert await store.read(lambda to: to.data_keys.get(TENANT, "dek_1")) is None

    async def test_every_field_of_a_data_key_comes_back(self, store: Store) -> None:
        data_key = _data_key(1)
        await _add(store, data_key)
        assert await store.read(lambda to: to.data_keys.get(TENANT, data_key.id)) == data_key
        assert await store.read(lambda to: to.data_keys.get("globex", data_key.id)) is None
        assert await store.read(lambda to: to.data_keys.get(TENANT, data_key.id.upper())) is None

    async def test_the_current_one_is_the_newest_of_the_tenant(self, store: Store) -> None:
        numbers = list(range(1, 6))
        random.Random(3).shuffle(numbers)
        await _add(store, *(_data_key(number) for number in numbers), _data_key(9, "globex"))
        assert await store.read(lambda to: to.data_keys.current(TENANT)) == _data_key(5)
        assert await store.read(lambda to: to.data_keys.current("globex")) == _data_key(9, "globex")
        for number in numbers:
            assert await _get(store, _data_key(number)) == _data_key(number)

    async def test_any_is_one_of_them(self, store: Store) -> None:
        data_keys = [_data_key(1), _data_key(2, "globex")]
        await _add(store, data_keys[1])
        assert await store.read(lambda to: to.data_keys.any()) == data_keys[1]
        await _add(store, data_keys[0])
        assert await store.read(lambda to: to.data_keys.any()) in data_keys
