"""The data of recall beside vectors: uses, and the position and the lease of embedding."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import pytest

from memorywall.records.recall import ContextOutcomes, LastUse, UseCounts
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    TENANT,
    StoreCase,
    UndoError,
    at,
    make_entry,
    put,
    remove,
)
from memorywall_testing.embedding import (
    MODEL,
    OTHER,
    acquire_lease,
    add_uses,
    advance,
    position_of,
    put_some,
    put_vectors,
    remove_others,
    uses_of,
    vector_of,
    vectors_of,
)
from memorywall_testing.names import LOOKALIKES


class RecallConformance(StoreCase):
    """`port.Recall`, but for what is said of single vectors."""

    async def test_rolled_back_response_is_not_stored(self, store: Store) -> None:
        (entry,) = await put_some(store, 1)

        async def undone(to: Transaction) -> None:
            await to.recall.put_vectors(MODEL, [vector_of(entry)])
            await to.recall.add_uses({entry.id: 1})
            assert await to.recall.acquire_lease(MODEL, "a", at(0), at(10)) == 0
            assert await to.recall.advance(MODEL, "a", 7)
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert await vectors_of(store, entry) == {}
        assert await uses_of(store, entry) == {}
        assert await position_of(store) == 0
        assert await acquire_lease(store, "b") == 0

    # Models that are not used any more

    async def test_other_models_are_removed_piece_by_piece(self, store: Store) -> None:
        entries = await put_some(store, 7)
        for model, count in ((MODEL, 7), (OTHER, 5), ("none", 4)):
            await put_vectors(
                store, *(vector_of(one, model.encode()) for one in entries[:count]), model=model
            )
        assert await remove_others(store, 4) == 4
        assert await remove_others(store, 4) == 4
        left = [
            *(await vectors_of(store, *entries, model=OTHER)),
            *(await vectors_of(store, *entries, model="none")),
        ]
        assert len(left) == 1
        assert await remove_others(store, 4) == 1
        assert await remove_others(store, 4) == 0
        for model in (OTHER, "none"):
            assert await vectors_of(store, *entries, model=model) == {}
        assert await vectors_of(store, *entries) == {one.id: MODEL.encode() for one in entries}
        await remove(store, *entries)
        assert await vectors_of(store, *entries) == {}

    async def test_a_removed_model_begins_again(self, store: Store) -> None:
        """From the beginning, even while some of its vectors are still there."""
        entries = await put_some(store, 3)
        for model in (MODEL, OTHER):
            assert await acquire_lease(store, "a", model=model) == 0
            await put_vectors(store, *map(vector_of, entries), model=model)
            assert await advance(store, "a", 9, model=model)
        assert await remove_others(store, 1) == 1
        assert await position_of(store, OTHER) == 0
        assert await position_of(store) == 9
        assert not await advance(store, "a", 10, model=OTHER)
        assert await advance(store, "a", 10)
        assert await acquire_lease(store, "b", model=OTHER) == 0
        assert len(await vectors_of(store, *entries, model=OTHER)) == 2
        # The rest is removed with its entries.
        await remove(store, *entries)
        await put(store, *entries)
        assert await vectors_of(store, *entries, model=OTHER) == {}

    async def test_positions_of_other_models_go_where_there_are_no_vectors(
        self, store: Store
    ) -> None:
        assert await acquire_lease(store, "a", model=OTHER) == 0
        assert await advance(store, "a", 5, model=OTHER)
        assert await remove_others(store, 10) == 0
        assert await position_of(store, OTHER) == 0
        assert await acquire_lease(store, "b", model=OTHER) == 0

    # Turns and positions

    async def test_one_at_a_time_has_the_turn(self, store: Store) -> None:
        assert await acquire_lease(store, "a", 0, 10) == 0
        assert await advance(store, "a", 3)
        assert await position_of(store) == 3
        assert await acquire_lease(store, "b", 9.999, 20) is None
        assert not await advance(store, "b", 9)
        assert await acquire_lease(store, "a", 5, 15) == 3
        assert await acquire_lease(store, "b", 14.999, 20) is None
        assert await acquire_lease(store, "b", 15, 25) == 3
        assert not await advance(store, "a", 7)
        assert await acquire_lease(store, "a", 16, 26) is None
        assert await position_of(store) == 3
        assert await advance(store, "b", 4)
        assert await advance(store, "b", 5)
        assert await acquire_lease(store, "a", 99, 100) == 5

    async def test_position_is_not_moved_without_the_lease(self, store: Store) -> None:
        assert not await advance(store, "a", 3)
        (entry,) = await put_some(store, 1)
        await put_vectors(store, vector_of(entry))
        assert not await advance(store, "a", 3)
        assert await position_of(store) == 0
        assert await acquire_lease(store, "a") == 0

    async def test_positions_are_told_apart_by_code_point(self, store: Store) -> None:
        for number, name in enumerate(LOOKALIKES, start=1):
            assert await acquire_lease(store, name, model=name) == 0
            assert await advance(store, name, number, model=name)
        for number, name in enumerate(LOOKALIKES, start=1):
            assert await position_of(store, name) == number
            for other in set(LOOKALIKES) - {name}:
                assert not await advance(store, other, 99, model=name)

    async def test_positions_of_tenants_never_meet(self, store: Store) -> None:
        assert await acquire_lease(store, "a") == 0
        assert await advance(store, "a", 7)
        assert await position_of(store, tenant="globex") == 0
        assert await acquire_lease(store, "b", tenant="globex") == 0
        assert await advance(store, "b", 2, tenant="globex")
        assert await position_of(store) == 7

    # Uses

    async def test_uses_add_up(self, store: Store) -> None:
        one, two, three = await put_some(store, 3)
        await add_uses(store, {one.id: 1, two.id: 2**40})
        await add_uses(store, {one.id: 2, two.id: 1, make_entry().id: 7})
        assert await uses_of(store, one, two, three, make_entry()) == {one.id: 3, two.id: 2**40 + 1}

    async def test_the_last_use_is_that_of_the_creation_until_there_is_one(
        self, store: Store
    ) -> None:
        used, unused = make_entry(created_at=at(1), kind="lesson"), make_entry(created_at=at(2))
        await put(store, used, unused)

        async def last(*ids: str) -> set[LastUse]:
            return set(await store.read(TENANT, lambda to: to.recall.last_uses(ids)))

        expected = LastUse(unused.id, "", unused.namespace, at(2))
        before = LastUse(used.id, "lesson", used.namespace, at(1))
        assert await last(used.id, unused.id, make_entry().id) == {before, expected}
        for now, then in ((at(5), at(5)), (None, at(5)), (at(7), at(7))):

            async def use(to: Transaction, now: str | None = now) -> None:
                await to.recall.add_uses({used.id: 1}, now)

            await store.write(TENANT, use)
            assert await last(used.id) == {before._replace(at=then)}
        # An earlier version has counted uses, and kept no instant.
        await add_uses(store, {unused.id: 1})
        assert await last(unused.id) == {expected._replace(at=None)}
        assert await uses_of(store, used, unused) == {used.id: 3, unused.id: 1}

    async def test_outcomes_of_contexts_add_up(self, store: Store) -> None:
        one, two = await put_some(store, 2)
        gone = make_entry(created_at=at(3))

        async def add(to: Transaction, sign: int = 1) -> None:
            await to.recall.add_outcomes(
                {
                    one.id: ContextOutcomes(sign * 2, sign * 5, sign, sign * 3),
                    gone.id: ContextOutcomes(sign),
                }
            )

        async def counts(tenant: str = TENANT) -> dict[str, UseCounts]:
            ids = [one.id, two.id, gone.id]
            return await store.read(tenant, lambda to: to.recall.uses(ids))

        await store.write(TENANT, add)
        assert await counts() == {one.id: UseCounts(0, ContextOutcomes(2, 5, 1, 3))}
        assert await counts("globex") == {}
        (last,) = await store.read(TENANT, lambda to: to.recall.last_uses([one.id]))
        assert last.at == one.created_at
        await add_uses(store, {one.id: 4, two.id: 1})
        await store.write(TENANT, add)
        expected = UseCounts(4, ContextOutcomes(4, 10, 2, 6))
        assert await counts() == {one.id: expected, two.id: UseCounts(1)}
        await store.write(TENANT, lambda to: add(to, -1))
        assert (await counts())[one.id] == UseCounts(4, ContextOutcomes(2, 5, 1, 3))
        await remove(store, one)
        assert await counts() == {two.id: UseCounts(1)}

    async def test_uses_of_tenants_never_meet(self, store: Store) -> None:
        mine, theirs = make_entry(id="mem_1"), make_entry(id="mem_1", tenant="globex")
        await put(store, mine, theirs)
        await add_uses(store, {"mem_1": 2})
        assert await uses_of(store, mine, tenant="globex") == {}
        await add_uses(store, {"mem_1": 5}, "globex")
        await remove(store, theirs)
        assert await uses_of(store, mine) == {"mem_1": 2}
