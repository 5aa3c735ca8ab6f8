"""Short ways to say what is kept for recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorywall.records.entry import Entry
from memorywall.records.recall import EntryVector
from memorywall.storage.port import Store
from memorywall_testing.base import TENANT, at, make_entry, put

MODEL, OTHER = "static:one", "onnx:two"


def vector_of(entry: Entry, content: bytes = b"\x00\x3c\xff\x00", version: int = 0) -> EntryVector:
    """A vector of an entry as it is, or at another version."""
    return EntryVector(entry.id, version or entry.version, content)


async def put_vectors(
    store: Store, *vectors: EntryVector, model: str = MODEL, tenant: str = TENANT
) -> None:
    """Puts vectors in a transaction of its own."""
    await store.write(tenant, lambda to: to.recall.put_vectors(model, vectors))


async def vectors_of(
    store: Store, *entries: Entry, model: str = MODEL, tenant: str = TENANT
) -> dict[str, bytes]:
    """Returns the stored vectors of these entries under a model."""
    ids = [entry.id for entry in entries]
    return await store.read(tenant, lambda to: to.recall.vectors(model, ids))


async def remove_others(store: Store, limit: int, model: str = MODEL) -> int:
    """Removes up to so many vectors of other models."""
    return await store.write(TENANT, lambda to: to.recall.remove_other_models(model, limit))


async def uses_of(store: Store, *entries: Entry, tenant: str = TENANT) -> dict[str, int]:
    """Returns the number of uses of these entries."""
    ids = [entry.id for entry in entries]
    counts = await store.read(tenant, lambda to: to.recall.uses(ids))
    return {entry_id: one.uses for entry_id, one in counts.items()}


async def add_uses(store: Store, uses: Mapping[str, int], tenant: str = TENANT) -> None:
    """Adds uses in a transaction of its own."""
    await store.write(tenant, lambda to: to.recall.add_uses(uses))


async def position_of(store: Store, model: str = MODEL, tenant: str = TENANT) -> int:
    """Returns the position of embedding under a model."""
    return await store.read(tenant, lambda to: to.recall.position(model))


async def acquire_lease(
    store: Store,
    holder: str,
    now: float = 0,
    until: float = 10,
    model: str = MODEL,
    tenant: str = TENANT,
) -> int | None:
    """Takes the turn at an instant and until another, in seconds after the beginning."""
    return await store.write(
        tenant, lambda to: to.recall.acquire_lease(model, holder, at(now), at(until))
    )


async def advance(
    store: Store, holder: str, position: int, model: str = MODEL, tenant: str = TENANT
) -> bool:
    """Moves the position in a transaction of its own."""
    return await store.write(tenant, lambda to: to.recall.advance(model, holder, position))


async def put_some(store: Store, count: int, **fields: Any) -> list[Entry]:
    """Inserts new entries."""
    entries = [make_entry(**fields) for _ in range(count)]
    await put(store, *entries)
    return entries
