"""What the embedded store keeps for work: damage is found, plans use indexes, caches stay small."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Provenance, Source
from memorywall.records.filter import EntryFilter
from memorywall.records.intent import DefaultPolicy
from memorywall.records.tier import Tier
from memorywall.storage import rows
from memorywall.storage.port import Transaction
from memorywall.storage.sql.record_statements import all_checks
from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.consistency import SqliteConsistencyReader
from memorywall.storage.sqlite.search import plan
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.sqlite.transaction import SqliteTransaction, run_to_completion
from memorywall.storage.statements import load
from memorywall_testing.base import (
    DEADLINE,
    NOW,
    TENANT,
    get,
    make_entry,
    put,
    replace,
    search,
)
from memorywall_testing.work import (
    make_attachment,
    make_coordinator,
    make_grant,
    make_intent,
    make_lease,
    make_task,
)

pytestmark = pytest.mark.anyio

_MARKER = b"ATTACHED-AND-THEN-REMOVED"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(database, erasure_deadline=1.0)
    yield store
    await store.close()


# Damage


def _problems(database: Path) -> list[str]:
    inspection = SqliteConsistencyReader(database)
    problems = list(inspection.index_problems())
    inspection.close()
    return problems


async def _fill(transaction: Transaction) -> None:
    """One of everything, and what belongs to it."""
    await transaction.leases.acquire(make_lease(id="clm_1"), NOW)
    needed = make_intent(id="int_0")
    await transaction.intents.insert(needed)
    await transaction.intents.insert(
        make_intent(
            id="int_1",
            parent_intent_id="int_0",
            depends_on=("int_0",),
            default_policy=DefaultPolicy.OPEN,
        )
    )
    await transaction.intents.add_grant(make_grant(id="acl_1"))
    await transaction.tasks.insert(make_task(id="task_1", assigned_agent="ada"))
    await transaction.tasks.insert(make_task(id="task_2"))
    await transaction.coordinators.insert(make_coordinator(id="coord_1"))
    await transaction.attachments.insert(make_attachment(id="att_1"))
    for place in range(3):
        await transaction.attachments.put_chunk("att_1", place, b"piece")


_INTENT = "the columns of an intent are not what it says: acme int_1"
_TASK = "the columns of a task are not what it says: acme task_1"
_NEEDED = "what an intent depends on is not in the index: acme int_1"
_PIECE = "a piece of the content of an attachment is missing: acme att_1"
_TOKEN = "a lease has a token that was never given: acme clm_1"
_ORPHANS = {
    "a task belongs to no intent: acme task_1",
    "a task belongs to no intent: acme task_2",
    "a coordinator belongs to no intent: acme coord_1",
    "a line of an access list belongs to no intent: acme int_1 acl_1",
    "an attachment belongs to no intent: acme att_1",
    "an intent does not say that it depends on what the index says: acme int_1",
}
_OF_WORK = re.compile("intent|task|coordinator|attachment|access|lease")
# What is done to the file, and every problem that must be reported for it, no others.
_DAMAGES: list[tuple[str, set[str]]] = [
    ("UPDATE intents SET status = 'draft' WHERE id = 'int_1'", {_INTENT}),
    ("UPDATE intents SET created_by = 'eve' WHERE id = 'int_1'", {_INTENT}),
    ("UPDATE intents SET default_policy = 'closed' WHERE id = 'int_1'", {_INTENT}),
    ("UPDATE intents SET parent_intent_id = NULL WHERE id = 'int_1'", {_INTENT}),
    ("UPDATE tasks SET status = 'failed' WHERE id = 'task_1'", {_TASK}),
    ("UPDATE tasks SET assigned_agent = NULL WHERE id = 'task_1'", {_TASK}),
    ("UPDATE tasks SET assigned_agent = 'ada' WHERE id = 'task_2'", {_TASK.replace("k_1", "k_2")}),
    ("UPDATE tasks SET intent_id = 'int_0' WHERE id = 'task_1'", {_TASK}),
    (
        "UPDATE coordinators SET intent_id = 'int_0'",
        {"the columns of a coordinator are not what it says: acme coord_1"},
    ),
    (
        "UPDATE attachments SET intent_id = 'int_0'",
        {"the columns of an attachment are not what it says: acme att_1"},
    ),
    (
        "UPDATE attachments SET intent_id = NULL",
        {
            "the columns of an attachment are not what it says: acme att_1",
            "an attachment belongs to nothing: acme att_1",
        },
    ),
    (
        "UPDATE attachments SET entry_id = 'mem_9'",
        {
            "the columns of an attachment are not what it says: acme att_1",
            "an attachment belongs to no entry: acme att_1",
        },
    ),
    (
        "UPDATE tasks SET sealing_key = 'dek_9', sealed = x'00' WHERE id = 'task_1'",
        {"a task is sealed with a key that is gone: acme task_1"},
    ),
    (
        "UPDATE intents SET sealing_key = 'dek_9', sealed = x'00' WHERE id = 'int_1'",
        {"an intent is sealed with a key that is gone: acme int_1"},
    ),
    ("DELETE FROM intent_needs", {_NEEDED}),
    (
        "INSERT INTO intent_needs VALUES ('acme', 'int_1', 'int_0')",
        {"an intent does not say that it depends on what the index says: acme int_0"},
    ),
    ("DELETE FROM intents WHERE id = 'int_1'", _ORPHANS),
    (
        "DELETE FROM attachments",
        {"content is kept of an attachment that is gone: acme att_1"},
    ),
    ("DELETE FROM attachment_pieces WHERE place = 0", {_PIECE}),
    ("DELETE FROM attachment_pieces WHERE place = 1", {_PIECE}),
    ("UPDATE counters SET value = 0", {_TOKEN}),
    ("DELETE FROM counters", {_TOKEN}),
]


@pytest.mark.parametrize(("damage", "expected"), _DAMAGES, ids=lambda one: str(one)[:50])
async def test_damage_to_rows_of_work_is_found(
    store: SqliteStore, database: Path, damage: str, expected: set[str]
) -> None:
    await store.write(TENANT, _fill)
    await store.write(TENANT, lambda to: to.identities.add_tenant(TENANT, NOW))
    assert _problems(database) == []
    connection = apsw.Connection(str(database))
    connection.execute(damage)
    assert connection.changes() > 0
    connection.close()
    assert set(_problems(database)) == expected


def test_every_check_of_work_rows_finds_a_defect() -> None:
    found = {text.partition(":")[0] for _, expected in _DAMAGES for text in expected}
    checks = {name.replace("_", " ") for name in all_checks("sqlite")}
    assert {name for name in checks if _OF_WORK.search(name)} == found


# Erasure


async def test_the_bytes_of_a_removed_attachment_are_in_no_file(
    store: SqliteStore, database: Path
) -> None:
    attachment = make_attachment()

    async def fill(to: Transaction) -> None:
        await to.attachments.insert(attachment)
        for place in range(3):
            await to.attachments.put_chunk(attachment.id, place, _MARKER * 5_000)

    def files() -> list[str]:
        return [path.name for path in database.parent.iterdir() if _MARKER in path.read_bytes()]

    await store.write(TENANT, fill, long=True)
    # What is cut at the start in any case must not be what erases it.
    await _until(store.is_erasure_complete)
    assert files()
    await store.write(TENANT, lambda to: to.attachments.remove(attachment.id))
    await _until(store.is_erasure_complete)
    assert files() == []


async def _until(condition: Callable[[], bool]) -> None:
    """Waits for something that must come about."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        await asyncio.sleep(0.02)


# What is kept in memory


def _cached() -> tuple[int, int]:
    return (
        rows._decode_writer.cache_info().currsize,
        rows._encode_writer.cache_info().currsize,
    )


@pytest.mark.parametrize("writer", ["ada", 'ada"}', '"derived_from":[]}', "7}", "]}"])
async def test_unique_provenance_is_not_cached(store: SqliteStore, writer: str) -> None:
    def provenance(number: int) -> Provenance:
        sources = (Source(id=f"mem_{number}", version=number),) if number % 3 else ()
        token = number if number % 3 != 1 else None
        return Provenance(principal=writer, kind="agent", derived_from=sources, fencing_token=token)

    plain = make_entry(provenance=Provenance(principal=writer, kind="agent", authority="x"))
    await put(store, plain)
    assert await search(store) == [plain]
    before = _cached()
    entries = [make_entry(provenance=provenance(number)) for number in range(1, 60)]
    await put(store, *entries)
    for entry in entries:
        assert await get(store, entry) == entry
    changed = msgspec.structs.replace(entries[0], version=2, provenance=provenance(99))
    await replace(store, entries[0], changed)
    assert await get(store, changed) == changed
    assert _cached() == before


# The plans


def _plans(database: Path, statement: str, bindings: tuple[object, ...]) -> list[str]:
    connection = connect(database, read_only=True)
    found = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)]
    connection.close()
    return found


@pytest.mark.parametrize(
    ("statement", "bindings", "index"),
    [
        ("task_usage", (TENANT, "working", "t", NOW), "COVERING INDEX entries_by_task"),
        (
            "namespace_usage_shared",
            (TENANT, "shared", "shared/global", NOW),
            "COVERING INDEX entries_by_scope",
        ),
    ],
)
async def test_what_every_create_counts_is_read_from_an_index_alone(
    store: SqliteStore, database: Path, statement: str, bindings: tuple[str, ...], index: str
) -> None:
    (line,) = _plans(database, load("sqlite", "entries")[statement], bindings)
    assert index in line


_EVERYTHING = VisibilityFilter(
    owners=("ada",),
    namespaces=("n",),
    tasks=("t", "u"),
    intents=("i",),
    coordinated=("i",),
    episodic=("grace",),
)


@pytest.mark.parametrize(
    ("within", "conditions", "indexes"),
    [
        (VisibilityFilter(tasks=("t",)), {"task_id": "t"}, ["entries_by_task"]),
        (VisibilityFilter(owners=("ada",), tasks=("t",)), {"task_id": "t"}, ["entries_by_task"]),
        (_EVERYTHING, {"task_id": "t", "tags": ("a",)}, ["entries_by_task"]),
        (VisibilityFilter(tasks=("t", "u")), {}, ["entries_by_task"]),
        (VisibilityFilter(intents=("i",)), {}, ["entries_by_intent"]),
        (VisibilityFilter(coordinated=("i",)), {"intent_id": "i"}, ["entries_by_intent"]),
        (VisibilityFilter(episodic=("grace",)), {"agent_id": "grace"}, ["entries_by_owner"]),
        (
            VisibilityFilter(episodic=("a", "b")),
            {"namespace": "n", "key": "k"},
            ["entries_by_name"],
        ),
        (
            VisibilityFilter(tasks=("t",), coordinated=("i",), episodic=("grace",)),
            {},
            ["entries_by_task", "entries_by_intent", "entries_by_owner"],
        ),
        (_EVERYTHING, {"tiers": (Tier.EPISODIC,), "agent_id": "grace"}, [None, "entries_by_owner"]),
    ],
)
async def test_access_through_work_uses_an_index(
    store: SqliteStore,
    database: Path,
    within: VisibilityFilter,
    conditions: dict[str, Any],
    indexes: list[str | None],
) -> None:
    wanted = EntryFilter(tenant=TENANT, **conditions)
    query = plan(lambda statement, bindings: [], wanted, within, NOW)
    assert query is not None
    for statement, bindings in (query.page(), query.count()):
        lines = [line for line in _plans(database, statement, bindings) if " e USING " in line]
        assert len(lines) == len(indexes)
        for line, index in zip(lines, indexes, strict=True):
            assert index is None or f"INDEX {index} (tenant=?" in line


async def test_what_work_opens_is_passed_over_where_the_filter_leaves_none_of_it(
    store: SqliteStore,
) -> None:
    """The statement is then the same as that of a reach which work opens nothing to."""
    own = VisibilityFilter(owners=("ada",), namespaces=("n",))
    for conditions in (
        {"tiers": (Tier.SESSION,)},
        {"tiers": (Tier.WORKING,), "task_id": "other", "intent_id": "other"},
        {"tiers": (Tier.EPISODIC,), "agent_id": "ada"},
        {"task_id": "other", "intent_id": "other", "agent_id": "ada", "tags": ("a",)},
    ):
        wanted = EntryFilter(tenant=TENANT, **conditions)
        queries = [
            plan(lambda statement, bindings: [(1, 1)], wanted, within, NOW)
            for within in (own, _EVERYTHING)
        ]
        assert queries[0] is not None
        assert queries[0] == queries[1], conditions


async def test_a_refused_take_makes_no_change_that_had_to_be_undone(
    store: SqliteStore, database: Path
) -> None:
    """Such a change would have the whole group of writes run again."""
    await store.write(TENANT, lambda to: to.leases.acquire(make_lease(), NOW))
    connection = connect(database)
    transaction = SqliteTransaction(connection)
    before = connection.total_changes()
    assert (
        run_to_completion(lambda to: to.leases.acquire(make_lease(), NOW), transaction, TENANT)
        is None
    )
    assert connection.total_changes() == before
    connection.close()
