"""Leases: one holder at a time, and tokens that never go back."""

# ruff: noqa: S101 - a case asserts.

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from memorywall.records.lease import Lease, LeaseKind
from memorywall.storage.port import Store
from memorywall_testing.base import (
    AGENT,
    NOW,
    TENANT,
    StoreCase,
    Stores,
    at,
    write_each,
)
from memorywall_testing.names import LOOKALIKES
from memorywall_testing.work import make_lease

_PARENT = "shared/global"
# Pairs that a key made by joining place and name would take for one another.
_SEPARATORS = (":", "/", "|", ",", " ", "\u2063", "\U0001f44d")


async def _try(store: Store, lease: Lease, now: str = NOW) -> Lease | None:
    return await store.write(lease.tenant, lambda to: to.leases.acquire(lease, now))


async def _acquire(store: Store, lease: Lease | None = None, now: str = NOW) -> Lease:
    """Takes a lease that is free."""
    taken = await _try(store, make_lease() if lease is None else lease, now)
    assert taken is not None
    return taken


async def _acquire_all(store: Store, leases: Iterable[Lease]) -> list[Lease]:
    """Takes leases that are free, in one transaction."""

    taken = await write_each(store, leases, lambda to, lease: to.leases.acquire(lease, NOW))
    return [one for one in taken if one is not None]


async def _current(store: Store, lease: Lease) -> Lease | None:
    tenant, kind, parent, name = lease.tenant, lease.kind, lease.parent, lease.name
    return await store.read(tenant, lambda to: to.leases.current(kind, parent, name))


async def _held(store: Store, token: int, holder: str = AGENT, now: str = NOW) -> Lease | None:
    return await store.write(TENANT, lambda to: to.leases.find_held(token, holder, now))


async def _get(store: Store, lease_id: str) -> Lease | None:
    return await store.read(TENANT, lambda to: to.leases.get(lease_id))


async def _extend(
    store: Store, token: int, until: str, now: str = NOW, holder: str = AGENT
) -> Lease | None:
    return await store.write(TENANT, lambda to: to.leases.extend(token, holder, until, now))


async def _end(store: Store, token: int) -> bool:
    return await store.write(TENANT, lambda to: to.leases.end(token))


async def _list(
    store: Store, parent: str = _PARENT, now: str = NOW, kind: LeaseKind = LeaseKind.CLAIM
) -> list[Lease]:
    return await store.read(TENANT, lambda to: to.leases.list(kind, parent, now))


async def _held_by(
    store: Store, holder: str = AGENT, now: str = NOW, kind: LeaseKind = LeaseKind.CLAIM
) -> list[Lease]:
    held = await store.read(TENANT, lambda to: to.leases.held_by(kind, holder, now))
    counted = await store.read(TENANT, lambda to: to.leases.count_held_by(kind, holder, now))
    assert counted == len(held)
    return held


async def _expired(store: Store, now: str, limit: int = 99) -> list[Lease]:
    return await store.read(TENANT, lambda to: to.leases.expired(now, limit))


class LeasesConformance(StoreCase):
    """`port.Leases`, one caller at a time."""

    async def test_no_lease_exists_before_one_is_acquired(self, store: Store) -> None:
        assert await _current(store, make_lease()) is None
        assert await _get(store, "clm_1") is None
        assert await _held(store, 1) is None
        assert await _held(store, 0) is None
        assert await _extend(store, 1, at(99)) is None
        assert not await _end(store, 1)
        assert await _list(store) == await _held_by(store) == await _expired(store, at(99)) == []

    @pytest.mark.parametrize("purpose", [None, "", "to write the \u2764\ufe0f report"])
    @pytest.mark.parametrize("kind", list(LeaseKind))
    async def test_every_field_of_a_lease_comes_back(
        self, store: Store, kind: LeaseKind, purpose: str | None
    ) -> None:
        lease = make_lease(
            kind=kind, name="", purpose=purpose, acquired_at=at(-3), renewed_at=at(-2)
        )
        taken = await _acquire(store, lease)
        assert taken.token > 0
        assert taken == msgspec.structs.replace(lease, token=taken.token)
        assert await _current(store, lease) == taken
        assert await _get(store, lease.id) == taken
        assert await _held(store, taken.token) == taken
        assert await _list(store, kind=kind) == [taken]
        assert await _held_by(store, kind=kind) == [taken]
        assert await _expired(store, at(10)) == [taken]

    async def test_acquisition_of_held_lease_changes_nothing(self, store: Store) -> None:
        taken = await _acquire(store, make_lease(purpose="mine"))
        for holder in ("grace", AGENT):
            late = make_lease(holder=holder, purpose="late", expires_at=at(99))
            assert await _try(store, late, at(9.999)) is None
            assert await _get(store, late.id) is None
        assert await _current(store, taken) == taken
        assert await _list(store) == await _held_by(store) == [taken]
        assert await _held_by(store, "grace") == []
        assert await _held(store, taken.token, now=at(9.999)) == taken

    async def test_an_expired_lease_stays_until_it_is_acquired_again(self, store: Store) -> None:
        first = await _acquire(store)
        assert await _held(store, first.token, now=at(9.999)) == first
        assert await _held(store, first.token, now=at(10)) is None
        assert await _list(store, now=at(10)) == await _held_by(store, now=at(10)) == []
        assert await _current(store, first) == await _get(store, first.id) == first
        lease = make_lease(
            holder="grace", purpose="next", acquired_at=at(10), renewed_at=at(10), expires_at=at(20)
        )
        second = await _acquire(store, lease, at(10))
        assert second == msgspec.structs.replace(lease, token=second.token)
        assert second.token > first.token
        assert await _current(store, first) == await _get(store, second.id) == second
        assert await _get(store, first.id) is None
        assert await _held(store, first.token, now=at(11)) is None
        assert await _held(store, first.token, "grace", at(11)) is None
        assert await _held(store, second.token, "grace", at(11)) == second
        assert await _held_by(store, now=at(11)) == []
        assert await _held_by(store, "grace", at(11)) == [second]

    async def test_a_token_speaks_only_for_its_holder(self, store: Store) -> None:
        mine = await _acquire(store)
        hers = await _acquire(store, make_lease(name="other", holder="grace"))
        assert await _held(store, mine.token, "grace") is None
        assert await _held(store, mine.token, "Ada") is None
        assert await _held(store, mine.token + 1_000) is None
        assert await _held(store, hers.token, "grace") == hers
        assert await _extend(store, mine.token, at(99), holder="grace") is None
        assert await _extend(store, hers.token, at(99)) is None
        assert await _current(store, mine) == mine
        assert await _current(store, hers) == hers

    async def test_a_live_lease_is_extended(self, store: Store) -> None:
        taken = await _acquire(store)
        longer = await _extend(store, taken.token, at(30), at(9.999))
        assert longer == msgspec.structs.replace(taken, expires_at=at(30), renewed_at=at(9.999))
        assert await _current(store, taken) == longer
        assert await _held(store, taken.token, now=at(29.999)) == longer
        assert await _list(store, now=at(29)) == await _held_by(store, now=at(29)) == [longer]
        assert await _expired(store, at(29.999)) == []
        assert await _expired(store, at(30)) == [longer]
        shorter = await _extend(store, taken.token, at(12), at(11))
        assert shorter is not None
        assert shorter.expires_at == at(12)
        assert await _held(store, taken.token, now=at(12)) is None

    async def test_expired_lease_is_not_renewed(self, store: Store) -> None:
        taken = await _acquire(store)
        assert await _extend(store, taken.token, at(99), at(10)) is None
        assert await _current(store, taken) == taken
        again = await _acquire(store, make_lease(expires_at=at(30)), at(10))
        assert await _extend(store, taken.token, at(99), at(11)) is None
        assert await _current(store, taken) == again

    async def test_ended_lease_is_free_at_once(self, store: Store) -> None:
        first, other = await _acquire(store), await _acquire(store, make_lease(name="other"))
        assert await _end(store, first.token)
        assert not await _end(store, first.token)
        assert await _current(store, first) is None
        assert await _get(store, first.id) is None
        assert await _held(store, first.token) is None
        assert await _list(store) == await _held_by(store) == [other]
        assert await _expired(store, at(99)) == [other]
        again = await _acquire(store)
        assert again.token > first.token
        # The token of what was ended names nothing any more.
        assert not await _end(store, first.token)
        assert await _current(store, first) == again
        assert await _end(store, again.token)

    async def test_expired_lease_can_be_ended(self, store: Store) -> None:
        taken = await _acquire(store)
        assert await _expired(store, at(50)) == [taken]
        assert await _end(store, taken.token)
        assert await _expired(store, at(50)) == []

    async def test_tokens_grow_whatever_happens_between(self, stores: Stores) -> None:
        store = await stores.open()
        tokens: list[int] = []
        for number in range(12):
            taken = await _acquire(store, make_lease(), at(number * 100))
            await _extend(store, taken.token, at(number * 100 + 1), at(number * 100))
            tokens.append(taken.token)
            assert await _try(store, make_lease(), NOW) is None
            if number % 3 == 0:
                await _end(store, taken.token)
            if number % 4 == 0:
                await stores.close(store)
                store = await stores.open()
        assert tokens == sorted(set(tokens))

    async def test_the_counter_is_not_reset_when_no_lease_is_left(self, stores: Stores) -> None:
        store = await stores.open()
        taken = await _acquire_all(store, (make_lease(name=str(number)) for number in range(20)))
        for lease in taken:
            assert await _end(store, lease.token)
        await stores.close(store)
        again = await stores.open()
        assert (await _acquire(again)).token > max(lease.token for lease in taken)

    async def test_one_counter_serves_all_kinds_and_places(self, store: Store) -> None:
        leases = [
            make_lease(kind=kind, parent=parent, name=name)
            for kind in LeaseKind
            for parent in ("a", "b")
            for name in ("", "x")
        ]
        taken = await _acquire_all(store, leases)
        assert [lease.id for lease in taken] == [lease.id for lease in leases]
        tokens = [lease.token for lease in taken]
        assert tokens == sorted(set(tokens))
        for lease in taken:
            assert await _current(store, lease) == lease
            assert await _get(store, lease.id) == lease

    async def test_places_and_holders_are_listed_by_token(self, store: Store) -> None:
        names = ["z", "a", "m", "b"]
        mine = await _acquire_all(store, (make_lease(name=name) for name in names))
        hers = await _acquire(store, make_lease(name="hers", holder="grace", expires_at=at(5)))
        away = await _acquire(store, make_lease(parent="shared/team/ops", expires_at=at(20)))
        other = await _acquire(store, make_lease(kind=LeaseKind.TASK))
        assert await _list(store) == [*mine, hers]
        assert await _list(store, now=at(5)) == mine
        assert await _list(store, now=at(10)) == []
        assert await _list(store, "shared/team/ops") == [away]
        assert await _list(store, "shared") == []
        assert await _list(store, kind=LeaseKind.TASK) == [other]
        assert await _held_by(store) == [*mine, away]
        assert await _held_by(store, now=at(10)) == [away]
        assert await _held_by(store, "grace") == [hers]
        assert await _held_by(store, kind=LeaseKind.TASK) == [other]
        assert await _held_by(store, kind=LeaseKind.INTENT) == []

    async def test_expired_leases_are_listed_oldest_expiry_first(self, store: Store) -> None:
        seconds = [7, 3, 5, 9]
        leases = [make_lease(name=str(second), expires_at=at(second)) for second in seconds]
        leases.append(make_lease(kind=LeaseKind.COORDINATOR, holder="grace", expires_at=at(4)))
        taken = await _acquire_all(store, leases)
        taken.sort(key=lambda lease: lease.expires_at)
        assert await _expired(store, at(2)) == []
        assert await _expired(store, at(4.999)) == taken[:2]
        assert await _expired(store, at(5)) == taken[:3]
        assert await _expired(store, at(99)) == taken
        assert await _expired(store, at(99), 2) == taken[:2]

    async def test_names_places_and_holders_are_told_apart_by_code_point(
        self, store: Store
    ) -> None:
        by_name = await _acquire_all(
            store, (make_lease(name=name, holder=f"of {name}") for name in LOOKALIKES)
        )
        by_place = await _acquire_all(store, (make_lease(parent=name) for name in LOOKALIKES))
        assert len(by_name) == len(by_place) == len(LOOKALIKES)
        for lease in (*by_name, *by_place):
            assert await _current(store, lease) == lease
            assert await _held(store, lease.token, lease.holder) == lease
        for lease in by_name:
            assert await _held_by(store, lease.holder) == [lease]
        for lease in by_place:
            assert await _list(store, lease.parent) == [lease]

    @pytest.mark.parametrize("separator", _SEPARATORS)
    async def test_place_and_name_are_not_run_together(self, store: Store, separator: str) -> None:
        pairs = [
            (f"a{separator}b", "c"),
            ("a", f"b{separator}c"),
            (f"a{separator}b{separator}c", ""),
        ]
        leases = [make_lease(parent=parent, name=name) for parent, name in pairs]
        taken = await _acquire_all(store, leases)
        assert len(taken) == 3
        for lease in taken:
            assert await _current(store, lease) == lease
            assert await _list(store, lease.parent) == [lease]
