"""Attachments and their content."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from memorywall.records.attachment import Attachment
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    DEADLINE,
    TENANT,
    StoreCase,
    Stores,
    UndoError,
    append,
    at,
    make_entry,
    put,
    remove,
)
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import ANYTHING, INTENT, make_attachment

_MEGABYTE = 1024 * 1024


async def _insert(store: Store, *attachments: Attachment) -> None:
    async def script(transaction: Transaction) -> None:
        for attachment in attachments:
            await transaction.attachments.insert(attachment)

    await store.write(TENANT, script)


async def _fill(store: Store, attachment: Attachment, *chunks: bytes) -> None:
    """Puts content in, piece by piece."""

    async def script(transaction: Transaction) -> None:
        for index, chunk in enumerate(chunks):
            await transaction.attachments.put_chunk(attachment.id, index, chunk)

    await store.write(TENANT, script, long=True)


async def _get(store: Store, attachment: Attachment) -> Attachment | None:
    return await store.read(TENANT, lambda to: to.attachments.get(attachment.id))


async def _list(store: Store, intent_id: str = INTENT) -> list[Attachment]:
    return await store.read(TENANT, lambda to: to.attachments.list(intent_id))


async def _list_of_entry(store: Store, entry_id: str) -> list[Attachment]:
    return await store.read(TENANT, lambda to: to.attachments.list_of_entry(entry_id))


async def _pieces(store: Store, attachment: Attachment) -> list[bytes]:
    async def script(transaction: Transaction) -> list[bytes]:
        return list(await transaction.attachments.chunks(attachment.id))

    return await store.read(TENANT, script)


async def _remove(store: Store, attachment: Attachment) -> bool:
    return await store.write(TENANT, lambda to: to.attachments.remove(attachment.id))


class AttachmentsConformance(StoreCase):
    """`port.Attachments`."""

    async def test_without_attachments(self, store: Store) -> None:
        attachment = make_attachment()
        assert await _get(store, attachment) is None
        assert await _list(store) == []
        assert await _pieces(store, attachment) == []
        assert not await _remove(store, attachment)

    async def test_every_field_of_an_attachment_comes_back(self, store: Store) -> None:
        attachments = [
            make_attachment(),
            make_attachment(
                filename="\u2764\ufe0f.pdf",
                size=0,
                storage_url="https://files.example/1",
                digest="0" * 64,
                sealing_key="dek_1",
                metadata=ANYTHING,
                created_at=at(-4),
            ),
        ]
        await _insert(store, *attachments)
        for attachment in attachments:
            assert await _get(store, attachment) == attachment
        assert await _list(store) == attachments

    async def test_replaced_attachment_is_returned_by_reads(self, store: Store) -> None:
        attachment, other = make_attachment(), make_attachment()
        await _insert(store, attachment, other)
        await _fill(store, attachment, b"content")
        stored = msgspec.structs.replace(attachment, size=7, digest="1" * 64, sealing_key="dek_1")
        await store.write(TENANT, lambda to: to.attachments.replace(stored))
        assert await _get(store, attachment) == stored
        assert await _list(store) == [stored, other]
        assert await _pieces(store, attachment) == [b"content"]

    async def test_missing_attachment_is_not_replaced(self, store: Store) -> None:
        attachment = make_attachment()
        with pytest.raises(LookupError):
            await store.write(TENANT, lambda to: to.attachments.replace(attachment))
        assert await _list(store) == []

    async def test_insert_of_attachment_does_not_replace_another(self, store: Store) -> None:
        first = make_attachment()
        await _insert(store, first)
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _insert(store, make_attachment(id=first.id, filename="late"))
        assert await _list(store) == [first]

    async def test_an_intents_attachments_are_listed_oldest_first(self, store: Store) -> None:
        attachments = [make_attachment() for _ in range(4)]
        elsewhere = [make_attachment(intent_id=name) for name in LOOKALIKES]
        await _insert(store, *reversed(attachments), *elsewhere)
        assert await _list(store) == attachments
        for attachment in elsewhere:
            assert await _list(store, attachment.intent_id or "") == [attachment]

    async def test_content_comes_back_in_the_order_of_its_places(self, store: Store) -> None:
        attachment = make_attachment()
        await _insert(store, attachment)
        chunks = [bytes([index]) * (index + 1) for index in range(12)]
        chunks[3] = b""
        chunks[5] = bytes(range(256)) * 300

        async def backwards(transaction: Transaction) -> None:
            for index in reversed(range(12)):
                await transaction.attachments.put_chunk(attachment.id, index, chunks[index])

        await store.write(TENANT, backwards)
        assert await _pieces(store, attachment) == chunks

    async def test_large_content_is_visible_after_reopening(self, stores: Stores) -> None:
        store = await stores.open()
        attachment, other = make_attachment(), make_attachment()
        await _insert(store, attachment, other)
        chunks = [bytes([index]) * _MEGABYTE for index in range(4)]
        await _fill(store, attachment, *chunks)
        await _fill(store, other, b"other")
        await stores.close(store)
        again = await stores.open()
        assert await _pieces(again, attachment) == chunks
        assert await _pieces(again, other) == [b"other"]

    async def test_partial_read_does_not_block_others(self, store: Store) -> None:
        attachment = make_attachment()
        await _insert(store, attachment)
        await _fill(store, attachment, *(bytes([index]) for index in range(9)))

        async def first(transaction: Transaction) -> bytes:
            return next(await transaction.attachments.chunks(attachment.id))

        assert await store.read(TENANT, first) == b"\x00"
        assert await store.write(TENANT, first) == b"\x00"
        await append(store)
        assert await _remove(store, attachment)
        assert await _pieces(store, attachment) == []

    async def test_a_place_is_filled_once(self, store: Store) -> None:
        attachment = make_attachment()
        await _insert(store, attachment)
        await _fill(store, attachment, b"first")
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the backend's own affair
            await _fill(store, attachment, b"second")
        assert await _pieces(store, attachment) == [b"first"]

    async def test_rolled_back_upload_leaves_no_content(self, store: Store) -> None:
        attachment = make_attachment()
        await _insert(store, attachment)

        async def undone(transaction: Transaction) -> None:
            await transaction.attachments.put_chunk(attachment.id, 0, b"undone")
            raise UndoError

        with pytest.raises(UndoError):
            await store.write(TENANT, undone)
        assert await _pieces(store, attachment) == []

    async def test_content_is_replaced(self, store: Store) -> None:
        changed, other = make_attachment(), make_attachment()
        await _insert(store, changed, other)
        for one in (changed, other):
            await _fill(store, one, b"1", b"2")
        await store.write(TENANT, lambda to: to.attachments.remove_chunks(changed.id))
        assert await _get(store, changed) == changed
        assert await _pieces(store, changed) == []
        await _fill(store, changed, b"3")
        assert await _pieces(store, changed) == [b"3"]
        assert await _pieces(store, other) == [b"1", b"2"]

    async def test_removed_attachment_loses_its_content(self, store: Store) -> None:
        gone, kept = make_attachment(), make_attachment()
        await _insert(store, gone, kept)
        await _fill(store, gone, b"1", b"2")
        await _fill(store, kept, b"3", b"4")
        assert await _remove(store, gone)
        assert not await _remove(store, gone)
        assert await _get(store, gone) is None
        assert await _pieces(store, gone) == []
        assert await _list(store) == [kept]
        assert await _pieces(store, kept) == [b"3", b"4"]
        # Nothing of it is left for one that should get its id.
        await _insert(store, gone)
        assert await _pieces(store, gone) == []

    async def test_the_bytes_of_removed_content_leave_in_time(self, store: Store) -> None:
        attachment = make_attachment()
        await _insert(store, attachment)
        await _fill(store, attachment, b"x" * 100_000, b"y" * 100_000)
        assert await _remove(store, attachment)
        until = time.monotonic() + DEADLINE
        while not store.is_erasure_complete():
            assert time.monotonic() < until, "the bytes of what was removed are still there"
            await asyncio.sleep(0.05)
        assert await _list(store) == []

    async def test_an_entrys_attachments_are_listed_apart(self, store: Store) -> None:
        entry = make_entry()
        await put(store, entry)
        of_entry = [make_attachment(intent_id=None, entry_id=entry.id) for _ in range(2)]
        of_intent = make_attachment()
        await _insert(store, *reversed(of_entry), of_intent)
        assert await _list_of_entry(store, entry.id) == of_entry
        assert await _list(store) == [of_intent]
        assert await _get(store, of_entry[0]) == of_entry[0]

    async def test_removal_of_an_entry_removes_its_attachments(self, store: Store) -> None:
        gone, kept = make_entry(), make_entry()
        await put(store, gone, kept)
        files = {one.id: make_attachment(intent_id=None, entry_id=one.id) for one in (gone, kept)}
        await _insert(store, *files.values())
        for attachment in files.values():
            await _fill(store, attachment, b"1", b"2")
        await remove(store, gone)
        assert await _list_of_entry(store, gone.id) == []
        assert await _pieces(store, files[gone.id]) == []
        assert await _list_of_entry(store, kept.id) == [files[kept.id]]
        assert await _pieces(store, files[kept.id]) == [b"1", b"2"]

    async def test_an_attachment_read_before_is_gone_with_its_entry(self, store: Store) -> None:
        entry = make_entry()
        await put(store, entry)
        attachment = make_attachment(intent_id=None, entry_id=entry.id)
        await _insert(store, attachment)

        async def script(to: Transaction) -> None:
            assert await to.attachments.get(attachment.id) == attachment
            await to.entries.remove(entry)
            assert await to.attachments.get(attachment.id) is None

        await store.write(TENANT, script)
