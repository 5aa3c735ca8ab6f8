"""Leases with concurrent writers: one acquires a lease, and former holders cannot write."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

import asyncio
import itertools

import pytest

from memorywall.records.lease import Lease
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    NOW,
    TENANT,
    StoreCase,
    Stores,
    at,
    log_event,
    make_event,
)
from memorywall_testing.work import make_lease

_WRITERS = 24
_ROUNDS = 4


async def _acquire(store: Store, lease: Lease, now: str = NOW) -> Lease | None:
    return await store.write(lease.tenant, lambda to: to.leases.acquire(lease, now))


async def _get(store: Store, lease_id: str) -> Lease | None:
    return await store.read(TENANT, lambda to: to.leases.get(lease_id))


async def _end(store: Store, token: int) -> bool:
    return await store.write(TENANT, lambda to: to.leases.end(token))


async def _write_under(store: Store, lease: Lease, now: str) -> bool:
    """Writes the token into the log, unless the lease is lost."""

    async def script(transaction: Transaction) -> bool:
        held = await transaction.leases.find_held(lease.token, lease.holder, now)
        if held is None:
            return False
        await log_event(transaction, make_event(version=lease.token))
        return True

    return await store.write(TENANT, script)


async def _two(stores: Stores) -> tuple[Store, Store]:
    """The data as two processes have them open."""
    return await stores.open(), await stores.open(beside=True)


class FencingConformance(StoreCase):
    """`port.Leases` with many callers, in one process and in two."""

    @pytest.mark.parametrize("openers", [1, 2])
    async def test_one_of_many_callers_acquires_a_lease(self, stores: Stores, openers: int) -> None:
        opened = (await _two(stores))[:openers]
        tokens: list[int] = []
        for number in range(_ROUNDS):
            # Each round begins at the instant the lease of the one before is over.
            leases = [
                make_lease(holder=f"agent-{writer}", expires_at=at(number * 10 + 10))
                for writer in range(_WRITERS)
            ]
            outcomes = await asyncio.gather(
                *(
                    _acquire(opened[writer % openers], lease, at(number * 10))
                    for writer, lease in enumerate(leases)
                )
            )
            (winner,) = [taken for taken in outcomes if taken is not None]
            assert outcomes.index(winner) == int(winner.holder.removeprefix("agent-"))
            for store in opened:
                assert await _get(store, winner.id) == winner
            tokens.append(winner.token)
        assert tokens == sorted(set(tokens))

    @pytest.mark.parametrize("openers", [1, 2])
    async def test_no_token_is_given_twice(self, stores: Stores, openers: int) -> None:
        opened = (await _two(stores))[:openers]

        async def take_in_turn(writer: int) -> list[int]:
            store, tokens = opened[writer % openers], []
            for number in range(_ROUNDS):
                taken = await _acquire(store, make_lease(name=f"{writer} {number}"))
                assert taken is not None
                tokens.append(taken.token)
                if number % 2:
                    assert await _end(store, taken.token)
            return tokens

        each = await asyncio.gather(*map(take_in_turn, range(_WRITERS)))
        for tokens in each:
            assert tokens == sorted(tokens)
        given = [token for tokens in each for token in tokens]
        assert len(set(given)) == len(given) == _WRITERS * _ROUNDS

    async def test_many_leases_of_one_transaction_have_a_token_each(self, store: Store) -> None:
        async def script(transaction: Transaction) -> list[int]:
            tokens = []
            for number in range(50):
                taken = await transaction.leases.acquire(make_lease(name=str(number)), NOW)
                assert taken is not None
                tokens.append(taken.token)
            assert await transaction.leases.acquire(make_lease(name="0"), NOW) is None
            return tokens

        tokens = await store.write(TENANT, script)
        assert tokens == sorted(set(tokens))

    @pytest.mark.parametrize("openers", [1, 2])
    async def test_former_holder_cannot_write_after_losing_the_lease(
        self, stores: Stores, openers: int
    ) -> None:
        """Writers take turns as leases run out under them, and each goes on writing under what it
        had. In the log no token may come after a greater one."""
        opened = (await _two(stores))[:openers]
        seconds = itertools.count()

        async def work(writer: int) -> tuple[int, int]:
            store, written, refused = opened[writer % openers], 0, 0
            mine: Lease | None = None
            for _ in range(30):
                second = next(seconds)
                lease = make_lease(holder=f"agent-{writer}", expires_at=at(second + 20))
                mine = await _acquire(store, lease, at(second)) or mine
                if mine is not None:
                    done = await _write_under(store, mine, at(next(seconds)))
                    written, refused = written + done, refused + (not done)
            return written, refused

        counts = await asyncio.gather(*map(work, range(8)))
        log = await opened[0].read(TENANT, lambda to: to.events.list("ada", 0, 1_000))
        tokens = [event.version for event in log]
        assert tokens == sorted(tokens)
        assert len(tokens) == sum(written for written, _ in counts)
        assert len(set(tokens)) > 1, "no lease was ever lost"
        assert sum(refused for _, refused in counts) > 0, "nobody went on after a loss"
