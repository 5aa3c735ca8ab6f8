"""Wrapped data keys."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from memorywall.records.idempotency import DataKey, KeyPurpose
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall_testing.base import TENANT, StoreCase, Stores, at, write_each

REPLACED = KeyPurpose.REPLACED


def _data_key(number: int, tenant: str = TENANT, owner: str = "") -> DataKey:
    """A data key, newer by id than those with smaller numbers."""
    return DataKey(
        tenant=tenant,
        id=f"dek_{number:026d}",
        owner=owner,
        wrapped=bytes([0, 255, number]),
        wrapped_by=f"kek-{number}",
        created_at=at(number),
    )


async def _add(store: Store, *data_keys: DataKey) -> None:
    await write_each(store, data_keys, lambda to, data_key: to.data_keys.add(data_key))


async def _get(store: Store, data_key: DataKey) -> DataKey | None:
    tenant = data_key.tenant
    return await store.read(tenant, lambda to: to.data_keys.get(data_key.id))


async def _current(store: Store, tenant: str = TENANT, owner: str = "") -> DataKey | None:
    return await store.read(tenant, lambda to: to.data_keys.current(owner))


async def _remove(store: Store, owner: str, tenant: str = TENANT) -> int:
    return await store.write(tenant, lambda to: to.data_keys.remove(owner))


class DataKeysConformance(StoreCase):
    """`port.DataKeyRepository`."""

    async def test_without_keys(self, store: Store) -> None:
        assert await store.read(REGISTRY, lambda to: to.data_keys.any()) is None
        assert await _current(store) is None
        assert await _get(store, _data_key(1)) is None

    async def test_every_field_of_a_data_key_comes_back(self, store: Store) -> None:
        data_key = _data_key(1)
        await _add(store, data_key)
        assert await _get(store, data_key) == data_key
        assert await _get(store, replace(data_key, tenant="globex")) is None
        assert await _get(store, replace(data_key, id=data_key.id.upper())) is None

    async def test_the_current_one_is_the_newest_of_the_tenant(self, store: Store) -> None:
        numbers = list(range(1, 6))
        random.Random(3).shuffle(numbers)
        await _add(store, *(_data_key(number) for number in numbers), _data_key(9, "globex"))
        assert await _current(store) == _data_key(5)
        assert await _current(store, "globex") == _data_key(9, "globex")
        for number in numbers:
            assert await _get(store, _data_key(number)) == _data_key(number)

    async def test_the_current_one_is_that_of_the_subject(self, store: Store) -> None:
        assert await _current(store, owner="ada") is None
        data_keys = [
            _data_key(1),
            _data_key(2, owner="ada"),
            _data_key(3, owner="ada"),
            _data_key(4, owner="ADA"),
            _data_key(5, "globex", "ada"),
            _data_key(6, owner="grace"),
        ]
        await _add(store, *data_keys)
        assert await _current(store) == data_keys[0]
        assert await _current(store, owner="ada") == data_keys[2]
        assert await _current(store, owner="ADA") == data_keys[3]
        assert await _current(store, "globex", "ada") == data_keys[4]
        assert await _current(store, "globex") is None
        assert await _current(store, owner="ad") is None
        for data_key in data_keys:
            assert await _get(store, data_key) == data_key

    async def test_all_keys_of_a_subject_are_destroyed_and_no_others(self, store: Store) -> None:
        destroyed = [_data_key(number, owner="ada") for number in (2, 3)]
        kept = [
            _data_key(1),
            _data_key(4, owner="ADA"),
            _data_key(5, "globex", "ada"),
            _data_key(6, owner="grace"),
        ]
        await _add(store, *destroyed, *kept)
        assert await _remove(store, "ada") == 2
        assert await _remove(store, "ada") == 0
        assert await _remove(store, "nobody") == 0
        assert await _current(store, owner="ada") is None
        assert [await _get(store, one) for one in destroyed] == [None, None]
        assert [await _get(store, one) for one in kept] == kept
        again = _data_key(7, owner="ada")
        await _add(store, again)
        assert await _current(store, owner="ada") == again

    async def test_a_transaction_sees_that_it_has_destroyed_a_key(self, store: Store) -> None:
        data_key = _data_key(1, owner="ada")
        await _add(store, data_key)

        async def script(transaction: Transaction) -> list[DataKey | None]:
            keys = transaction.data_keys
            seen = [await keys.get(data_key.id), await keys.current("ada")]
            assert await keys.remove("ada") == 1
            return [*seen, await keys.get(data_key.id), await keys.current("ada")]

        assert await store.write(TENANT, script) == [data_key, data_key, None, None]

    async def test_another_process_sees_that_a_key_is_destroyed(self, stores: Stores) -> None:
        here, beside = await stores.open(), await stores.open(beside=True)
        data_key = _data_key(1, owner="ada")
        await _add(here, data_key)

        async def look(transaction: Transaction) -> DataKey | None:
            return await transaction.data_keys.get(data_key.id)

        assert await here.write(TENANT, look) == data_key
        assert await _remove(beside, "ada") == 1
        assert await here.write(TENANT, look) is None

    async def test_any_is_one_of_them(self, store: Store) -> None:
        data_keys = [_data_key(1), _data_key(2, "globex")]
        await _add(store, data_keys[1])
        assert await store.read(REGISTRY, lambda to: to.data_keys.any()) == data_keys[1]
        await _add(store, data_keys[0])
        assert await store.read(REGISTRY, lambda to: to.data_keys.any()) in data_keys

    async def test_data_keys_are_wrapped_anew_one_by_one(self, store: Store) -> None:
        numbers = [1, 2, 3, 4]
        mine = [replace(_data_key(number), wrapped_by="old") for number in numbers]
        await _add(store, *mine, replace(_data_key(5, "globex"), wrapped_by="old"))

        async def left(after: str = "", limit: int = 9) -> list[DataKey]:
            return await store.read(
                TENANT, lambda to: to.data_keys.wrapped_otherwise("new", after, limit)
            )

        assert await left() == mine
        assert await left(mine[1].id) == mine[2:]
        assert await left(limit=2) == mine[:2]
        changed = replace(mine[1], wrapped=b"other", wrapped_by="new")
        await store.write(TENANT, lambda to: to.data_keys.replace(changed))
        assert await _get(store, mine[1]) == changed
        assert await left() == [mine[0], *mine[2:]]
        counted = await store.read(TENANT, lambda to: to.data_keys.wrappers())
        assert counted == {"old": 3, "new": 1}
        counted = await store.read(REGISTRY, lambda to: to.data_keys.wrappers())
        assert counted == {"old": 4, "new": 1}
        with pytest.raises(LookupError):
            await store.write("globex", lambda to: to.data_keys.replace(changed))

    async def test_a_replaced_key_opens_until_it_is_discarded(self, store: Store) -> None:
        old, new, foreign = _data_key(1, owner="ada"), _data_key(2, owner="ada"), _data_key(1, "g")
        replaced = replace(old, wrapped=b"again", purpose=REPLACED)
        await _add(store, old, new, foreign)

        async def look(to: Transaction) -> list[DataKey]:
            assert await to.data_keys.current("ada") == new
            return await to.data_keys.replaced()

        assert await store.read(TENANT, look) == []
        await store.write(TENANT, lambda to: to.data_keys.replace(replaced))
        assert await store.read(TENANT, look) == [replaced]
        assert await store.read("g", lambda to: to.data_keys.replaced()) == []
        await store.write(TENANT, lambda to: to.data_keys.discard(old.id))
        assert await store.read(TENANT, look) == []
        assert await _get(store, foreign) == foreign
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.data_keys.discard(old.id))
        third = replace(_data_key(3, owner="ada"), purpose=REPLACED)
        await _add(store, third)
        assert await _remove(store, "ada") == 2

    async def test_the_first_key_of_a_tenant_stays_the_first(self, store: Store) -> None:
        async def first() -> DataKey | None:
            return await store.read(TENANT, lambda to: to.data_keys.first())

        digest = replace(_data_key(1), purpose=KeyPurpose.DIGEST)
        await _add(store, digest, _data_key(2, owner="ada"), _data_key(1, "globex"))
        assert await first() is None
        keys = [_data_key(number) for number in (3, 4)]
        await _add(store, *reversed(keys))
        for purpose in (KeyPurpose.SEALING, REPLACED, KeyPurpose.RETIRED):
            changed = replace(keys[0], purpose=purpose)
            await store.write(TENANT, lambda to, key=changed: to.data_keys.replace(key))  # type: ignore[misc]
            assert await first() == changed
        assert await _current(store) == keys[1]
