"""Paths of values that a namespace declares, so that conditions on them find entries by index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.service.entries import conditions
from tests.http.checks import EVERY_PERMISSION, MEMORY, NAMESPACES, assert_problem, make
from tests.support.damage import verified
from tests.support.service import RunningService
from tests.support.stored import rows

pytestmark = pytest.mark.anyio

CRM = {"memory_type": "semantic", "namespace": "crm"}
GOLD = 'value.customer.tier = "gold"'
PATHS = ["value.customer.tier", "value.n"]


@pytest.fixture
async def chief(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("chief", permissions=EVERY_PERMISSION) as client:
        yield client


async def _declare(client: httpx.AsyncClient, *paths: str) -> httpx.Response:
    return await client.patch(f"{NAMESPACES}/crm", json={"indexed_paths": list(paths)})


async def _keys(client: httpx.AsyncClient, where: str = GOLD, **asked: str) -> str:
    response = await client.get(
        MEMORY, params={"namespace": "crm", "where": where, "order_by": "key", **asked}
    )
    assert response.status_code == 200, response.text
    return " ".join(one["key"] for one in response.json()["entries"])


async def _customers(chief: httpx.AsyncClient, **fields: Any) -> None:
    """Six entries, of which k1, k3 and k5 are gold; k4 and k5 are sealed."""
    for number in range(6):
        value = {"customer": {"tier": "gold" if number % 2 else "silver"}, "n": number}
        sealing = {"sensitivity": "restricted"} if number > 3 else {}
        await make(chief, f"k{number}", value=value, **CRM, **sealing, **fields)


async def test_condition_on_a_declared_path_reads_only_entries_of_the_index(
    service: RunningService, chief: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = (await _declare(chief, *PATHS, "value . n")).json()
    assert declared["indexed_paths"] == PATHS
    await _customers(chief)
    monkeypatch.setattr(conditions, "MOST_SCANNED", 4)
    for tier in ({}, {"memory_type": "semantic"}):
        assert await _keys(chief, **tier) == "k1 k3 k5"
        assert await _keys(chief, "value.n in [0, 3, 5] and exists value.customer", **tier) == (
            "k0 k3 k5"
        )
        assert await _keys(chief, f"value.n > 2 and {GOLD}", limit="1", **tier) == "k3"
    refused = await chief.get(MEMORY, params={"namespace": "crm", "where": "value.n > 1"})
    assert "indexed_paths" in assert_problem(refused, 400, "SCAN_LIMIT")["detail"]
    # Nothing that is derived from a sealed value is stored.
    statement = "SELECT relation, target FROM edges WHERE entry IN (SELECT id FROM entries"
    sealed = rows(service, f"{statement} WHERE key = ?)", "k5")
    assert {tuple(row) for row in sealed} == {(f"path:{path}", "?") for path in PATHS}


async def test_index_follows_changes_of_entries_and_of_the_declaration(
    service: RunningService, chief: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _customers(chief)
    await _declare(chief, *PATHS)
    # These entries are older than the declaration.
    assert await _keys(chief) == "k1 k3 k5"
    service.clock.advance(1)
    page = (await chief.get(MEMORY, params={"namespace": "crm", "limit": "9"})).json()
    for entry in page["entries"]:
        change = {"value": {"customer": {"tier": "gold" if entry["key"] == "k0" else 7}}}
        path = f"{MEMORY}/{entry['id']}"
        reply = await chief.patch(path, json=change, headers={"If-Match": "1"})
        assert reply.status_code == 200
    monkeypatch.setattr(conditions, "MOST_SCANNED", 3)
    assert await _keys(chief) == "k0"
    for entry in page["entries"][:2]:
        await chief.delete(f"{MEMORY}/{entry['id']}")
    # Entries without the member have no row.
    assert await _keys(chief, "value.n = 0") == ""
    assert (await _declare(chief)).json().get("indexed_paths") is None
    assert_problem(await chief.get(MEMORY, params={"namespace": "crm", "where": GOLD}), 400)
    assert verified(service.services.settings.sqlite_path).problems == []


async def test_invalid_declaration_is_refused(chief: httpx.AsyncClient) -> None:
    for paths in (["key"], ["value"], ["value.a,value.b"], ["value."], ["value." + "a" * 300]):
        assert_problem(await _declare(chief, *paths), 422, "VALIDATION_ERROR")
    assert_problem(await _declare(chief, *(f"value.a{n}" for n in range(9))), 422)
