"""Clients for requests inside a session: sync and async, over HTTP and in process."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import memorywall
from memorywall.records.errors import MemoryAccessError, ResourceNotFoundError
from memorywall.sdk.client import AsyncClient
from tests.support.backend import store_of
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


async def test_async_client_works_inside_a_session(service: RunningService) -> None:
    key, transport = await service.key("ada"), httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        first, second = await client.sessions.create("ann"), await client.sessions.create()
        inside = client.for_user("ann").in_session(first.id)
        for number in (1, 2):
            entry = await inside.memory.set("notes", "theme", {"dark": number}, "session")
            assert entry.version == number
            assert entry.scope is not None
            assert entry.scope.session_id == first.id
        found = await client.in_session(first.id).memory.get("notes", "theme")
        assert found is not None
        assert found.value == {"dark": 2}
        assert await client.in_session(second.id).memory.get("notes", "theme") is None
        with pytest.raises(MemoryAccessError):
            await inside.intents.list()
        token = (await first.token("PT5M")).token
        async with AsyncClient("http://memorywall.test", token, transport=transport) as guest:
            shown = (await guest.sessions.list()).sessions
            assert [one.id for one in shown] == [first.id]
        with pytest.raises(ResourceNotFoundError):
            await client.in_session("absent").memory.get("notes", "theme")


@pytest.mark.sqlite("the embedded store")
def test_client_in_process_works_inside_a_session(tmp_path: Path) -> None:
    with memorywall.open(tmp_path / "memory.db", agent="ada") as client:
        first, second = client.sessions.create(), client.sessions.create()
        inside = client.in_session(first.id)
        inside.memory.set("notes", "plan", {"text": "The harvest is in May."}, "session")
        assert len(inside.recall("harvest")) == 1
        assert client.in_session(second.id).recall("harvest") == []
        first.add("user", "When is it?")
        shown = {one.name: one for one in inside.context(window=4_000).segments}
        assert [one.content for one in shown["turns"].items] == ["When is it?"]


@pytest.mark.parametrize("tier", ["session", "working"])
def test_entries_of_the_session_are_replaced_by_name(tmp_path: Path, tier: str) -> None:
    place = store_of(tmp_path) or tmp_path / "memory.db"
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create("ann")
        other = client.sessions.create("ann")
        for number in (1, 2, 3):
            fresh = client.for_user("ann").in_session(session.id)
            assert fresh.memory.put("plan", "next", {"step": number}, tier).version == number
        known = fresh.memory.put("plan", "next", {"step": 4}, tier)
        client.for_user("ann").in_session(session.id).memory.put("plan", "next", {"step": 5}, tier)
        # Nobody else builds on an agent's own entries, so the last one is replaced.
        assert fresh.memory.put("plan", "next", {"step": 6}, tier).version == 6
        assert known.scope.session_id == session.id
        changed = fresh.memory.update("plan", "next", lambda value: {"step": value["step"] + 2})
        assert (changed.version, changed.value) == (7, {"step": 8})
        elsewhere = client.for_user("ann").in_session(other.id).memory
        assert elsewhere.put("plan", "next", {"step": 1}, tier).version == 1
