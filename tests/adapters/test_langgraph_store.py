"""The store of LangGraph: what its own stores do, and what they cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import memorywall
from memorywall.adapters.langgraph import MemorywallStore
from memorywall.exceptions import (
    MemoryAccessError,
    MemoryNotFoundError,
    MemoryTransportError,
    RuleError,
    ValidationError,
)
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.adapters.networks import Network, connect
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_ITEMS = [
    (("users", "ann"), "a", {"text": "apples", "n": 1, "deep": {"city": "Bonn"}, "on": True}),
    (("users", "ann"), "b", {"text": "pears", "n": 2.5}),
    (("users", "ann", "tea"), "c", {"text": "green tea", "n": 10}),
    (("users", "annabel"), "d", {"text": "apples", "n": -1}),
    (("Users", "ann"), "e", {"n": None}),
    (("docs", "v1"), "f", {"n": 3}),
    (("docs", "a*b", "v1"), "g/h %", {"list": [1, {"x": 2}]}),
    (("ü 😀",), " k ", {"n": 4}),
]  # fmt: skip
_SEARCHES: list[dict[str, Any]] = [
    {},
    {"limit": 3},
    {"limit": 2, "offset": 3},
    {"filter": {"text": "apples"}},
    {"filter": {"n": 1}},
    {"filter": {"n": {"$gt": 1, "$lte": 3}}},
    {"filter": {"n": {"$gte": 2.5}, "text": {"$ne": "pears"}}},
    {"filter": {"n": {"$lt": 0}}},
    {"filter": {"n": {"$eq": 10}}},
    {"filter": {"on": True}},
    {"filter": {"deep": {"city": "Bonn"}}},
    {"filter": {"absent": "x"}},
]
_LISTS: list[dict[str, Any]] = [
    {},
    {"prefix": ("users",)},
    {"prefix": ("users", "ann")},
    {"prefix": ("users", "*", "tea")},
    {"suffix": ("v1",)},
    {"suffix": ("*", "v1")},
    {"prefix": ("docs",), "suffix": ("v1",)},
    {"max_depth": 1},
    {"max_depth": 2, "limit": 3, "offset": 1},
]


def _told(store: BaseStore) -> list[Any]:
    """What a store says of the items."""
    prefixes: list[tuple[str, ...]] = [(), ("users",), ("users", "ann"), ("docs",), ("absent",)]
    told: list[Any] = []
    for prefix in prefixes:
        # `n` of what is not a number is no error only in some of its stores.
        for asked in _SEARCHES if prefix == ("users", "ann") else _SEARCHES[:5]:
            found = store.search(prefix, **asked)
            told.append((prefix, asked, [(one.namespace, one.key, one.value) for one in found]))
    told += [(asked, store.list_namespaces(**asked)) for asked in _LISTS]
    return told


def test_it_says_what_the_stores_of_langgraph_say(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        stores: tuple[BaseStore, BaseStore] = (InMemoryStore(), MemorywallStore(client))
        for namespace, key, value in _ITEMS:
            for store in stores:
                store.put(namespace, key, {"old": True})
                store.put(namespace, key, value)
        theirs, ours = map(_told, stores)
        for their, our in zip(theirs, ours, strict=True):
            is_page = isinstance(their[1], dict) and {"limit", "offset"} & their[1].keys()
            if isinstance(our[-1], list) and isinstance(our[1], dict) and not is_page:
                # Ours come in the order of their updates, the latest first, as those of SQLite.
                assert sorted(map(str, our[2])) == sorted(map(str, their[2]))
            elif not isinstance(our[1], dict):
                assert our == their
            else:
                assert len(our[2]) == len(their[2])
        for namespace, key, value in _ITEMS:
            item = stores[1].get(namespace, key)
            assert item is not None
            assert (item.namespace, item.key, item.value) == (namespace, key, value)
            assert item.updated_at >= item.created_at
            stores[1].delete(namespace, key)
            stores[1].delete(namespace, key)
            assert stores[1].get(namespace, key) is None
        assert stores[1].search(()) == []
        assert stores[1].list_namespaces() == []


def test_operations_of_a_batch_are_checked_and_the_last_write_counts(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        store = MemorywallStore(client)
        ops = [
            PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k"),
            PutOp(("a",), "gone", {"n": 1}), PutOp(("a",), "gone", None),
            SearchOp(("a",)),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
        ]  # fmt: skip
        assert store.batch(ops) == [None, None, None, None, None, [], []]
        results = store.batch([GetOp(("a",), "k"), GetOp(("a",), "gone"), SearchOp(("a",))])
        assert results[0].value == {"n": 2}  # type: ignore[union-attr]
        assert (results[1], len(results[2])) == (None, 1)  # type: ignore[arg-type]
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("a.b",), "k", {})])
        with pytest.raises(ValueError, match="operator"):
            store.search(("a",), filter={"n": {"$in": [1]}})
        with pytest.raises(ValidationError, match="JSON"):
            store.put(("a",), "k", {"n": {1, 2}})
        large = {"text": "x" * 90_000}
        store.put(("a",), "large", large)
        assert store.get(("a",), "large").value == large  # type: ignore[union-attr]
        store.delete(("a",), "large")
        assert store.get(("a",), "k").value == {"n": 2}  # type: ignore[union-attr]
        # Other entries of the agent are no items.
        client.memory.set("notes", "k", {"n": 1}, "working")
        assert [one.key for one in store.search(())] == ["k"]


@pytest.mark.parametrize("tier", ["working", "semantic"])
def test_updates_lose_nothing(place: Path | str, tier: str) -> None:
    with memorywall.open(place, agent="ada") as client:
        add: Callable[[dict[str, Any]], dict[str, Any]] = lambda value: {"n": value["n"] + 1}  # noqa: E731
        stores = [MemorywallStore(client, memory_type=tier) for _ in range(4)]

        def run(number: int) -> None:
            stores[number % 4].update(("a",), "k", add, default={"n": 0})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(run, range(40)))
        item = stores[0].get(("a",), "k")
        assert item is not None
        assert item.value == {"n": 40}
        with pytest.raises(MemoryNotFoundError):
            stores[0].update(("a",), "absent", add)
        for store in stores:
            store.put(("a",), "k", {"n": -1})


async def test_lifetimes_end_and_are_prolonged_by_reads(service: RunningService) -> None:
    client = _over_http(service, await service.key("ada"))
    store = MemorywallStore(client, ttl={"default_ttl": 10, "refresh_on_read": True})
    still = MemorywallStore(client, ttl={"refresh_on_read": False})
    await store.aput(("a",), "read", {"n": 1})
    await store.aput(("a",), "found", {"n": 2})
    await store.aput(("a",), "left", {"n": 3})
    await store.aput(("a",), "kept", {"n": 4}, ttl=None)
    service.clock.advance(6 * 60)
    assert await store.aget(("a",), "read") is not None
    assert len(await store.asearch(("a",), filter={"n": 2})) == 1
    assert await still.aget(("a",), "left") is not None
    service.clock.advance(6 * 60)
    names = {one.key for one in await still.asearch(("a",))}
    assert names == {"read", "found", "kept"}
    await still.aput(("a",), "read", {"n": 5}, ttl=None)
    service.clock.advance(60 * 60)
    assert {one.key for one in await still.asearch(("a",))} == {"read", "kept"}


async def test_reads_may_be_kept_for_a_while(service: RunningService) -> None:
    client = _over_http(service, await service.key("ada"))
    kept, other = MemorywallStore(client, max_age=3_600), MemorywallStore(client)
    for number, store in enumerate((kept, other)):
        await store.aput(("a",), "k", {"n": number})
        assert (await kept.aget(("a",), "k")).value == {"n": 0}  # type: ignore[union-attr]
    assert (await other.aget(("a",), "k")).value == {"n": 1}  # type: ignore[union-attr]
    await kept.aput(("a",), "k", {"n": 2})
    for store in (kept, other):
        assert (await store.aget(("a",), "k")).value == {"n": 2}  # type: ignore[union-attr]


async def test_items_are_found_by_what_they_say(service: RunningService) -> None:
    store = MemorywallStore(_over_http(service, await service.key("ada")))
    await store.aput(("a",), "tea", {"text": "She drinks green tea in the morning."})
    await store.aput(("a",), "coffee", {"text": "Coffee is for guests."})
    await store.aput(("a",), "hidden", {"text": "The green tea is in the cellar."}, index=False)
    await store.aput(("b",), "tea", {"text": "green tea"})
    found = await store.asearch(("a",), query="green tea", limit=5)
    assert [one.key for one in found][:1] == ["tea"]
    assert "hidden" not in [one.key for one in found]
    assert found[0].score is not None
    assert found[0].score > 0
    assert len(await store.asearch(("a",))) == 3


def _over_http(service: RunningService, key: str) -> AsyncClient:
    transport = httpx.ASGITransport(service.app)
    return AsyncClient("http://memorywall.test", key, transport=transport)


async def test_people_and_tenants_see_nothing_of_each_other(service: RunningService) -> None:
    keys = [await service.key("ada"), await service.key("bob"), await service.key("ada", "other")]
    ada, bob, foreign = [_over_http(service, key) for key in keys]
    nobody = MemorywallStore(ada)
    await nobody.aput(("a",), "k", {"of": "nobody"})
    for user in ("ann", "langgraph"):
        await MemorywallStore(ada.for_user(user)).aput(("a",), "k", {"of": user})
    named = MemorywallStore(ada, about=lambda namespace, key: namespace[-1])
    await named.aput(("memories", "ann"), "k", {"of": "ann"})
    for user in ("ann", "langgraph"):
        own = MemorywallStore(ada.for_user(user))
        item = await own.aget(("a",), "k")
        assert item is not None
        assert item.value == {"of": user}
        found = await own.asearch(("a",))
        assert [(one.namespace, one.value) for one in found] == [(("a",), {"of": user})]
        assert ("a",) in await own.alist_namespaces()
    for other in (bob, foreign):
        stranger = MemorywallStore(other)
        assert await stranger.aget(("a",), "k") is None
        assert await stranger.asearch(()) == []
        assert await stranger.alist_namespaces() == []
        await stranger.adelete(("a",), "k")
    assert {one.actor for one in await ada.events.list()} == {"ada"}
    await _over_http(service, await service.key("root", permissions=tuple(Permission))).forget(
        "ann"
    )
    assert await nobody.alist_namespaces() == [("a",)]
    assert await MemorywallStore(ada.for_user("ann")).asearch(()) == []
    assert await MemorywallStore(ada.for_user("langgraph")).aget(("a",), "k") is not None
    # A blocking method uses the loop of the client from another thread.
    assert (await asyncio.to_thread(nobody.get, ("a",), "k")) is not None


async def test_faults_are_told(service: RunningService) -> None:
    network = Network(service)
    store = MemorywallStore(connect(network, await service.key("ada")), ttl={"default_ttl": 10})
    network.loses_replies = True
    await store.aput(("a",), "k", {"n": 0})
    for number in range(3):
        await store.aupdate(("a",), "k", lambda value: {"n": value["n"] + 1})
        assert (await store.aget(("a",), "k")).value == {"n": number + 1}  # type: ignore[union-attr]
    await store.aput(("a",), "gone", {"n": 1})
    await store.adelete(("a",), "gone")
    assert [one.key for one in await store.asearch(("a",))] == ["k"]
    assert network.lost >= 6
    for strange in (object(), "\ud800", float("nan")):
        with pytest.raises(ValidationError, match="JSON"):
            await store.aput(("a",), "k", {"n": strange})
    reader = await service.key("eve", permissions=(Permission.READ,))
    for value in ({"n": 1}, {"n": "x" * 90_000}):
        with pytest.raises(MemoryAccessError):
            await MemorywallStore(connect(Network(service), reader)).aput(("a",), "k", value)
    network.is_away = True
    for call in (store.aget(("a",), "k"), store.aput(("a",), "k", {}), store.asearch(("a",))):
        with pytest.raises(MemoryTransportError, match="cannot be reached"):
            await call
    network.is_away = False
    assert (await store.aget(("a",), "k")).value == {"n": 3}  # type: ignore[union-attr]


def test_an_item_that_a_closed_tier_lets_wait_is_an_error(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        store = MemorywallStore(client, memory_type="semantic")
        store.put(("users",), "a", {"n": 1, "confidence": 0.5})
        client.narrow_tier("semantic", admission="promoted")
        for key in ("a", "b"):
            with pytest.raises(RuleError, match="waits"):
                store.put(("users",), key, {"n": 2, "confidence": 0.5})
        item = store.get(("users",), "a")
        assert item is not None
        assert item.value["n"] == 1
        assert store.get(("users",), "b") is None
