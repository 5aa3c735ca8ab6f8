"""The SDK's operations on the files of entries: in both colours, over HTTP and in process."""

from __future__ import annotations

import pytest

from memorywall.exceptions import (
    FencedError,
    MemoryAccessError,
    MemoryNotFoundError,
    ResourceNotFoundError,
)
from tests.test_sdk_support import World, fresh, server, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]


async def test_a_file_is_attached_to_an_entry_and_read(world: World) -> None:
    client = world.client(fresh("writer"))
    entry = await client.memory.set("reports", "q3", {"pages": 2}, "episodic")
    files, content = client.memory.attachments, bytes(range(256)) * 300
    made = await files.upload(entry.id, "büro.bin", content, metadata={"page": 1})
    assert (made.entry_id, made.intent_id, made.stored) == (entry.id, None, True)
    assert await files.download(entry.id, made.id) == content
    assert await files.get(entry.id, made.id) == made
    far = await files.add(entry.id, "far.pdf", storage_url="https://files.example/far.pdf")
    assert [one.id for one in await files.list(entry.id)] == [made.id, far.id]
    other = world.client(fresh("other"))
    with pytest.raises(MemoryAccessError):
        await other.memory.attachments.list(entry.id)
    await files.delete(entry.id, far.id)
    with pytest.raises(ResourceNotFoundError):
        await files.get(entry.id, far.id)
    await client.memory.delete_by_id(entry.id)
    with pytest.raises(MemoryNotFoundError):
        await files.download(entry.id, made.id)


async def test_a_file_of_a_claimed_key_is_written_under_the_claim(world: World) -> None:
    client = world.client(fresh("writer"))
    key = fresh("ticket")
    claim = await client.claims.acquire(key, ttl=60)
    entry = await client.shared.set(key, {"n": 1}, fencing_token=claim.fencing_token)
    with pytest.raises(FencedError):
        await client.memory.attachments.upload(entry.id, "file", b"content")
    token = {"fencing_token": claim.fencing_token}
    made = await client.memory.attachments.upload(entry.id, "file", b"content", **token)
    await client.memory.attachments.delete(entry.id, made.id, **token)
    assert await client.memory.attachments.list(entry.id) == []
