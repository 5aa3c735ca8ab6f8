"""Searches for entries of every kind, compared with the filter's meaning in plain Python."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import PRIORITY_RANK, Entry, Scope
from memorywall.records.filter import EntryFilter, position_of
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import SEED, TENANT, StoreCase, at, make_entry, put, search_in
from memorywall_testing.filter_model import expected_page
from memorywall_testing.names import LOOKALIKES

_OWNED = (Tier.WORKING, Tier.SESSION, Tier.EPISODIC)
_SHARED = (Tier.SEMANTIC, Tier.PROCEDURAL)
_OWNERS = ("ada", "grace", "linus")
_SPACES = ("invoices", "orders", "orders/eu", "policies")
_KEYS = ("k", "k/1", "k/2", "last")
_TASKS = ("task", "other")
_INTENTS = ("intent", "other")
_SESSIONS = ("s1", "s2")
_TAGS = ("red", "green", "blue")
_MANY_TAGS = tuple(f"tag-{number:02d}" for number in range(64))
_PEOPLE = ("ann", "bob")
_PREFIXES = (
    *(
        "",
        "n",
        "na",
        "name",
        "name\u0301",
        "na%",
        "na_",
        "na*",
        "[",
        "I",
        "1",
        "zz",
        "orders/",
        "k/",
    ),
    *("\ufb01", "\u2764", "\uffee", "\U0001f44d", "\U0001f9d1", "\U00020000"),
)
_NUMBERED = tuple(f"name-{number:03d}" for number in range(103))
_SECONDS = range(5)
_Search: TypeAlias = tuple[EntryFilter, VisibilityFilter, str]
_WORDS: dict[str, tuple[str, ...]] = {
    "agent_id": _OWNERS,
    "except_owner": _OWNERS,
    "namespace": _SPACES,
    "key": _KEYS,
    "task_id": _TASKS,
    "intent_id": _INTENTS,
    "session_id": _SESSIONS,
}
"""The names in conditions on one name; each is also asked for every name of `LOOKALIKES`."""
_WORK = VisibilityFilter(
    owners=("ada",),
    namespaces=("policies",),
    tasks=("task",),
    intents=("intent",),
    coordinated=("other",),
    episodic=("grace",),
    by_group=(("invoices", "linus"),),
)
_THROUGH_WORK = (_WORK, replace(_WORK, session="s1", session_owners=("grace", "linus")))
"""Every way of access at once, outside and inside a session."""
_EACH_WAY = (
    *(VisibilityFilter(tasks=("task",)), VisibilityFilter(intents=("intent", "other"))),
    *(VisibilityFilter(coordinated=("other",)), VisibilityFilter(episodic=("grace", "linus"))),
    VisibilityFilter(session="s1", session_owners=("grace", "linus")),
    VisibilityFilter(by_group=(("invoices", "grace"), ("orders", "linus"))),
)
_NARROWING = ("tiers", "agent_id", "task_id", "intent_id", "session_id")
"""The conditions that exclude whole ways of access, which a store may then leave out."""


def _make(chance: random.Random, tenant: str, number: int) -> Entry:
    """An entry with few names, so that many entries meet a condition, and some meet several."""
    owner = chance.choice(("ada", *_OWNERS, ""))
    tags = chance.sample(_TAGS, chance.randrange(4))
    return make_entry(
        tenant=tenant,
        tier=chance.choice(_OWNED if owner else _SHARED),
        owner=owner,
        agent_id=owner or chance.choice(_OWNERS),
        namespace=chance.choice(_SPACES),
        key=chance.choice(_KEYS),
        value=b'{"n":%d}' % chance.randrange(4),
        tags=(*tags, *(["common"] if number % 10 else []), *(["rare"] if number == 7 else [])),
        scope=Scope(
            task_id=chance.choice((None, *_TASKS)),
            intent_id=chance.choice((None, *_INTENTS)),
            session_id=chance.choice((None, *_SESSIONS)),
        ),
        expires_at=chance.choice((None, None, at(10), at(20))),
        created_at=at(chance.choice(_SECONDS)),
        updated_at=at(chance.choice(_SECONDS)),
        pinned=chance.random() < 0.3,
        priority=chance.choice(tuple(PRIORITY_RANK)),
        subjects=tuple(chance.sample(_PEOPLE, chance.choice((0, 0, 1, 2)))),
    )


def _make_named(name: str, tenant: str) -> Iterator[Entry]:
    """Entries that have a name as a key, a tag and a scope, as their owner, and as a namespace."""
    scope = Scope(task_id=name, intent_id=name, session_id=name)
    yield make_entry(tenant=tenant, namespace="names", key=name, tags=(name, "common"), scope=scope)
    yield make_entry(tenant=tenant, namespace=name, key="in it", subjects=(name,))
    yield make_entry(tenant=tenant, owner=name, key="theirs", tier=Tier.EPISODIC)
    session = Scope(session_id="s1")
    yield make_entry(tenant=tenant, owner=name, key="said", tier=Tier.SESSION, scope=session)
    yield make_entry(tenant=tenant, owner="", namespace=name, key="all", tier=Tier.SEMANTIC)


def _population(chance: random.Random, tenant: str) -> list[Entry]:
    """Entries of every kind, each with a name of its own."""
    made = [_make(chance, tenant, number) for number in range(160)]
    named = {
        (one.tier, one.owner, one.namespace, one.key, one.scope.session_id): one for one in made
    }
    entries = [*named.values(), make_entry(tenant=tenant, key="tags", tags=_MANY_TAGS)]
    for name in LOOKALIKES:
        entries += _make_named(name, tenant)
    return entries


def _conditions(
    chance: random.Random, entries: list[Entry], lookalikes: tuple[str, ...] = LOOKALIKES
) -> list[tuple[str, Any]]:
    """Every condition, with many of its values.

    lookalikes: names in conditions besides those that many entries have
    """
    found: list[tuple[str, Any]] = [
        (field, name) for field, names in _WORDS.items() for name in (*names, *lookalikes)
    ]
    found += [(field, start) for field in ("namespace_prefix", "key_prefix") for start in _PREFIXES]
    found += [("tiers", tuple(chance.sample(tuple(Tier), size))) for size in (2, 2, 3, 4, 5)]
    found += [("tiers", (tier,)) for tier in Tier]
    few = (*_TAGS, "common", "rare", "none", "name")
    tags: list[tuple[str, ...]] = [(name,) for name in (*few, *lookalikes)]
    tags += [tuple(chance.choices(few, k=chance.randrange(2, 5))) for _ in range(30)]
    tags += [_MANY_TAGS[:4], _MANY_TAGS[:5], _MANY_TAGS, ("red", "red"), ("common", "rare")]
    found += [(field, names) for field in ("tags", "tags_any") for names in tags]
    found += [("pinned", True), ("pinned", False), ("before", "mem_0")]
    found += [("before", chance.choice(entries).id) for _ in range(5)]
    found += [
        (f"{kind}_{side}", at(second))
        for kind in ("created", "updated")
        for side in ("after", "before")
        for second in _SECONDS
    ]
    texts = ("value.n >= 2", "not value.n = 1", "pinned = true", 'tags contains "red"')
    return found + [("where", parse(text, ENTRY_FIELDS)) for text in texts]


def _pairs(chance: random.Random, known: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each pair of conditions on two fields, with some of their values."""
    values: dict[str, list[Any]] = {}
    for name, value in known:
        values.setdefault(name, []).append(value)
    for names in combinations(values, 2):
        for _ in range(4):
            yield {name: chance.choice(values[name]) for name in names}


def _everything(entries: list[Entry]) -> VisibilityFilter:
    return VisibilityFilter(
        owners=tuple({one.owner for one in entries} - {""}),
        namespaces=tuple({one.namespace for one in entries}),
    )


def _ways(chance: random.Random, entries: list[Entry]) -> list[VisibilityFilter]:
    """Every way of access by one name, some by several names, and the limits of a request."""
    found = [VisibilityFilter()]
    whole = _everything(entries)
    for name in (*_OWNERS, *LOOKALIKES):
        found += [VisibilityFilter(owners=(name,)), VisibilityFilter(episodic=(name,))]
        found.append(VisibilityFilter(by_group=(("invoices", name), ("Invoices", "grace"))))
        found.append(VisibilityFilter(session="s1", session_owners=(name,)))
    for name in (*_SPACES, *LOOKALIKES):
        found.append(VisibilityFilter(namespaces=(name,)))
        found.append(replace(whole, limited_to=(name,)))
    for name in (*_TASKS, "intent", *LOOKALIKES):
        found += [VisibilityFilter(tasks=(name,)), VisibilityFilter(intents=(name,))]
        found.append(VisibilityFilter(coordinated=(name,)))
    found += [replace(whole, session=name) for name in (*_SESSIONS, *LOOKALIKES, "S1")]
    found += [replace(whole, subjects=(name,)) for name in (*_PEOPLE, *LOOKALIKES)]
    found += [replace(whole, subjects=_PEOPLE), replace(whole, subjects=())]
    return [*found, *(_any_way(chance) for _ in range(100))]


def _some(chance: random.Random, names: Iterable[Any]) -> tuple[Any, ...]:
    listed = tuple(names)
    return tuple(chance.sample(listed, chance.randrange(len(listed) + 1)))


def _any_way(chance: random.Random) -> VisibilityFilter:
    """Several ways of access at once, perhaps with limits."""
    ways: dict[str, Any] = {
        "owners": _some(chance, _OWNERS[:2]),
        "namespaces": _some(chance, _SPACES),
        "tasks": _some(chance, _TASKS),
        "intents": _some(chance, _INTENTS),
        "coordinated": _some(chance, _INTENTS),
        "episodic": _some(chance, _OWNERS),
        "by_group": _some(chance, [(space, "linus") for space in _SPACES]),
    }
    given = {name: ways[name] for name in ways if chance.random() < 0.5}
    if chance.random() < 0.3:
        given |= {"session": chance.choice(_SESSIONS), "session_owners": _some(chance, _OWNERS)}
    if chance.random() < 0.2:
        given["limited_to"] = _some(chance, _SPACES)
    if chance.random() < 0.2:
        given["subjects"] = _some(chance, _PEOPLE)
    return VisibilityFilter(**given)


def _page(chance: random.Random, entries: list[Entry]) -> dict[str, Any]:
    """A part of the whole: a limit, an offset, an order, a position."""
    page: dict[str, Any] = {"limit": chance.choice((None, 0, 1, 3, 5, 1000))}
    page["offset"] = chance.choice((0, 0, 1, 3, 500))
    page["order"] = chance.choice(("created", "updated", "key", "priority"))
    page["ascending"] = chance.random() < 0.5
    page["counted"] = chance.random() < 0.7
    if chance.random() < 0.3:
        page["position"] = position_of(chance.choice(entries), page["order"])
        page["counted"] = False
    return page


async def _compare(
    to: Transaction, entries: list[Entry], wanted: EntryFilter, way: VisibilityFilter, now: str
) -> int:
    """Compares the page, the total and the counts of a search. Returns the total."""
    page, total = expected_page(entries, wanted, way, now)
    assert await search_in(to, wanted, way, now) == (page, total), (wanted, way, now)
    if wanted.counted and wanted.position is None:
        for at_most in (None, 3):
            counted = await to.entries.count(wanted, way, now, at_most)
            assert counted.entries == (total if at_most is None else min(total, at_most))
    return total


async def _compare_all(
    store: Store,
    entries: list[Entry],
    searches: Iterable[tuple[dict[str, Any], VisibilityFilter, str]],
) -> list[int]:
    """Compares each search. Returns their totals."""
    listed = [
        (EntryFilter(**{"tenant": TENANT, "limit": None, **given}), way, now)
        for given, way, now in searches
    ]
    totals: list[int] = []
    # A store may limit the time of a transaction, so that each has some of the searches only.
    for start in range(0, len(listed), 25):
        part = listed[start : start + 25]

        async def script(to: Transaction, part: list[_Search] = part) -> list[int]:
            return [await _compare(to, entries, *one) for one in part]

        totals += await store.read(TENANT, script)
    return totals


class FiltersConformance(StoreCase):
    """`port.Entries.search`, `search_rendered` and `count`: conditions and ways of access, alone
    and together, page by page, at several instants."""

    @pytest.mark.parametrize("part", ["alone", "together"])
    async def test_search_finds_what_the_filter_means(self, store: Store, part: str) -> None:
        print(f"MEMORYWALL_SEED={SEED}")
        chance = random.Random(f"{SEED} {part}")
        entries = _population(chance, TENANT)
        # Entries are inserted in any order, and stand beside those of another tenant.
        await put(store, *chance.sample(entries, len(entries)), *_population(chance, "globex"))
        few, whole = _conditions(chance, entries, ()), _everything(entries)
        ways = (whole, *_THROUGH_WORK)
        searches: list[tuple[dict[str, Any], VisibilityFilter]]
        if part == "alone":
            searches = [({name: value}, whole) for name, value in _conditions(chance, entries)]
            searches += [({}, way) for way in _ways(chance, entries)]
            searches += [({name: value}, way) for name, value in few for way in _THROUGH_WORK]
            narrowing = [one for one in few if one[0] in _NARROWING]
            searches += [({name: value}, way) for name, value in narrowing for way in _EACH_WAY]
        else:
            searches = [
                (given | _page(chance, entries), chance.choice((*ways, _any_way(chance))))
                for given in _pairs(chance, few)
            ]
        instants = (0, 9.999, 10, 20)
        totals = await _compare_all(
            store, entries, [(*one, at(chance.choice(instants))) for one in searches]
        )
        found = sum(total > 0 for total in totals)
        assert found > len(searches) / 4, "most searches find nothing and show little"

    async def test_a_filter_holds_for_any_number_of_names(self, store: Store) -> None:
        entries = [
            made
            for name in _NUMBERED
            for made in (
                make_entry(
                    owner=f"of {name}", scope=Scope(task_id=name, intent_id=name), tags=("a",)
                ),
                make_entry(owner=name, tier=Tier.EPISODIC, tags=(name, "a")),
                make_entry(owner="", namespace=name, tier=Tier.SEMANTIC, tags=("a", name)),
            )
        ]
        await put(store, *entries)
        searches = [
            (given, way, at(0))
            for size in (1, 2, 4, 5, 100)
            for way in _numbered_ways(_NUMBERED[:size])
            for given in _numbered_conditions(_NUMBERED[:size])
        ]
        await _compare_all(store, entries, searches)


def _numbered_ways(names: tuple[str, ...]) -> Iterator[VisibilityFilter]:
    for way in ("owners", "namespaces", "tasks", "intents", "coordinated", "episodic"):
        yield VisibilityFilter(**{way: names})  # type: ignore[arg-type]
    yield VisibilityFilter(by_group=tuple(("invoices", name) for name in names))
    yield VisibilityFilter(owners=names, namespaces=_NUMBERED)
    yield VisibilityFilter(owners=("nobody",), namespaces=names)
    yield VisibilityFilter(tasks=names, coordinated=_NUMBERED, episodic=names)
    yield VisibilityFilter(owners=_NUMBERED, namespaces=_NUMBERED, limited_to=names)


def _numbered_conditions(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    yield {"limit": 1}
    yield {"tags": ("a",)}
    yield {"tags_any": ("a", "none"), "limit": 2}
    yield {"tags_any": names}
    yield {"where": parse("value.number >= 0", ENTRY_FIELDS), "limit": 2}
