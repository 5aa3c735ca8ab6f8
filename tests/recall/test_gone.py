"""What is sealed is never found, and what is gone is gone from the next search on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memorywall.jobs.expire_entries import sweep
from memorywall.records.recall import Mode
from memorywall.records.tier import Tier
from tests.recall.room import Room, agent, open_room
from tests.support.embedder import WordEmbedder
from tests.support.service import RunningService
from tests.work.crew import crew_of, ok

pytestmark = pytest.mark.anyio

A, B = agent("a"), agent("b")
SEALED = ["confidential", "restricted"]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path, WordEmbedder(), episodic_capacity=5) as opened:
        yield opened


async def found(room: Room, query: str) -> list[str]:
    """What words and meaning find, which must be the same; a process that has just begun finds it
    as well."""
    by_words = await room.ids(A, query, mode=Mode.LEXICAL)
    fresh = room.anew()
    assert await fresh.ids(A, query, mode=Mode.LEXICAL) == by_words
    await room.embed()
    assert await room.ids(A, query, mode=Mode.DENSE) == by_words
    assert await fresh.ids(A, query, mode=Mode.DENSE) == by_words
    fresh.close()
    return by_words


@pytest.mark.parametrize("sensitivity", SEALED)
@pytest.mark.parametrize("tier", [Tier.WORKING, Tier.EPISODIC, Tier.SEMANTIC])
async def test_sealed_entry_is_never_found(room: Room, sensitivity: str, tier: Tier) -> None:
    await room.write(A, "kitten", tier, sensitivity=sensitivity, tags=["kitten"], key="kitten")
    assert await found(room, "kitten") == []
    assert room.index.measure()["entries"] == 0


@pytest.mark.parametrize("sensitivity", SEALED)
async def test_a_label_takes_an_entry_out_and_puts_it_back(room: Room, sensitivity: str) -> None:
    entry = await room.write(A, "kitten")
    beside = await room.write(A, "sofa")
    for _ in range(3):
        assert await found(room, "kitten") == [entry.id, beside.id]
        entry = await room.change(A, entry, sensitivity=sensitivity)
        assert await found(room, "kitten") == []
        entry = await room.change(A, entry, sensitivity="public")


async def test_deletion_removes_the_entry_and_reveals_nothing(room: Room) -> None:
    entry = await room.write(A, "kitten")
    beside = await room.write(A, "sofa")
    assert await found(room, "kitten") == [entry.id, beside.id]
    await room.remove(A, entry)
    assert await found(room, "kitten") == []
    assert await found(room, "sofa") == [beside.id]


async def test_expired_entry_is_invisible_before_and_after_the_sweep(room: Room) -> None:
    entry = await room.write(A, "kitten", ttl="duration:PT10M")
    assert await found(room, "kitten") == [entry.id]
    room.clock.advance(599)
    assert await found(room, "kitten") == [entry.id]
    # A new time to live begins anew.
    entry = await room.change(A, entry, ttl="duration:PT10M")
    room.clock.advance(599)
    assert await found(room, "kitten") == [entry.id]
    room.clock.advance(1)
    assert await found(room, "kitten") == []
    await sweep(room.context)
    assert await found(room, "kitten") == []
    assert room.index.measure()["entries"] == 0


async def test_evicted_entry_is_removed(room: Room) -> None:
    first = await room.write(A, "kitten 0")
    assert await found(room, "kitten") == [first.id]
    for number in range(1, 6):
        room.clock.advance(1)
        await room.write(A, f"sofa {number}")
    assert not await room.can_find(A, first, "kitten")
    assert room.index.measure()["entries"] == 5


async def test_archived_entry_is_removed(service: RunningService) -> None:
    crew = await crew_of(service)
    room = Room(service.context, service.clock)
    task = await crew.task(assigned_agent="a")
    scope = {"task_id": task["id"]}
    entry = await room.write(A, "kitten", Tier.WORKING, scope=scope)
    assert await room.ids(A, "kitten") == [entry.id]
    ok(await crew.try_change(crew.chief, task["id"], status="cancelled"))
    assert await room.ids(A, "kitten") == []
    room.close()


async def test_a_changed_text_is_found_by_its_new_words_only(room: Room) -> None:
    entry = await room.write(A, {"text": "kitten", "note": "old"}, tags=["black"], key="animal")
    assert await found(room, "kitten") == [entry.id]
    entry = await room.change(A, entry, value={"text": "puppy"})
    assert await found(room, "kitten") == []
    assert await found(room, "puppy") == [entry.id]
    assert await room.ids(A, "black", mode=Mode.LEXICAL) == [entry.id]
    entry = await room.change(A, entry, tags=["brown"])
    assert await room.ids(A, "black", mode=Mode.LEXICAL) == []
    assert await room.ids(A, "brown animal", mode=Mode.LEXICAL) == [entry.id]
    assert await found(room, "puppy") == [entry.id]


async def test_what_moves_to_another_thread_helps_there_and_here_no_more(room: Room) -> None:
    first = await room.write(A, "kitten", Tier.SESSION, scope={"session_id": "x"})
    here = await room.write(A, "sofa", Tier.SESSION, scope={"session_id": "x"})
    there = await room.write(A, "tree", Tier.SESSION, scope={"session_id": "y"})
    assert set(await room.ids(A, "kitten", mode=Mode.LEXICAL)) == {first.id, here.id}
    await room.change(A, first, scope={"session_id": "y"})
    assert set(await room.ids(A, "kitten", mode=Mode.LEXICAL)) == {first.id, there.id}
    fresh = room.anew()
    assert await fresh.ids(A, "kitten", mode=Mode.LEXICAL) == await room.ids(
        A, "kitten", mode=Mode.LEXICAL
    )
    fresh.close()
