"""Feeds that wait are limited for each principal and each tenant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import httpx
import pytest

from tests.http.checks import assert_problem, make
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

CHANGES = "/api/v1/memory/changes"
LIMIT = 15.0


async def _wait_for(service: RunningService, tenant: str, count: int) -> None:
    with anyio.fail_after(LIMIT):
        while service.services.feeds[tenant, ""] != count:
            await asyncio.sleep(0.005)


def _poll(client: httpx.AsyncClient) -> asyncio.Task[httpx.Response]:
    return asyncio.ensure_future(client.get(CHANGES, params={"wait": 20}))


@pytest.mark.parametrize("headers", [{}, {"Accept": "text/event-stream"}], ids=["poll", "stream"])
async def test_feeds_of_a_principal_and_of_a_tenant_are_limited(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with open_service(tmp_path, principal_streams=2, tenant_streams=3) as service:
        ada, bob = await service.agent("ada"), await service.agent("bob")
        away = await service.agent("ada", tenant="other")
        asked = {"wait": 20}
        waiting = [_poll(ada), _poll(ada)]
        await _wait_for(service, "default", 2)
        refused = await ada.get(CHANGES, params=asked, headers=headers)
        assert_problem(refused, 429, "RATE_LIMITED")
        assert refused.headers["retry-after"]
        events = {"Accept": "text/event-stream"}
        assert_problem(await ada.get("/api/v1/agents/ada/events", headers=events), 429)
        assert (await ada.get(CHANGES)).status_code == 200
        waiting.append(_poll(bob))
        await _wait_for(service, "default", 3)
        assert_problem(await bob.get(CHANGES, params=asked, headers=headers), 429)
        elsewhere = _poll(away)
        await _wait_for(service, "other", 1)
        for client in (ada, bob):
            await make(client, "k", memory_type="episodic")
        with anyio.fail_after(LIMIT):
            assert [one.status_code for one in await asyncio.gather(*waiting)] == [200] * 3
        elsewhere.cancel()
        await asyncio.gather(elsewhere, return_exceptions=True)
        await _wait_for(service, "other", 0)
        assert not service.services.feeds
