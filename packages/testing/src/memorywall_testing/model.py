"""Random work on entries, compared step by step with a dictionary and plain comprehensions."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import PRIORITY_RANK, Entry, Provenance, Scope
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import StoreCase, at, first_to_evict
from memorywall_testing.filter_model import expected_page

_OWNERS = ("ada", "grace", "")
_TIERS = (Tier.WORKING, Tier.EPISODIC)
_SPACES = ("a", "a/b", "A", "\U0001f44d")
_KEYS = ("k", "K")
_TAGS = ("red", "green", "Red", "gr\u00fcn")
_TASKS = (None, "task", "other")
_SECONDS = st.integers(0, 12)

_tenants = (f"model-{number}" for number in itertools.count(1))


class _Model:
    """The expected content of a store: entries by id, and the last access of each."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.accessed: dict[str, str] = {}

    def living(self, now: str) -> list[Entry]:
        return [e for e in self.entries.values() if e.expires_at is None or e.expires_at > now]

    def named(self, entry: Entry) -> Entry | None:
        for one in self.entries.values():
            if _name(one) == _name(entry):
                return one
        return None

    def owned(self, owner: str, tier: Tier, now: str) -> list[Entry]:
        return [e for e in self.living(now) if (e.owner, e.tier) == (owner, tier)]

    def whole(self, owner: str, tier: Tier) -> list[Entry]:
        """Returns the entries of an owner, also the expired ones, oldest first."""
        own = [e for e in self.entries.values() if (e.owner, e.tier) == (owner, tier)]
        return sorted(own, key=lambda e: e.id)

    def victim(self, owner: str, now: str) -> Entry | None:
        unpinned = [
            e
            for e in self.living(now)
            if (e.owner, e.tier, e.pinned) == (owner, Tier.EPISODIC, False)
        ]
        return min(
            unpinned,
            key=lambda e: (PRIORITY_RANK[e.priority], self.accessed[e.id], e.id),
            default=None,
        )


def _name(entry: Entry) -> tuple[object, ...]:
    return entry.tier, entry.owner, entry.namespace, entry.key


def _use(entries: list[Entry], living: dict[str, Entry]) -> Usage:
    """Returns the number of these that live, and their bytes."""
    sizes = [entry.size for entry in entries if entry.id in living]
    return Usage(entries=len(sizes), bytes=sum(sizes))


def _identifier(number: int) -> str:
    return f"mem_{number:026d}"


def _some(names: Sequence[str | None]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Any of these, each once."""
    return st.lists(st.sampled_from(names), unique=True).map(tuple)


_changeable = st.fixed_dictionaries(
    {
        "tags": st.lists(st.sampled_from(_TAGS), unique=True).map(tuple),
        "scope": st.builds(
            Scope, task_id=st.sampled_from(_TASKS), intent_id=st.sampled_from(_TASKS)
        ),
        "expires_at": st.none() | _SECONDS.map(at),
        "pinned": st.booleans(),
        "priority": st.sampled_from(tuple(PRIORITY_RANK)),
        "size": st.integers(0, 9),
        "updated_at": _SECONDS.map(at),
    }
)
_names = st.fixed_dictionaries(
    {
        "tier": st.sampled_from(_TIERS),
        "owner": st.sampled_from(_OWNERS),
        "namespace": st.sampled_from(_SPACES),
        "key": st.sampled_from(_KEYS),
    }
)
_places = st.integers(0, 999)
_seeds = st.integers(0, 2**32)
_steps = st.one_of(
    st.tuples(st.just("insert"), _names, _changeable, _SECONDS),
    st.tuples(st.just("replace"), _places, _changeable),
    st.tuples(st.just("remove"), _places),
    st.tuples(st.just("touch"), st.lists(st.tuples(_places, _SECONDS), max_size=3)),
)
_filters = st.builds(
    EntryFilter,
    tenant=st.just(""),
    tiers=st.lists(st.sampled_from(_TIERS), unique=True).map(tuple),
    agent_id=st.sampled_from((None, None, "ada", "grace")),
    namespace=st.sampled_from((None, None, None, *_SPACES)),
    namespace_prefix=st.sampled_from((None, None, "a", "a/", "A", "\U0001f44d", "z")),
    key=st.sampled_from((None, None, *_KEYS)),
    tags=st.lists(st.sampled_from(_TAGS), max_size=3).map(tuple),
    tags_any=st.lists(st.sampled_from(_TAGS), max_size=3).map(tuple),
    task_id=st.sampled_from((None, *_TASKS)),
    intent_id=st.sampled_from((None, *_TASKS)),
    pinned=st.sampled_from((None, None, True, False)),
    updated_after=st.none() | _SECONDS.map(at),
    updated_before=st.none() | _SECONDS.map(at),
    before=st.none() | st.integers(0, 30).map(_identifier),
    limit=st.none() | st.integers(0, 6),
    offset=st.sampled_from((0, 0, 1, 3, 40)),
)
_some_filters = st.lists(
    st.tuples(
        # One condition by itself finds more than all of them together: both kinds are wanted.
        st.one_of(
            _filters,
            _filters.map(lambda one: EntryFilter(tenant="", tags=one.tags, limit=one.limit)),
            _filters.map(
                lambda one: EntryFilter(tenant="", tags_any=one.tags_any, offset=one.offset)
            ),
            _filters.map(lambda one: EntryFilter(tenant="", namespace_prefix=one.namespace_prefix)),
        ),
        st.builds(VisibilityFilter, owners=_some(_OWNERS[:2]), namespaces=_some(_SPACES))
        | st.builds(
            VisibilityFilter,
            owners=_some(_OWNERS[:2]),
            namespaces=_some(_SPACES),
            tasks=_some(_TASKS[1:]),
            intents=_some(_TASKS[1:]),
            coordinated=_some(_TASKS[1:]),
            episodic=_some(_OWNERS[:2]),
        ),
        _SECONDS.map(at),
    ),
    min_size=1,
    max_size=12,
)


def _first_steps(seed: int) -> list[tuple[Any, ...]]:
    """Inserts of many entries, so that each of the later steps and each answer is about some."""
    chance = random.Random(seed)
    return [
        (
            "insert",
            {
                "tier": chance.choice(_TIERS),
                "owner": chance.choice(_OWNERS),
                "namespace": chance.choice(_SPACES),
                "key": chance.choice(_KEYS),
            },
            {
                "tags": tuple(chance.sample(_TAGS, chance.randrange(4))),
                "scope": Scope(task_id=chance.choice(_TASKS), intent_id=chance.choice(_TASKS)),
                "expires_at": chance.choice((None, at(chance.choice((4, 12))), at(8))),
                "pinned": chance.random() < 0.5,
                "priority": chance.choice(tuple(PRIORITY_RANK)),
                "size": chance.randrange(10),
                "updated_at": at(chance.randrange(13)),
            },
            chance.randrange(13),
        )
        for _ in range(24)
    ]


class _Player:
    """Does each step on the store and on the model."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.model = _Model()
        self._numbers = itertools.count(1)

    def _at(self, place: int) -> Entry | None:
        entries = list(self.model.entries.values())
        return entries[place % len(entries)] if entries else None

    async def play(self, transaction: Transaction, step: tuple[Any, ...]) -> None:
        kind, *details = step
        await getattr(self, f"_{kind}")(transaction, *details)

    async def _insert(
        self, transaction: Transaction, names: dict[str, Any], fields: dict[str, Any], second: int
    ) -> None:
        entry = Entry(
            tenant=self.tenant,
            id=_identifier(next(self._numbers)),
            agent_id=names["owner"] or "ada",
            value=b"x" * fields["size"],
            created_at=at(second),
            created_by="ada",
            provenance=Provenance(principal="ada", kind="agent"),
            **names,
            **fields,
        )
        free = self.model.named(entry) is None
        assert await transaction.entries.insert(entry, at(second)) is free
        if free:
            self.model.entries[entry.id] = entry
            self.model.accessed[entry.id] = at(second)

    async def _replace(self, transaction: Transaction, place: int, fields: dict[str, Any]) -> None:
        if (old := self._at(place)) is not None:
            new = msgspec.structs.replace(
                old, version=old.version + 1, value=b"y" * fields["size"], **fields
            )
            await transaction.entries.replace(old, new)
            self.model.entries[old.id] = new
            self.model.accessed[old.id] = new.updated_at

    async def _remove(self, transaction: Transaction, place: int) -> None:
        if (entry := self._at(place)) is not None:
            await transaction.entries.remove(entry)
            del self.model.entries[entry.id]

    async def _touch(self, transaction: Transaction, accesses: list[tuple[int, int]]) -> None:
        told = {_identifier(place % 20): at(second) for place, second in accesses}
        await transaction.entries.touch(told)
        for entry_id, instant in told.items():
            if entry_id in self.model.entries:
                self.model.accessed[entry_id] = max(self.model.accessed[entry_id], instant)

    async def compare(
        self, transaction: Transaction, searches: list[tuple[EntryFilter, VisibilityFilter, str]]
    ) -> None:
        """The store's every answer is the model's."""
        for wanted, visibility, now in searches:
            mine = replace(wanted, tenant=self.tenant)
            found = await transaction.entries.search(mine, visibility, now)
            assert found == expected_page(self.model.entries.values(), mine, visibility, now)
        for second in (0, 4, 12):
            await self._compare_counts(transaction, at(second))
            for owner in _OWNERS:
                victim = await first_to_evict(transaction, Tier.EPISODIC, owner, at(second))
                assert victim == self.model.victim(owner, at(second))

    async def _compare_counts(self, transaction: Transaction, now: str) -> None:
        entries, model = transaction.entries, self.model
        living = {entry.id: entry for entry in model.living(now)}
        for entry in model.entries.values():
            assert await entries.get(entry.id, now) == living.get(entry.id)
            assert await entries.find(*_name(entry)) == entry  # type: ignore[arg-type]
        gone = [e for e in model.entries.values() if e.id not in living]
        gone.sort(key=lambda e: (e.expires_at or "", e.id))
        assert await entries.expired(now, 3) == gone[:3]
        for owner, tier in itertools.product(_OWNERS, _TIERS):
            owned = model.owned(owner, tier, now)
            assert await entries.usage(tier, owner, now) == Usage(
                entries=len(owned),
                bytes=sum(e.size for e in owned),
                pinned=sum(e.pinned for e in owned),
            )
            assert await entries.tasks(tier, owner, now) == sorted(
                {e.scope.task_id for e in owned if e.scope.task_id is not None}
            )
            assert await entries.of_owner(tier, owner, 3) == model.whole(owner, tier)[:3]
            by_id = sorted(owned, key=lambda e: e.id)
            assert await entries.span(tier, owner, now) == (
                (by_id[0].created_at, by_id[-1].created_at) if by_id else (None, None)
            )
        for tier, task in itertools.product(_TIERS, ("task", "other")):
            bound = [e for e in model.entries.values() if (e.tier, e.scope.task_id) == (tier, task)]
            assert await entries.of_task(tier, task) == sorted(bound, key=lambda e: e.id)
            assert await entries.task_usage(tier, task, now) == _use(bound, living)
        for tier, space in itertools.product(_TIERS, _SPACES):
            inside = [
                e
                for e in model.entries.values()
                if (e.tier, e.owner, e.namespace) == (tier, "", space)
            ]
            assert await entries.namespace_usage(tier, space, now) == _use(inside, living)


class ModelConformance(StoreCase):
    """`port.Entries` against the model."""

    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(seed=_seeds, steps=st.lists(_steps, max_size=40), searches=_some_filters)
    async def test_random_work_matches_the_model(
        self,
        store: Store,
        seed: int,
        steps: list[tuple[Any, ...]],
        searches: list[tuple[EntryFilter, VisibilityFilter, str]],
    ) -> None:
        """Each example has a tenant of its own, so the others stand beside it in every index."""
        tenant = next(_tenants)

        async def script(transaction: Transaction) -> _Player:
            # A script may run more than once, and each time plays from the beginning.
            player = _Player(tenant)
            for step in (*_first_steps(seed), *steps):
                await player.play(transaction, step)
            await player.compare(transaction, searches)
            return player

        player = await store.write(tenant, script)
        await store.read(tenant, lambda to: player.compare(to, searches))
