"""Two agents never hold one claim, however the clock jumps."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.support.rounds import expire_leases
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, ok, under

pytestmark = pytest.mark.anyio

STEPS = 120


@dataclass(slots=True)
class Holder:
    """An agent and the last claim it was given."""

    client: httpx.AsyncClient
    claim_id: str = ""
    token: int = 0

    async def acquire(self, seconds: int) -> bool:
        """Whether it was given the claim."""
        response = await self.client.post(CLAIMS, json={"key": "k", "ttl_seconds": seconds})
        if response.status_code == 409:
            assert_problem(response, 409, "LEASE_HELD")
            return False
        claim = ok(response, 201)
        self.claim_id, self.token = claim["id"], claim["fencing_token"]
        return True

    async def renew(self, seconds: int) -> bool:
        """Whether it still holds what it was given."""
        path = f"{CLAIMS}/{self.claim_id}"
        response = await self.client.patch(path, json={"ttl_seconds": seconds})
        assert response.status_code in (200, 404, 409), response.text
        return response.is_success

    async def release(self) -> None:
        """Gives it back, if there is still something to give."""
        response = await self.client.delete(f"{CLAIMS}/{self.claim_id}")
        assert response.status_code in (204, 404), response.text

    async def writes(self, entry: str) -> bool:
        """Whether a write under its token goes through."""
        version = ok(await self.client.get(entry))["version"]
        headers = under(self.token) | {"If-Match": str(version)}
        response = await self.client.patch(entry, json={"value": {}}, headers=headers)
        if not response.is_success:
            assert_problem(response, 409, "FENCED")
        return response.is_success


async def _entry(service: RunningService) -> str:
    """The path of the entry that is claimed."""
    founder = await service.agent("founder")
    body = {"memory_type": "shared", "namespace": "shared/global", "key": "k", "value": {}}
    return f"{MEMORY}/{ok(await founder.post(MEMORY, json=body), 201)['id']}"


async def test_clock_jump_and_return_restores_no_lost_lease(service: RunningService) -> None:
    entry = await _entry(service)
    a, b = Holder(await service.agent("a")), Holder(await service.agent("b"))
    assert await a.acquire(30)
    service.clock.advance(3_600)
    assert not await a.writes(entry)
    assert await b.acquire(30)
    service.clock.advance(-3_600)
    for _ in range(2):
        assert not await a.writes(entry)
        assert not await a.renew(30)
        assert await b.writes(entry)
        service.clock.advance(10)


async def test_a_jump_back_lengthens_no_claim_for_another(service: RunningService) -> None:
    entry = await _entry(service)
    a, b = Holder(await service.agent("a")), Holder(await service.agent("b"))
    assert await a.acquire(30)
    service.clock.advance(-600)
    # A's claim lasts longer by that clock; until its end nobody else gets in.
    assert not await b.acquire(30)
    assert await a.writes(entry)
    service.clock.advance(629)
    assert not await b.acquire(30)
    service.clock.advance(1)
    assert not await a.writes(entry)
    assert await b.acquire(30)
    assert await b.writes(entry)


async def test_swept_entry_does_not_return_when_the_clock_is_set_back(
    service: RunningService,
) -> None:
    entry = await _entry(service)
    a = Holder(await service.agent("a"))
    assert await a.acquire(30)
    service.clock.advance(30)
    assert await expire_leases(service.services) == 1
    service.clock.advance(-20)
    assert not await a.writes(entry)
    assert not await a.renew(30)


@pytest.mark.parametrize("seed", range(6))
async def test_a_key_never_has_two_holders(service: RunningService, seed: int) -> None:
    entry = await _entry(service)
    holders = [Holder(await service.agent(name)) for name in ("a", "b", "c")]
    choice = random.Random(seed)
    greatest, given, history = 0, 0, []
    for _ in range(STEPS):
        who = choice.choice(holders)
        step = choice.choice(["acquire", "acquire", "renew", "release", "jump", "jump", "sweep"])
        history.append((holders.index(who), step))
        if step == "acquire" and await who.acquire(choice.randint(1, 40)):
            assert who.token > greatest, (seed, history)
            greatest, given = who.token, given + 1
        elif step == "renew":
            renewed = await who.renew(choice.randint(1, 40))
            assert not renewed or who.token == greatest, (seed, history)
        elif step == "release":
            await who.release()
        elif step == "jump":
            service.clock.advance(choice.choice([1, 10, 50, 3_600, -5, -60, -3_600]))
        elif step == "sweep":
            await expire_leases(service.services)
        writers = [one.token for one in holders if one.token and await one.writes(entry)]
        # Only who was given the last token can write, and every older one is dead for good.
        assert writers in ([], [greatest]), (seed, history)
    assert given > 3, (seed, history)
