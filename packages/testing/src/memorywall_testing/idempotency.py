"""Kept replies, and how they are blanked with the entries they show."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec
import pytest

from memorywall.records.entry import Entry
from memorywall.records.idempotency import IdempotencyRecord
from memorywall.storage.port import Store, Transaction
from memorywall_testing import base
from memorywall_testing.base import (
    NOW,
    TENANT,
    StoreCase,
    at,
    make_entry,
    make_reply,
    put,
    remove,
    write_each,
)
from memorywall_testing.names import LOOKALIKES


async def _keep(store: Store, *replies: IdempotencyRecord) -> None:
    await write_each(store, replies, lambda to, kept: to.replies.put(kept))


async def _kept(store: Store, kept: IdempotencyRecord) -> IdempotencyRecord | None:
    """Returns the stored record, as if all its entries existed."""
    read = await store.read(kept.tenant, lambda to: to.replies.get(kept.principal, kept.key))
    return read if read is None else replace(read, entry_ids=kept.entry_ids)


class IdempotencyConformance(StoreCase):
    """`port.IdempotencyRepository`, and what `Entries.remove` does to them."""

    async def test_every_field_of_a_reply_comes_back(self, store: Store) -> None:
        assert await _kept(store, make_reply()) is None
        replies = [
            make_reply(),
            make_reply("empty", reply=b"", status=204),
            make_reply("none", reply=None),
        ]
        await _keep(store, *replies)
        for kept in replies:
            assert await _kept(store, kept) == kept

    async def test_a_key_is_each_principals_own(self, store: Store) -> None:
        replies = [make_reply(name, status=n) for n, name in enumerate(LOOKALIKES)]
        replies += [make_reply(principal=name, status=n) for n, name in enumerate(LOOKALIKES)]
        replies += [make_reply(tenant="globex", status=7)]
        await _keep(store, *replies)
        for kept in replies:
            assert await _kept(store, kept) == kept

    async def test_second_response_does_not_replace_the_first(self, store: Store) -> None:
        await _keep(store, make_reply())
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _keep(store, make_reply(reply=b"other"))
        assert await _kept(store, make_reply()) == make_reply()

    async def test_removing_an_entry_blanks_every_reply_that_shows_it(self, store: Store) -> None:
        await self._check_blanks(store, lambda gone: remove(store, gone))

    async def test_removing_versions_blanks_every_reply_that_shows_the_entry(
        self, store: Store
    ) -> None:
        await self._check_blanks(
            store,
            lambda gone: store.write(TENANT, lambda to: to.history.remove(gone.id, (1,))),
        )

    async def _check_blanks(
        self, store: Store, remove_of: Callable[[Entry], Awaitable[None]]
    ) -> None:
        gone, stays = make_entry(), make_entry()
        await put(store, gone, stays)
        showing = [
            make_reply("only", entry_ids=(gone.id,)),
            make_reply("both", entry_ids=(stays.id, gone.id)),
            make_reply("both", entry_ids=(gone.id, stays.id), principal="grace"),
        ]
        others = [
            make_reply("other", entry_ids=(stays.id,)),
            make_reply("none"),
            make_reply("only", entry_ids=(gone.id,), tenant="globex"),
        ]
        await _keep(store, *showing, *others)
        await remove_of(gone)
        for kept in showing:
            assert await _kept(store, kept) == replace(kept, reply=None)
        for kept in others:
            assert await _kept(store, kept) == kept

    async def test_stored_response_lists_its_remaining_entries(self, store: Store) -> None:
        async def ids(kept: IdempotencyRecord) -> set[str]:
            read = await store.read(kept.tenant, lambda to: to.replies.get("ada", kept.key))
            assert read is not None
            return set(read.entry_ids)

        entries = [make_entry() for _ in range(3)]
        await put(store, *entries)
        first = make_reply("first", entry_ids=tuple(entry.id for entry in entries))
        second = make_reply("second", entry_ids=(entries[2].id,))
        await _keep(store, first, second, make_reply("none"))
        assert await ids(first) == set(first.entry_ids)
        assert await ids(second) == set(second.entry_ids)
        assert await ids(make_reply("none")) == set()
        await remove(store, entries[0])
        assert await ids(first) == {entries[1].id, entries[2].id}
        await remove(store, entries[2])
        assert await ids(first) == {entries[1].id}
        assert await ids(second) == set()

    async def test_an_entry_removed_in_the_same_transaction_blanks_too(self, store: Store) -> None:
        entry = make_entry()
        kept = make_reply(entry_ids=(entry.id, entry.id))

        async def script(transaction: Transaction) -> None:
            await transaction.entries.insert(entry, NOW)
            await transaction.replies.put(kept)
            await transaction.entries.remove(entry)

        await store.write(TENANT, script)
        assert await _kept(store, kept) == replace(kept, reply=None)

    async def test_a_replacement_blanks_nothing(self, store: Store) -> None:
        entry = make_entry()
        await put(store, entry)
        kept = make_reply(entry_ids=(entry.id,))
        await _keep(store, kept)
        await base.replace(store, entry, msgspec.structs.replace(entry, version=2))
        assert await _kept(store, kept) == kept

    async def test_old_replies_are_forgotten(self, store: Store) -> None:
        entries = [make_entry() for _ in range(4)]
        await put(store, *entries)
        replies = [
            make_reply(str(second), created_at=at(second), entry_ids=(entries[second].id,))
            for second in range(4)
        ]
        foreign = make_reply("0", tenant="globex", created_at=at(0))
        await _keep(store, *replies, foreign)
        assert await store.read(TENANT, lambda to: to.replies.has_older(at(2)))
        assert await store.write(TENANT, lambda to: to.replies.prune(at(2))) == 2
        assert not await store.read(TENANT, lambda to: to.replies.has_older(at(2)))
        assert await store.write(TENANT, lambda to: to.replies.prune(at(2))) == 0
        assert [await _kept(store, kept) for kept in replies] == [None, None, *replies[2:]]
        assert await _kept(store, foreign) == foreign
        await remove(store, *entries)
        assert await _kept(store, replies[3]) == replace(replies[3], reply=None)

    async def test_the_replies_of_one_principal_are_removed_some_at_a_time(
        self, store: Store
    ) -> None:
        entry = make_entry()
        await put(store, entry)
        gone = [make_reply(str(number), entry_ids=(entry.id,)) for number in range(5)]
        others = [
            make_reply("0", principal="grace", entry_ids=(entry.id,)),
            make_reply("0", tenant="globex"),
        ]
        await _keep(store, *gone, *others)

        async def some(limit: int) -> int:
            return await store.write(TENANT, lambda to: to.replies.remove("ada", limit))

        assert await some(2) == 2
        assert [await _kept(store, kept) for kept in gone].count(None) == 2
        assert [await some(2) for _ in range(3)] == [2, 1, 0]
        assert [await _kept(store, kept) for kept in (*gone, *others)] == [None] * 5 + others
        # Nothing of them is left in the way of what comes after.
        again = make_reply("0", reply=b"again")
        await _keep(store, again)
        await remove(store, entry)
        assert await _kept(store, again) == again
        assert await _kept(store, others[0]) == replace(others[0], reply=None)

    async def test_a_forgotten_key_can_be_used_again(self, store: Store) -> None:
        entry = make_entry()
        await put(store, entry)
        await _keep(store, make_reply(entry_ids=(entry.id,)))
        await store.write(TENANT, lambda to: to.replies.prune(at(9)))
        again = make_reply(reply=b"again", created_at=at(10))
        await _keep(store, again)
        await remove(store, entry)
        assert await _kept(store, again) == again

    async def test_the_data_key_of_a_response_is_known(self, store: Store) -> None:
        await _keep(
            store, make_reply("one"), make_reply("two", sealing_key="dek_2", tenant="globex")
        )

        async def named(key_id: str) -> bool:
            return await store.read(TENANT, lambda to: to.replies.names_key(key_id))

        assert [await named(one) for one in ("dek_1", "dek_2", "")] == [True, False, False]
