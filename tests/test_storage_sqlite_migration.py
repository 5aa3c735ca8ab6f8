"""A database of the first version of memorywall is taken over with everything in it."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from memorywall.records.decision import Reach
from memorywall.records.entry import Entry, Provenance, Scope
from memorywall.records.event import Event, EventType
from memorywall.records.namespace import Access, Grant
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.storage.conformance.base import NOW, TENANT, find, get, reach, search
from memorywall.storage.conformance.work import make_lease
from memorywall.storage.port import Transaction
from memorywall.storage.sqlite.connection import migrations, schema_version
from memorywall.storage.sqlite.inspection import SqliteInspection
from memorywall.storage.sqlite.store import SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


def _problems(database: Path) -> list[str]:
    inspection = SqliteInspection(database)
    problems = list(inspection.index_problems())
    inspection.close()
    return problems


_OLD_ROWS = """
INSERT INTO tenants VALUES ('acme', '2026-01-01T00:00:00.000Z');
INSERT INTO principals VALUES ('acme', 'ada', 'agent', '2026-01-01T00:00:00.000Z');
INSERT INTO api_keys VALUES
    ('prefix', x'00ff', 'acme', 'ada', 'agent', 'memory.read', '2026-01-01T00:00:00.000Z', NULL);
INSERT INTO agent_limits VALUES ('acme', 'ada', 7), ('acme', 'grace', 0), ('globex', 'ada', 9);
INSERT INTO data_keys VALUES ('acme', 'dek_1', x'01', 'kek', '2026-01-01T00:00:00.000Z');
INSERT INTO entries VALUES
    (4, 'acme', 'mem_1', 'working', 'ada', 'ada', 'invoices', 'one', 'task', 'intent', NULL,
    '["tag"]', NULL, NULL, 2, 1, 2, 'internal', '2026-01-01T00:00:00.000Z',
    '2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.000Z', 'ada', NULL,
    '{"principal":"ada","kind":"agent"}', 5, NULL, CAST('12345' AS BLOB)),
    (9, 'acme', 'mem_2', 'semantic', '', 'ada', 'policies', 'two', 'task', NULL, NULL,
    '[]', NULL, NULL, 1, 0, 1, 'public', '2026-01-01T00:00:00.000Z',
    '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 'ada', 'grace',
    '{"principal":"ada","kind":"agent","authority":"human_curated"}', 3, NULL,
    CAST('123' AS BLOB));
INSERT INTO tags VALUES (3, 'acme', 'ada', 'tag', 1);
INSERT INTO entry_tags VALUES ('acme', 3, 4);
INSERT INTO usage VALUES ('acme', 'ada', 'working', 1, 5, 1), ('acme', '', 'semantic', 1, 3, 0);
INSERT INTO events VALUES
    ('acme', 1, 'memory.created', 'ada', 'ada', 'ada', 'mem_1', 'working', 'invoices', 'one', 1,
    NULL, '["tag"]', 'task', 'intent', '2026-01-01T00:00:00.000Z'),
    ('acme', 2, 'memory.created', 'ada', 'ada', 'ada', 'mem_2', 'semantic', 'policies', 'two', 1,
    NULL, '[]', 'task', NULL, '2026-01-01T00:00:00.000Z'),
    ('acme', 3, 'memory.updated', 'ada', 'ada', 'ada', 'mem_1', 'working', 'invoices', 'one', 2,
    1, '["tag"]', 'task', 'intent', '2026-01-02T00:00:00.000Z');
INSERT INTO namespaces VALUES
    ('acme', 'policies', 'read', 1, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z');
INSERT INTO namespace_grants VALUES ('acme', 'policies', 0, 'ada', 'admin');
INSERT INTO kept_replies VALUES
    ('acme', 'ada', 'key', x'01', 201, x'02', 'dek_1', '2026-01-01T00:00:00.000Z');
INSERT INTO kept_reply_entries VALUES ('acme', 'mem_1', 'ada', 'key');
"""
_OLD_ENTRY = Entry(
    tenant=TENANT,
    id="mem_1",
    tier=Tier.WORKING,
    owner="ada",
    agent_id="ada",
    namespace="invoices",
    key="one",
    value=b"12345",
    size=5,
    scope=Scope(task_id="task", intent_id="intent"),
    tags=("tag",),
    version=2,
    pinned=True,
    priority="high",
    created_at="2026-01-01T00:00:00.000Z",
    updated_at="2026-01-02T00:00:00.000Z",
    created_by="ada",
    provenance=Provenance(principal="ada", kind="agent"),
)


def _make_old(database: Path) -> None:
    """A database as the first version left it."""
    database.parent.mkdir()
    connection = apsw.Connection(str(database))
    number, sql = migrations()[0]
    connection.execute(sql)
    connection.execute(_OLD_ROWS)
    connection.execute("PRAGMA application_id = 0x6D77616C")
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


async def test_a_file_of_the_first_version_reads_as_before(database: Path) -> None:
    _make_old(database)
    store = SqliteStore.open(database)
    assert await find(store, _OLD_ENTRY) == await get(store, _OLD_ENTRY) == _OLD_ENTRY
    assert await search(store, tags=("tag",)) == [_OLD_ENTRY]
    assert await search(store, Reach(tasks=("task",))) == [_OLD_ENTRY]
    assert await search(store, Reach(intents=("intent",)), intent_id="intent") == [_OLD_ENTRY]
    (shared,) = await search(store, reach(namespaces=["policies"]))
    assert shared.provenance == Provenance(principal="ada", kind="agent", authority="human_curated")

    async def look(to: Transaction) -> None:
        assert await to.entries.task_usage(TENANT, Tier.WORKING, "task", NOW) == Usage(
            entries=1, bytes=5
        )
        assert await to.entries.of_task(TENANT, Tier.SEMANTIC, "task") == [shared]
        log = await to.events.list(TENANT, "ada", 0, 99)
        assert [(one.seq, one.type, one.data) for one in log] == [
            (1, EventType.CREATED, None),
            (2, EventType.CREATED, None),
            (3, EventType.UPDATED, None),
        ]
        assert await to.events.list_of_intent(TENANT, "intent", 0, 99) == [log[0], log[2]]
        assert await to.identities.limits(TENANT, "ada") == AgentLimits(episodic_capacity=7)
        assert await to.identities.limits(TENANT, "grace") == AgentLimits(episodic_capacity=0)
        assert await to.identities.limits("globex", "ada") == AgentLimits(episodic_capacity=9)
        assert await to.identities.limits("globex", "grace") == AgentLimits()
        namespace = await to.namespaces.get(TENANT, "policies")
        assert namespace is not None
        assert namespace.grants == (Grant(agent="ada", access=Access.ADMIN),)
        assert await to.identities.find_key("prefix") is not None
        assert await to.replies.get(TENANT, "ada", "key") is not None
        assert await to.data_keys.current(TENANT) is not None

    await store.read(TENANT, look)
    await store.close()
    assert _problems(database) == []


async def test_a_file_of_the_first_version_takes_what_is_new(database: Path) -> None:
    _make_old(database)
    await SqliteStore.open(database).close()
    store = SqliteStore.open(database)
    event = Event(
        tenant=TENANT, type="note", stream="", agent_id="ada", actor="ada", intent_id="intent",
        timestamp=NOW, data=b"{}",
    )  # fmt: skip

    async def write(to: Transaction) -> None:
        assert (await to.events.append(event)).seq == 4
        taken = await to.leases.take(make_lease(), NOW)
        assert taken is not None
        await to.identities.set_limits(TENANT, "ada", AgentLimits(pinned_namespaces=("a",)))
        for record in await to.entries.of_task(TENANT, Tier.WORKING, "task"):
            await to.entries.remove(record)

    await store.write(TENANT, write)
    limits = await store.read(TENANT, lambda to: to.identities.limits(TENANT, "ada"))
    assert limits == AgentLimits(pinned_namespaces=("a",))
    assert await search(store, tags=("tag",)) == []
    await store.close()
    assert _problems(database) == []
    connection = apsw.Connection(str(database))
    assert schema_version(connection) == migrations()[-1][0]
    connection.close()


async def test_a_migration_that_fails_changes_nothing(database: Path) -> None:
    _make_old(database)
    connection = apsw.Connection(str(database))
    connection.execute("CREATE TABLE tasks (id TEXT)")
    before = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    with pytest.raises(apsw.SQLError):
        SqliteStore.open(database)
    after = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    assert after == before
    assert schema_version(connection) == 1
    connection.close()
