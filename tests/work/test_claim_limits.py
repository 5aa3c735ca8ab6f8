"""How many claims an agent may hold at a time."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.clock import format_instant
from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.port import Transaction
from tests.http.checks import assert_problem
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, ok

pytestmark = pytest.mark.anyio

MOST = 1_000


async def _claim(client: httpx.AsyncClient, key: str) -> dict[str, Any]:
    """A claim that lasts a minute."""
    made: dict[str, Any] = ok(await client.post(CLAIMS, json={"key": key, "ttl_seconds": 60}), 201)
    return made


async def _hold(service: RunningService, agent: str, count: int) -> None:
    """Gives an agent many claims at once that last a minute, past the application."""
    now, until = service.services.now(), format_instant(service.clock.now() + 60_000)

    async def script(transaction: Transaction) -> None:
        for number in range(count):
            lease = Lease(
                tenant="default",
                id=service.services.ids.next("clm"),
                kind=LeaseKind.CLAIM,
                parent="shared/global",
                name=f"many-{number}",
                holder=agent,
                acquired_at=now,
                renewed_at=now,
                expires_at=until,
            )
            assert await transaction.leases.acquire(lease, now) is not None

    await service.services.store.write("default", script, long=True)


async def test_agent_has_a_limit_of_claims(service: RunningService) -> None:
    a, b = await service.agent("a"), await service.agent("b")
    claim = await _claim(a, "first")
    await _hold(service, "a", MOST - 2)
    await _claim(a, "last")
    problem = assert_problem(await a.post(CLAIMS, json={"key": "more"}), 429, "CAPACITY_EXCEEDED")
    assert (problem["current_count"], problem["max_capacity"]) == (MOST, MOST)
    await _claim(b, "more")
    ok(await a.delete(f"{CLAIMS}/{claim['id']}"), 204)
    await _claim(a, "one")
    assert_problem(await a.post(CLAIMS, json={"key": "two"}), 429)
    service.clock.advance(60)
    # Those that are over are not held, whether or not anybody has swept them.
    await _claim(a, "two")
