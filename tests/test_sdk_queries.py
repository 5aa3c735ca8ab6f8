"""Iterators, counts, chosen fields and versions of the SDK, sync and async."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import memorywall
from memorywall import AsyncClient
from memorywall.exceptions import ExpressionError
from tests.support.service import RunningService

GOLD = 'value.tier = "gold"'


def test_queries_of_a_client(place: Path | str) -> None:
    with memorywall.open(place, agent="billing") as client:
        memory = client.memory
        memory.batch(
            {"namespace": "n", "key": f"k{n}", "memory_type": "episodic",
             "value": {"n": n, "tier": "gold" if n % 2 else "silver"}}
            for n in range(7)
        )  # fmt: skip
        names = [entry.key for entry in memory.iterate(page_size=2)]
        assert names == ["k6", "k5", "k4", "k3", "k2", "k1", "k0"]
        found = memory.iterate(page_size=2, order_by="key", where=GOLD, memory_type="episodic")
        assert [entry["n"] for entry in found] == [1, 3, 5]
        assert list(memory.iterate(key_prefix="x")) == []
        page = memory.query(limit=3, order_by="key", direction="desc")
        assert ([one.key for one in page], page.total) == (["k6", "k5", "k4"], 7)
        rest = memory.query(limit=9, order_by="key", direction="desc", cursor=page.next_cursor)
        assert ([one.key for one in rest], rest.next_cursor) == (["k3", "k2", "k1", "k0"], None)
        assert memory.query(limit=3).next_cursor is None
        assert memory.count(where=GOLD) == 3
        rows = list(memory.select(["key", "value.n"], page_size=3, where=GOLD))
        assert rows == [{"key": f"k{n}", "value.n": n} for n in (5, 3, 1)]
        first = memory.get("n", "k0", "episodic")
        assert first is not None
        memory.update("n", "k0", lambda value: {**(value or {}), "more": "yes"}, "episodic")
        history = memory.history(first.id)
        assert [one.version for one in history] == [2]
        changes = [(one.type, one.data.version, one.actor) for one in history.events]
        assert changes == [("memory.updated", 2, "billing"), ("memory.created", 1, "billing")]
        (created,) = memory.history(first.id, before_version=2).events
        assert created.data.version == 1
        with pytest.raises(ExpressionError) as raised:
            memory.query(where="value.n = = 1")
        assert (raised.value.line, raised.value.column) == (1, 11)


@pytest.mark.anyio
async def test_queries_of_an_async_client_over_http(service: RunningService) -> None:
    transport = httpx.ASGITransport(app=service.app)
    key = await service.key("ada")
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        memory = client.memory
        fact = await memory.set("facts", "f", {"n": 1}, "semantic")
        await memory.set("facts", "f", {"n": 2})
        for number in range(3):
            await memory.set("n", f"k{number}", {"n": number}, "working")
        found = [one.key async for one in memory.iterate(page_size=2, namespace="n")]
        assert found == ["k2", "k1", "k0"]
        assert await memory.count(where="value.n >= 1") == 3
        rows = [row async for row in memory.select("value.n", order_by="key", where="value.n = 2")]
        assert rows == [{"value.n": 2}, {"value.n": 2}]
        versions = await memory.history(fact.id)
        assert [(one.version, one["n"]) for one in versions] == [(2, 2), (1, 1)]
        assert versions.events == []
        with pytest.raises(ExpressionError) as raised:
            await memory.count(where="colour = 1")
        assert raised.value.column == 1
