"""Declared records: what holds for each of them, whatever it is."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec
import pytest

from memorywall.records.idempotency import DataKey
from memorywall.records.sealed import SealedPart
from memorywall.storage.port import Store, Transaction
from memorywall.storage.sql.record_spec import RecordSpec
from memorywall.storage.sql.record_table import RECORDS
from memorywall_testing.base import AGENT, NOW, TENANT, StoreCase, UndoError
from memorywall_testing.names import LOOKALIKES

Spec = RecordSpec[Any]
_OTHER_TENANT = "globex"
_numbers = itertools.count(1)


def make_record(spec: Spec, **fields: Any) -> Any:
    """A record with something in every field that it must have, newer by id than those before."""
    number = next(_numbers)
    made: dict[str, Any] = {"tenant": TENANT}
    for one in msgspec.structs.fields(spec.struct):
        if one.required and one.name != "tenant":
            made[one.name] = _something(one.type, f"{one.name} {number}", number)
    for name in spec.key:
        made[name] = f"{name}_{number:026d}"
    if spec.parents:
        made[spec.parents[0].column] = "parent_1"
    return spec.struct(**{**made, **fields})


def _something(kind: Any, text: str, number: int) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return number if kind is int else text


async def put_records(store: Store, spec: Spec, *records: Any, tenant: str = TENANT) -> None:
    """Inserts records in one transaction."""

    async def script(transaction: Transaction) -> None:
        for record in records:
            await transaction.records(spec).insert(record)

    await store.write(tenant, script)


async def get_record(store: Store, spec: Spec, record: Any, tenant: str = TENANT) -> Any:
    """Returns the stored record with a record's key."""
    return await store.read(tenant, lambda to: to.records(spec).get(*spec.key_of(record)))


async def page(store: Store, spec: Spec, **options: Any) -> Sequence[Any]:
    """One page."""
    return await store.read(TENANT, lambda to: to.records(spec).page(**options))


async def add_data_key(store: Store, key_id: str, owner: str) -> None:
    """Adds a data key of an agent."""
    key = DataKey(
        tenant=TENANT, id=key_id, owner=owner, wrapped=b"w", wrapped_by="k", created_at=NOW
    )
    await store.write(TENANT, lambda to: to.data_keys.add(key))


class RecordsConformance(StoreCase):
    """`RecordRepository` of every declared record."""

    @pytest.fixture(params=list(RECORDS))
    def spec(self, request: pytest.FixtureRequest) -> Spec:
        """The declaration that a case is about."""
        return RECORDS[request.param]

    async def test_an_inserted_record_comes_back(self, store: Store, spec: Spec) -> None:
        first, second = make_record(spec), make_record(spec)
        assert await get_record(store, spec, first) is None
        await put_records(store, spec, second, first)
        assert await get_record(store, spec, first) == first
        assert list(await page(store, spec)) == [first, second]

    async def test_several_records_are_read_by_their_keys(self, store: Store, spec: Spec) -> None:
        records = [make_record(spec) for _ in range(3)]
        await put_records(store, spec, *records)
        foreign = msgspec.structs.replace(records[0], tenant=_OTHER_TENANT)
        await put_records(store, spec, foreign, tenant=_OTHER_TENANT)
        keys = [spec.key_of(one)[-1] for one in (records[0], records[2], make_record(spec))]
        if len(spec.key) > 1:
            with pytest.raises(LookupError):
                await store.read(TENANT, lambda to: to.records(spec).get_many(keys))
            return
        found = await store.read(TENANT, lambda to: to.records(spec).get_many(keys))
        assert sorted(found, key=spec.key_of) == [records[0], records[2]]
        assert await store.read(TENANT, lambda to: to.records(spec).get_many([])) == []

    async def test_numbers_are_summed_over_a_tenant(self, store: Store, spec: Spec) -> None:
        none = await store.read(TENANT, lambda to: to.records(spec).sums())
        assert none == dict.fromkeys(spec.numbers, 0)
        records = [make_record(spec) for _ in range(2)]
        await put_records(store, spec, *records)
        foreign = msgspec.structs.replace(records[0], tenant=_OTHER_TENANT)
        await put_records(store, spec, foreign, tenant=_OTHER_TENANT)
        sums = await store.read(TENANT, lambda to: to.records(spec).sums())
        if spec.table == "session_counters":
            assert sums["last_sequence"] == sum(one.last_sequence for one in records)
        assert list(sums) == list(spec.numbers)

    async def test_replaced_record_is_returned_by_reads(self, store: Store, spec: Spec) -> None:
        first, other = make_record(spec), make_record(spec)
        await put_records(store, spec, first, other)
        changed = make_record(spec, **dict(zip(spec.key, spec.key_of(first), strict=True)))
        await store.write(TENANT, lambda to: to.records(spec).replace(changed))
        assert await get_record(store, spec, first) == changed
        assert await get_record(store, spec, other) == other

    async def test_missing_record_is_not_replaced(self, store: Store, spec: Spec) -> None:
        record = make_record(spec)
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.records(spec).replace(record))
        assert await get_record(store, spec, record) is None

    async def test_a_removed_record_is_gone(self, store: Store, spec: Spec) -> None:
        gone, kept = make_record(spec), make_record(spec)
        await put_records(store, spec, gone, kept)
        key = spec.key_of(gone)
        assert await store.write(TENANT, lambda to: to.records(spec).remove(*key))
        assert not await store.write(TENANT, lambda to: to.records(spec).remove(*key))
        assert list(await page(store, spec)) == [kept]

    async def test_record_is_visible_only_in_its_tenant(self, store: Store, spec: Spec) -> None:
        own = make_record(spec)
        others = msgspec.structs.replace(own, tenant=_OTHER_TENANT)
        await put_records(store, spec, own)
        await put_records(store, spec, others, tenant=_OTHER_TENANT)
        assert await get_record(store, spec, own) == own
        assert await get_record(store, spec, own, _OTHER_TENANT) == others
        key = spec.key_of(own)
        assert await store.write(_OTHER_TENANT, lambda to: to.records(spec).remove(*key))
        assert list(await page(store, spec)) == [own]

    async def test_rolled_back_write_is_absent(self, store: Store, spec: Spec) -> None:
        record = make_record(spec)

        async def undone(to: Transaction) -> None:
            await to.records(spec).insert(record)
            assert await to.records(spec).get(*spec.key_of(record)) == record
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert await get_record(store, spec, record) is None

    async def test_records_come_in_pages(self, store: Store, spec: Spec) -> None:
        records = [make_record(spec) for _ in range(5)]
        await put_records(store, spec, *reversed(records))
        after = spec.key_of(records[1])[-1]
        assert list(await page(store, spec, limit=2)) == records[:2]
        assert list(await page(store, spec, after=after, limit=2)) == records[2:4]

    async def test_the_records_of_a_parent_are_listed(self, store: Store, spec: Spec) -> None:
        none = {parent.column: None for parent in spec.parents} if len(spec.parents) > 1 else {}
        for parent in spec.parents:
            records = [
                make_record(spec, **{**none, parent.column: name}) for name in LOOKALIKES[:4]
            ]
            await put_records(store, spec, *records)
            for record in records:
                of = (parent.column, getattr(record, parent.column))
                assert list(await page(store, spec, parent=of)) == [record]

    async def test_the_records_in_a_status_are_listed(self, store: Store, spec: Spec) -> None:
        if not spec.status:
            assert "list_in" not in vars(spec)
            return
        (kind,) = (
            one.type for one in msgspec.structs.fields(spec.struct) if one.name == spec.status
        )
        words = list(kind)[:3] if isinstance(kind, type) and issubclass(kind, Enum) else ["a", "B"]
        records = {word: make_record(spec, **{spec.status: word}) for word in words}
        await put_records(store, spec, *records.values())
        for word, record in records.items():
            value = word.value if isinstance(word, Enum) else word
            assert list(await page(store, spec, status=value)) == [record]
            for parent in spec.parents[:1]:
                of = (parent.column, "parent_1")
                assert list(await page(store, spec, parent=of, status=value)) == [record]

    async def test_a_sealed_part_comes_back_and_nothing_counts_as_unsealed(
        self, store: Store, spec: Spec
    ) -> None:
        if not spec.sealed:
            record = make_record(spec)
            await put_records(store, spec, record)
            assert await store.read(TENANT, lambda to: to.records(spec).unsealed(9)) == []
            return
        sealed = make_record(spec, sealed=SealedPart("dek_1", bytes(range(256))), **spec.empty)
        empty = make_record(spec, **spec.empty)
        clear = make_record(spec, **{**spec.empty, **_clear(spec)})
        await put_records(store, spec, sealed, empty, clear)
        for record in (sealed, empty, clear):
            assert await get_record(store, spec, record) == record
        assert await store.read(TENANT, lambda to: to.records(spec).unsealed(9)) == [clear]
        again = msgspec.structs.replace(clear, sealed=SealedPart("dek_1", b"s"), **spec.empty)
        await store.write(TENANT, lambda to: to.records(spec).replace(again))
        assert await store.read(TENANT, lambda to: to.records(spec).unsealed(9)) == []

    async def test_data_sealed_for_an_agent_is_erased(self, store: Store, spec: Spec) -> None:
        async def erase(owner: str, limit: int) -> int:
            return await store.write(TENANT, lambda to: to.records(spec).erase_sealed(owner, limit))

        if not spec.sealed:
            assert await erase(AGENT, 9) == 0
            return
        await add_data_key(store, "dek_1", AGENT)
        await add_data_key(store, "dek_2", AGENT)
        await add_data_key(store, "dek_3", "eve")
        made = [
            make_record(spec, sealed=SealedPart(f"dek_{number}", b"secret"), **spec.empty)
            for number in (1, 2, 3)
        ]
        await put_records(store, spec, *made)
        assert await erase(AGENT, 1) == 1
        assert await erase(AGENT, 9) == 1
        assert await erase(AGENT, 9) == 0
        erased = [msgspec.structs.replace(one, sealed=None) for one in made[:2]]
        assert list(await page(store, spec)) == [*erased, made[2]]
        assert await store.read(TENANT, lambda to: to.records(spec).unsealed(9)) == []


def _clear(spec: Spec) -> dict[str, Any]:
    """Something in the clear in one of the fields that are to be sealed."""
    name = spec.sealed[0]
    return {name: {"a": 1} if isinstance(spec.empty[name], dict) else "in the clear"}
