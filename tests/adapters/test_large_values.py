"""Values that are too large for an entry: whole, found, replaced, and never half written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memorywall.adapters.langgraph import MemorywallStore
from memorywall.adapters.large_values import LargeValues
from memorywall.exceptions import (
    EntryExistsError,
    MemoryNotFoundError,
    MemorywallError,
    ResourceNotFoundError,
    RuleError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.attached_members import ATTACHED
from memorywall.records.principal import Permission
from memorywall.records.tier import Tier
from memorywall.sdk.client import AsyncClient
from tests.adapters.networks import Network, Stopped, connect
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

LIMIT = 65_536
VALUES: list[dict[str, Any]] = [
    {"text": "x" * LIMIT},
    {"text": "green tea " + "é🙂" * 50_000, "n": 7, "deep": {"list": [1, 2.5, None]}},
    {"text": "a", "messages": [{"role": "user", "content": "z" * 900}] * 200, "on": True},
    {f"member {number}": f"value {number}" for number in range(5_000)},
    {"n" * 70_000: 1},
    {"text": "\x00\"\\\n" * 40_000, "other": "\x1f" * 80_000},
    {"text": "y" * 3_000_000},
    {ATTACHED: {"attachment_id": "att_x", "members": {}}, "text": "x" * LIMIT},
]  # fmt: skip
PLACE, OTHER = ("a",), ("b",)


@pytest.fixture
async def network(service: RunningService) -> Network:
    return Network(service)


@pytest.fixture
async def ada(service: RunningService, network: Network) -> AsyncClient:
    return connect(network, await service.key("ada"))


async def _attached(client: AsyncClient, namespace: str = "langgraph/a/") -> list[int]:
    """The numbers of attachments of the entries of a namespace."""
    page = await client.memory.query(namespace=namespace)
    return [len(await client.memory.attachments.list(one.id)) for one in page]


@pytest.mark.parametrize("tier", ["working", "semantic"])
async def test_a_value_comes_back_whole(ada: AsyncClient, tier: str) -> None:
    store = MemorywallStore(ada, memory_type=tier)
    for value in VALUES:
        for _ in range(2):
            await store.aput(PLACE, "k", value)
            assert (await store.aget(PLACE, "k")).value == value  # type: ignore[union-attr]
            assert [one.value for one in await store.asearch(PLACE)] == [value]
            # What was replaced leaves nothing.
            assert await _attached(ada) == [1]
        changed = await store.aupdate(PLACE, "k", lambda old: {**old, "more": 1})
        assert changed.value == {**value, "more": 1}
        await store.aput(PLACE, "k", {"n": 1})
        assert (await store.aget(PLACE, "k")).value == {"n": 1}  # type: ignore[union-attr]
        assert await _attached(ada) == [0]
        await store.aput(PLACE, "k", value)
        (entry,) = await ada.memory.query(namespace="langgraph/a/")
        (attachment,) = await ada.memory.attachments.list(entry.id)
        await store.adelete(PLACE, "k")
        with pytest.raises(MemoryNotFoundError):
            await ada.memory.attachments.download(entry.id, attachment.id)
        assert await store.aget(PLACE, "k") is None


async def test_it_is_found_by_its_beginning(ada: AsyncClient) -> None:
    store = MemorywallStore(ada)
    text = "She drinks green tea in the morning. " + "x " * 50_000
    await store.aput(PLACE, "tea", {"text": text, "n": 1})
    await store.aput(PLACE, "coffee", {"text": "Coffee is for guests.", "n": 2})
    found = await store.asearch(PLACE, query="green tea", filter={"n": 1})
    assert [(one.key, one.value) for one in found] == [("tea", {"text": text, "n": 1})]


async def test_whoever_stops_leaves_the_old_value_or_the_new_one(
    ada: AsyncClient, network: Network
) -> None:
    """After each number of requests, of a creation and of a replacement."""
    new = {"text": "new" * LIMIT}
    for old in (None, {"text": "old" * LIMIT}, {"n": 1}):
        requests = 0
        while True:
            key = f"{old is None} {requests}"
            store = MemorywallStore(ada)
            if old is not None:
                await store.aput(PLACE, key, old)
            network.left = requests
            try:
                await store.aput(PLACE, key, new)
            except Stopped:
                is_done = False
            else:
                is_done = True
            network.left = None
            again = MemorywallStore(ada)
            item = await again.aget(PLACE, key)
            assert (None if item is None else item.value) in ([new] if is_done else [old, new])
            names = {one.key for one in await again.asearch(PLACE)}
            assert (key in names) == (item is not None)
            await again.aput(PLACE, key, new)
            assert (await again.aget(PLACE, key)).value == new  # type: ignore[union-attr]
            assert await _attached(ada) == [1]
            await again.adelete(PLACE, key)
            if is_done:
                break
            requests += 1
        assert requests > 3


async def test_lost_replies_change_nothing(ada: AsyncClient, network: Network) -> None:
    network.loses_replies = True
    store = MemorywallStore(ada)
    for number in range(3):
        value = {"text": str(number) * LIMIT}
        await store.aput(PLACE, "k", value)
        assert (await store.aget(PLACE, "k")).value == value  # type: ignore[union-attr]
        assert await _attached(ada) == [1]
    assert network.lost > 8


async def test_parallel_updates_lose_nothing(ada: AsyncClient) -> None:
    stores = [MemorywallStore(ada) for _ in range(3)]
    default = {"text": "x" * LIMIT, "n": 0}

    async def add(number: int) -> None:
        await stores[number % 3].aupdate(
            PLACE, "k", lambda old: {**old, "n": old["n"] + 1}, default=default
        )

    await asyncio.gather(*map(add, range(9)))
    assert (await stores[0].aget(PLACE, "k")).value == {**default, "n": 9}  # type: ignore[union-attr]
    assert await _attached(ada) == [1]


async def test_a_kept_read_of_a_replaced_value_is_read_again(ada: AsyncClient) -> None:
    kept, other = MemorywallStore(ada, max_age=3_600), MemorywallStore(ada)
    for letter in "abc":
        await other.aput(PLACE, "k", {"text": letter * LIMIT})
        assert (await kept.aget(PLACE, "k")).value == {"text": letter * LIMIT}  # type: ignore[union-attr]


async def test_what_an_attachment_cannot_hold_changes_nothing(
    ada: AsyncClient, service: RunningService
) -> None:
    store = MemorywallStore(ada)
    limit = service.services.settings.attachment_limit
    await store.aput(PLACE, "old", {"n": 1})
    for key in ("old", "new"):
        with pytest.raises(ValueTooLargeError, match=str(limit)):
            await store.aput(PLACE, key, {"text": "x" * (limit + 1)})
        with pytest.raises(ValidationError, match="JSON"):
            await store.aput(PLACE, key, {"text": "x" * LIMIT, "n": {1}})
    assert [one.value for one in await store.asearch(PLACE)] == [{"n": 1}]
    assert await _attached(ada) == [0]


async def test_others_see_nothing_and_forgetting_erases_it(
    ada: AsyncClient, service: RunningService, network: Network
) -> None:
    value = {"text": "Ann likes tea. " + "x" * LIMIT}
    await MemorywallStore(ada.for_user("ann")).aput(PLACE, "k", value)
    bob, foreign = [
        connect(network, await service.key(*names)) for names in (("bob",), ("ada", "other"))
    ]
    (entry,) = await ada.for_user("ann").memory.query()
    (attachment,) = await ada.memory.attachments.list(entry.id)
    for stranger in (bob, foreign, ada.for_user("bea")):
        assert await MemorywallStore(stranger).aget(PLACE, "k") is None
        with pytest.raises(MemorywallError):
            await stranger.memory.attachments.download(entry.id, attachment.id)
    assert {one.actor for one in await ada.events.list()} == {"ada"}
    root = connect(network, await service.key("root", permissions=tuple(Permission)))
    await root.forget("ann")
    assert await MemorywallStore(ada.for_user("ann")).asearch(()) == []
    with pytest.raises(MemorywallError):
        await ada.memory.attachments.download(entry.id, attachment.id)


async def test_a_changed_member_stays_changed(ada: AsyncClient) -> None:
    """Others change what the entry has, and do not know of the attachment."""
    store = MemorywallStore(ada, memory_type="semantic")
    await store.aput(PLACE, "k", {"text": "x" * LIMIT, "n": 1, "other": "y" * LIMIT})
    await ada.memory.merge("langgraph/a/", "k", {"text": "short", "n": 2}, "semantic")
    item = await store.aget(PLACE, "k")
    assert item is not None
    assert item.value == {"text": "short", "n": 2, "other": "y" * LIMIT}
    (entry,) = await ada.memory.query(namespace="langgraph/a/")
    corrected = await ada.correct(entry.id, {"text": "right"}, reason="it was wrong")
    assert corrected.entry.value == {"text": "right"}
    await ada.memory.undo(entry.id)
    assert (await store.aget(PLACE, "k")).value == item.value  # type: ignore[union-attr]
    (file,) = await ada.memory.attachments.list(entry.id)
    await ada.memory.attachments.delete(entry.id, file.id)
    with pytest.raises(ResourceNotFoundError, match="write the value again"):
        await store.aget(PLACE, "k")
    assert [one.key for one in await store.asearch(PLACE)] == ["k"]
    await store.aput(PLACE, "k", {"n": 3})
    assert (await store.aget(PLACE, "k")).value == {"n": 3}  # type: ignore[union-attr]


async def test_a_closed_tier_takes_a_large_value_of_a_known_item_only(
    ada: AsyncClient, service: RunningService, network: Network
) -> None:
    store = MemorywallStore(ada, memory_type="semantic")
    await store.aput(PLACE, "old", {"n": 1})
    root = connect(network, await service.key("root", permissions=tuple(Permission)))
    await root.narrow_tier("semantic", admission="promoted")
    for key, reason in (("old", "waits"), ("new", "cannot wait")):
        with pytest.raises(RuleError, match=reason):
            await store.aput(PLACE, key, {"text": "x" * LIMIT})
    assert [one.key for one in await store.asearch(PLACE)] == ["old"]
    waiting = await ada.memory.query(kind="proposal")
    assert len(waiting) == 1


async def test_a_creation_that_has_stopped_is_repeated(ada: AsyncClient, network: Network) -> None:
    values = LargeValues(ada.memory.core)
    large, small = {"text": "x" * LIMIT}, {"n": 1}
    for key, value in (("a", large), ("b", small)):
        network.left = 2
        with pytest.raises(Stopped):
            await ada.driver.run(values.create("notes", key, large, Tier.SEMANTIC))
        network.left = None
        made = await ada.driver.run(values.create("notes", key, value, Tier.SEMANTIC))
        assert made.value == value
        with pytest.raises(EntryExistsError):
            await ada.driver.run(values.create("notes", key, value, Tier.SEMANTIC))


async def test_where_personal_data_is_masked_a_value_stays_small(tmp_path: Path) -> None:
    """A file is stored as it was sent."""
    async with open_service(tmp_path, personal_data="mask") as service:
        client = connect(Network(service), await service.key("ada"))
        store = MemorywallStore(client)
        await store.aput(PLACE, "old", {"text": "ann@example.com"})
        for key in ("old", "new"):
            with pytest.raises(RuleError, match="masked"):
                await store.aput(PLACE, key, {"text": "x" * LIMIT})
        assert [one.value for one in await store.asearch(PLACE)] == [{"text": "[email]"}]
        assert await _attached(client) == [0]
