"""Conditions, orders, cursors, counts and fields of queries, and the versions of an entry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.operations import pages
from memorywall.service.entries import conditions
from tests.http.checks import BATCH, MEMORY, assert_problem, make
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

GOLD = 'value.customer.tier = "gold"'
ANN = {"X-Subject": "ann"}


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


async def _customers(service: RunningService, ada: httpx.AsyncClient) -> None:
    """Five entries, a second apart; k1 and k4 are gold."""
    customers: list[tuple[str | None, dict[str, Any]]] = [
        ("silver", {"priority": "high"}),
        ("gold", {"sensitivity": "restricted", "tags": ["vip"]}),
        ("silver", {"sensitivity": "restricted"}),
        (None, {"priority": "low"}),
        ("gold", {"memory_type": "episodic"}),
    ]
    for number, (tier, fields) in enumerate(customers):
        value = {"customer": {"tier": tier, "n": number}, "odd": "\0" if number == 4 else ""}
        await make(ada, f"k{number}", value=value, **fields)
        service.clock.advance(1)


async def _page(client: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    response = await client.get(MEMORY, params=asked)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


async def _keys(client: httpx.AsyncClient, **asked: Any) -> str:
    return " ".join(one["key"] for one in (await _page(client, **asked))["entries"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"where": GOLD}, "k4 k1"),
        ({"where": f"not ({GOLD})"}, "k3 k2 k0"),
        ({"where": f'{GOLD} and tags contains "vip"'}, "k1"),
        ({"where": "value.customer.n >= 2", "limit": "2"}, "k4 k3"),
        ({"where": "value.customer.n >= 2", "limit": "2", "offset": "2"}, "k2"),
        ({"where": "exists value.customer.tier", "tags": "vip"}, "k1"),
        ({"where": 'priority > "low" and memory_type = "working"'}, "k2 k1 k0"),
        ({"where": 'namespace = "invoices" and value.odd = ""'}, "k3 k2 k1 k0"),
        ({"where": 'created_at < "2026-02-02T02:40:02Z"'}, "k1 k0"),
        ({"where": GOLD, "order_by": "key"}, "k1 k4"),
        ({"created_after": "2026-02-02T02:40:01Z"}, "k4 k3 k2"),
        ({"created_before": "2026-02-02T03:40:01+01:00"}, "k0"),
        ({"key_prefix": "k"}, "k4 k3 k2 k1 k0"),
        ({"key_prefix": "k4"}, "k4"),
        ({"key_prefix": "K"}, ""),
        ({"order_by": "created"}, "k4 k3 k2 k1 k0"),
        ({"direction": "asc"}, "k0 k1 k2 k3 k4"),
        ({"order_by": "key", "direction": "desc"}, "k4 k3 k2 k1 k0"),
        ({"order_by": "priority"}, "k0 k4 k2 k1 k3"),
        ({"order_by": "priority", "direction": "asc", "limit": "2"}, "k3 k1"),
        ({"where": GOLD, "as_of": "2026-02-02T02:40:03Z"}, "k1"),
    ],
)
async def test_query_finds_entries_in_order(
    service: RunningService, ada: httpx.AsyncClient, asked: dict[str, str], expected: str
) -> None:
    await _customers(service, ada)
    assert await _keys(ada, **asked) == expected
    page = await _page(ada, **{**asked, "limit": "1"})
    total = page["total"]
    if "as_of" not in asked and "order_by" not in asked and "direction" not in asked:
        counted = await _page(ada, **{**asked, "count_only": "true"})
        assert (counted["entries"], counted["total"]) == ([], total)
    if "limit" not in asked:
        assert total == len(expected.split())


async def test_update_moves_an_entry_in_the_order_of_updates(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _customers(service, ada)
    (first,) = (await _page(ada, key="k0"))["entries"]
    await ada.patch(f"{MEMORY}/{first['id']}", json={"tags": ["x"]}, headers={"If-Match": "1"})
    assert await _keys(ada, order_by="updated") == "k0 k4 k3 k2 k1"
    assert await _keys(ada, order_by="updated", direction="asc") == "k1 k2 k3 k4 k0"


@pytest.mark.parametrize("order", ["created", "updated", "key", "priority"])
async def test_cursor_stays_right_while_entries_are_added_and_removed(
    service: RunningService, ada: httpx.AsyncClient, order: str
) -> None:
    await _customers(service, ada)
    asked = {"order_by": order, "limit": "2", "where": "value.customer.n >= 0"}
    expected = (await _keys(ada, order_by=order)).split()
    found, cursor = [], "*"
    while cursor:
        page = await _page(ada, **asked, cursor=cursor)
        found += [one["key"] for one in page["entries"]]
        assert page["total"] == 5
        if cursor == "*":
            # What was read is removed, and something comes first in every order.
            await ada.delete(f"{MEMORY}/{page['entries'][0]['id']}")
            first = {"customer": {"n": 9}}
            key = "k" if order == "key" else "k9"
            await make(ada, key, value=first, priority="high")
        cursor = page["next_cursor"]
    assert found == expected


async def test_cursor_belongs_to_its_query(service: RunningService, ada: httpx.AsyncClient) -> None:
    await _customers(service, ada)
    cursor = (await _page(ada, cursor="*", limit="2"))["next_cursor"]
    assert await _keys(ada, cursor=cursor) == "k2 k1 k0"
    bad = pages._Cursor("x", "y", "z", 1)
    for asked in (
        {"cursor": cursor, "tags": "vip"},
        {"cursor": cursor, "order_by": "key"},
        {"cursor": cursor, "where": GOLD},
        {"cursor": cursor, "offset": "1"},
        {"cursor": cursor, "as_of": "2026-02-02T02:40:03Z"},
        {"cursor": cursor[:-3]},
        {"cursor": ""},
        {"cursor": "\u00fc"},
        {"cursor": str(bad)},
        {"count_only": "true", "cursor": "*"},
    ):
        assert_problem(await ada.get(MEMORY, params=asked), 400, "VALIDATION_ERROR")


async def test_fields_are_chosen(service: RunningService, ada: httpx.AsyncClient) -> None:
    await _customers(service, ada)
    fields = 'key,value.customer.tier,value.customer."n",tags[0],pinned'
    page = await _page(ada, fields=fields, limit="4", offset="1")
    assert page["total"] == 5
    assert page["entries"][2] == {
        "key": "k1",
        "value.customer.tier": "gold",
        "value.customer.n": 1,
        "tags[0]": "vip",
        "pinned": False,
    }
    assert_problem(await ada.get(MEMORY, params={"fields": "colour"}), 400, "INVALID_EXPRESSION")


async def test_invalid_condition_is_refused_with_its_position(ada: httpx.AsyncClient) -> None:
    for path in (MEMORY, f"{MEMORY}/export"):
        problem = assert_problem(
            await ada.get(path, params={"where": "value.a ="}), 400, "INVALID_EXPRESSION"
        )
        assert (problem["line"], problem["column"]) == (1, 10)


async def test_condition_reads_a_limited_number_of_values(
    service: RunningService, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _customers(service, ada)
    monkeypatch.setattr(conditions, "MOST_SCANNED", 3)
    problem = assert_problem(await ada.get(MEMORY, params={"where": GOLD}), 400, "SCAN_LIMIT")
    assert "key_prefix" in problem["detail"]
    assert await _keys(ada, where=GOLD, tags="vip") == "k1"
    monkeypatch.setattr(conditions, "MOST_SCANNED", 5)
    assert await _keys(ada, where=GOLD) == "k4 k1"
    monkeypatch.setattr(conditions, "MOST_BYTES", 100)
    assert_problem(await ada.get(MEMORY, params={"where": GOLD}), 400, "SCAN_LIMIT")
    assert await _keys(ada, where='key > "k"') == "k4 k3 k2 k1 k0"
    # The entries of another agent do not count.
    async with await service.agent("bob") as bob:
        await make(bob, "k", value={"customer": {"tier": "gold"}})
        assert await _keys(bob, where=GOLD) == "k"


async def test_export_and_deletion_take_conditions(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _customers(service, ada)
    lines = (await ada.get(f"{MEMORY}/export", params={"where": GOLD})).text.splitlines()
    assert len(lines) == 2
    deleted = await ada.delete(BATCH, params={"where": GOLD})
    assert deleted.json() == {"deleted": 2}
    assert await _keys(ada) == "k3 k2 k0"


@pytest.mark.parametrize("sealing", [{}, {"sensitivity": "restricted"}], ids=["plain", "sealed"])
async def test_condition_tells_nothing_about_unreadable_entries(
    service: RunningService, ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    secret = {"value": {"pin": 7}, **sealing}
    await make(ada, "mine", **secret)
    await make(ada, "ann", subjects=["ann"], **secret)
    await make(ada, "bob", subjects=["bob"], **secret)
    where = "value.pin = 7"
    async with await service.agent("eve") as eve:
        for asked in ({}, {"agent_id": "ada"}, {"order_by": "key"}, {"count_only": "true"}):
            page = await _page(eve, where=where, **asked)
            assert (page["entries"], page["total"]) == ([], 0)
    bound = (await ada.get(MEMORY, params={"where": where, "order_by": "key"}, headers=ANN)).json()
    assert [one["key"] for one in bound["entries"]] == ["ann", "mine"]
    counted = await ada.get(MEMORY, params={"where": where, "count_only": "true"}, headers=ANN)
    assert counted.json()["total"] == 1
    named = await _page(ada, where='subjects contains "bob"')
    assert [one["key"] for one in named["entries"]] == ["bob"]


@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_history_lists_versions_newest_first(
    ada: httpx.AsyncClient, sensitivity: str
) -> None:
    fields = {"memory_type": "semantic", "namespace": "facts", "sensitivity": sensitivity}
    made = await make(ada, "k", value={"n": 1}, **fields)
    path = f"{MEMORY}/{made['id']}"
    for version in (1, 2, 3):
        change = {"value": {"n": version + 1}}
        await ada.patch(path, json=change, headers={"If-Match": str(version)})

    async def versions(**asked: str) -> list[tuple[int, int]]:
        reply = (await ada.get(f"{path}/history", params=asked)).json()
        return [(one["version"], one["value"]["n"]) for one in reply["versions"]]

    assert await versions() == [(4, 4), (3, 3), (2, 2), (1, 1)]
    assert await versions(limit="1") == [(4, 4)]
    assert await versions(limit="2", before_version="4") == [(3, 3), (2, 2)]
    assert await versions(before_version="1") == []
    assert await versions(limit="2", before_version="99") == [(4, 4), (3, 3)]


async def test_history_is_as_protected_as_the_entry(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    made = await make(ada, "k")
    path = f"{MEMORY}/{made['id']}/history"
    (only,) = (await ada.get(path)).json()["versions"]
    assert only == made
    async with await service.agent("eve") as eve:
        assert_problem(await eve.get(path), 403)
    assert_problem(await ada.get(f"{MEMORY}/mem_absent/history"), 404)
    shared = {"memory_type": "semantic", "namespace": "facts"}
    fact = await make(ada, "f", subjects=["bob"], **shared)
    path = f"{MEMORY}/{fact['id']}"
    await ada.patch(path, json={"subjects": []}, headers={"If-Match": "1"})
    shown = (await ada.get(f"{path}/history", headers=ANN)).json()["versions"]
    assert [one["version"] for one in shown] == [2]
