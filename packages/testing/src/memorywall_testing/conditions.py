"""Conditions: a search with `where` finds what the evaluation in memory finds."""

# ruff: noqa: S101, S311 - a case asserts, and what it does at random it can repeat.

from __future__ import annotations

import random
from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS, is_met_by
from memorywall.expressions.parser import parse
from memorywall.expressions.printer import print_condition
from memorywall.records.condition import (
    AllOf,
    AnyOf,
    Condition,
    Negation,
    Operator,
    Path,
    Scalar,
    Test,
)
from memorywall.records.entry import Entry, Scope
from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.tier import Tier
from memorywall.storage.port import Store, Transaction
from memorywall_testing.base import (
    NOW,
    SEED,
    TENANT,
    StoreCase,
    at,
    make_entry,
    newest_first,
    put,
    search,
    visibility,
)

_COMMON: list[str | int] = ["a", "b"]
_INDEXES: list[str | int] = [0, 1]
_NAMES = ["a", "b", "a b", "\u00fc", '"q"', "x\\y", "", "0", "not", "$", "a.b", "[0]", "\t", "\0"]
_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "\u00fc",
    "true",
    "1",
    "null",
    "\0a",
    "\U0001f9d1",
    "\uffff",
    "%",
    "\\",
]
_SMALL = [0, 1, -1, 2, 23]
_LARGE = [2**53, 2**53 + 1, -(2**63), 2**64, 10**400, -(10**400)]
_DECIMALS = [1.0, 0.5, 0.1, 1e300, -0.0, 5e-324, 1.5e308, 1e22]
_OPERATORS: list[Operator] = ["=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists"]


def random_value(chance: random.Random, depth: int = 0) -> Any:
    """A JSON value, often a scalar."""
    shape = chance.randrange(10)
    if depth < 3 and shape < 3:
        names = (*_COMMON, *chance.sample(_NAMES, chance.randrange(4)))
        return {name: random_value(chance, depth + 1) for name in names}
    if depth < 3 and shape < 5:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    numbers = [*_SMALL, *_LARGE, *_DECIMALS]
    return chance.choice([None, True, False, chance.choice(_TEXTS), chance.choice(numbers)])


def random_entry(chance: random.Random) -> Entry:
    """An entry with any value."""
    names = (*_COMMON, *chance.sample(_NAMES, chance.randrange(6)))
    value = msgspec.json.encode({name: random_value(chance, 1) for name in names})
    return make_entry(
        value=value,
        size=len(value),
        tags=tuple(chance.sample(["a", "ab", "\u00fc"], chance.randrange(3))),
        scope=Scope(task_id=chance.choice([None, "a", "ab"])),
        pinned=chance.random() < 0.5,
        priority=chance.choice(["low", "normal", "high"]),
        kind=chance.choice([None, "a"]),
        version=chance.choice([1, 2, 23]),
        updated_at=at(chance.randrange(3)),
    )


def random_condition(chance: random.Random, depth: int = 0) -> Condition:
    """Any tree that the parser could return."""
    if depth < 3 and chance.random() < 0.4:
        several = (random_condition(chance, depth + 1), random_condition(chance, depth + 1))
        trees: list[Condition] = [Negation(several[0]), AllOf(several), AnyOf(several)]
        return chance.choice(trees)
    field = "value" if chance.random() < 0.7 else chance.choice(list(ENTRY_FIELDS))
    steps: tuple[str | int, ...] = ()
    if ENTRY_FIELDS[field].type == "json":
        names = [name for name in _NAMES if name != "\0"]
        steps = tuple(
            chance.choice([*_COMMON, *_COMMON, chance.choice(names), *_INDEXES])
            for _ in range(chance.randrange(1, 4) if field == "value" else chance.randrange(2))
        )
    operator = chance.choice(_OPERATORS)
    return Test(Path(field, steps), operator, _literals(chance, field, operator))


def _literals(chance: random.Random, field: str, operator: Operator) -> tuple[Scalar, ...]:
    texts: list[str] = [text for text in _TEXTS if "\0" not in text]
    if ENTRY_FIELDS[field].type == "instant":
        texts = [at(1)]
    if ENTRY_FIELDS[field].words:
        texts = list(ENTRY_FIELDS[field].words)
    numbers = [*_SMALL, *_DECIMALS]
    ordered = operator in ("<", "<=", ">", ">=")
    others: list[Scalar] = [] if ordered else [None, True, False]

    def one() -> Scalar:
        options: list[Scalar] = [chance.choice(texts), chance.choice(numbers), *others]
        return chance.choice(options)

    if operator == "exists":
        return ()
    return tuple(one() for _ in range(chance.randrange(5) if operator == "in" else 1))


class ConditionsConformance(StoreCase):
    """`where` of `port.EntryRepository.search` and `count`."""

    async def test_search_and_evaluation_in_memory_agree(self, store: Store) -> None:
        print(f"MEMORYWALL_SEED={SEED}")
        chance = random.Random(SEED)
        entries = [random_entry(chance) for _ in range(60)]
        sealed = [
            make_entry(sensitivity="restricted", sealing_key="dek_1", value=b"\0\xff{", size=3),
            make_entry(value=b"", size=0),
        ]
        await put(store, *entries, *sealed)
        trees = [random_condition(chance) for _ in range(150)]
        hits = 0

        async def script(to: Transaction) -> None:
            nonlocal hits
            whole = EntryFilter(tenant=TENANT, limit=None, counted=False)
            hidden, _ = await to.entries.search(replace(whole, opaque=True), visibility("ada"), NOW)
            assert sealed[0] in hidden
            for tree in trees:
                assert parse(print_condition(tree), ENTRY_FIELDS)
                met = {one.id for one in (*entries, sealed[1]) if is_met_by(tree, one)}
                # Only the ids of what the store cannot read make a difference.
                known = tuple(one.id for one in hidden if one.id in met)
                wanted = replace(whole, where=tree, met=known)
                found, _ = await to.entries.search(wanted, visibility("ada"), NOW)
                by_store = {one.id for one in found} - {sealed[0].id}
                assert by_store == met, print_condition(tree)
                counted = await to.entries.count(wanted, visibility("ada"), NOW, None)
                assert counted.entries == len(found)
                assert counted.bytes == sum(one.size for one in found)
                hits += 0 < len(met) < len(entries)

        await store.read(TENANT, script)
        assert hits > 30

    async def test_rows_of_the_value_index_leave_only_entries_with_one(self, store: Store) -> None:
        relation = "path:ticket:value.due"

        def ticket(*targets: str, version: int = 2, owner: str = "ada") -> Entry:
            edges = tuple((relation, target) for target in targets)
            fields = {"kind": "ticket", "kind_version": version, "edges": edges, "tags": ("a",)}
            return make_entry(owner=owner, tier=Tier.EPISODIC, **fields)

        hers = [ticket(f"t{number}") for number in range(4)]
        grace = [ticket(f"t{number}", owner="grace") for number in range(4)]
        unknown, old, without = ticket("?"), ticket(version=1), ticket()
        await put(store, *hers, *grace, unknown, old, without)
        equal = ValueIndex(relation=relation, targets=("?", "t1", "t2"), in_all_tiers=True)
        between = replace(equal, targets=("?",), between=("t1", "t2"))
        work = replace(visibility("ada"), tasks=("task",), episodic=("grace",))
        for within, further in ((visibility("ada"), []), (work, grace[1:3])):
            found = [*hers[1:3], unknown, *further]
            for index in (equal, between):
                for asked in ({}, {"tags": ("a",)}, {"kind": "ticket"}):
                    rows = await search(store, within, value_index=index, **asked)
                    assert rows == newest_first(found)
                    since = replace(index, since_version=2)
                    rows = await search(store, within, value_index=since, **asked)
                    assert rows == newest_first([*found, old])
