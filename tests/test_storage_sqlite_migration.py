"""A database of the first version of memorywall is taken over with everything in it."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest

from memorywall.jobs.chain_log import chain_logs
from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry, Provenance, Scope
from memorywall.records.errors import ConfigurationError
from memorywall.records.event import Event, EventType, WorkEventType
from memorywall.records.event_chain import NO_HASH, LogHead, seal_event
from memorywall.records.identifiers import IdSource
from memorywall.records.namespace import Access, Grant
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits, Usage
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.encryption.keyed_store import KeyedStore
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.requests.event_log import append_event
from memorywall.storage.port import Transaction
from memorywall.storage.rows import content_to_row, envelope_to_row
from memorywall.storage.sqlite.connection import migrations, schema_version
from memorywall.storage.sqlite.consistency import SqliteConsistencyReader
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.statements import load
from memorywall_testing.base import (
    DIGEST_KEY,
    NOW,
    TENANT,
    find,
    get,
    make_event,
    search,
    visibility,
)
from memorywall_testing.work import make_lease
from tests.support.service import TestClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


def _problems(database: Path) -> list[str]:
    inspection = SqliteConsistencyReader(database)
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


async def _take_over(store: SqliteStore) -> KeyedStore:
    """What a server does before it takes requests."""
    clock = TestClock()
    keyed = KeyedStore(store, EnvelopeCipher(MasterKeys([bytes(32)]), IdSource(clock)))
    await chain_logs(keyed, clock)
    return keyed


def _make_old(database: Path) -> None:
    """A database as the first version left it."""
    database.parent.mkdir()
    connection = apsw.Connection(str(database))
    number, _, sql = migrations()[0]
    connection.execute(sql)
    connection.execute(_OLD_ROWS)
    connection.execute("PRAGMA application_id = 0x6D77616C")
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()


async def test_a_file_of_the_first_version_reads_as_before(database: Path) -> None:
    _make_old(database)
    store = SqliteStore.open(database)
    await _take_over(store)
    assert await find(store, _OLD_ENTRY) == await get(store, _OLD_ENTRY) == _OLD_ENTRY
    assert await search(store, tags=("tag",)) == [_OLD_ENTRY]
    assert await search(store, VisibilityFilter(tasks=("task",))) == [_OLD_ENTRY]
    assert await search(store, VisibilityFilter(intents=("intent",)), intent_id="intent") == [
        _OLD_ENTRY
    ]
    (shared,) = await search(store, visibility(namespaces=["policies"]))
    assert shared.provenance == Provenance(principal="ada", kind="agent", authority="human_curated")

    async def look(to: Transaction) -> None:
        assert await to.entries.task_usage(Tier.WORKING, "task", NOW) == Usage(entries=1, bytes=5)
        assert await to.entries.of_task(Tier.SEMANTIC, "task") == [shared]
        log = await to.events.list("ada", 0, 99)
        assert [(one.seq, one.type, one.data) for one in log] == [
            (1, EventType.CREATED, None),
            (2, EventType.CREATED, None),
            (3, EventType.UPDATED, None),
        ]
        assert await to.events.list_of_intent("intent", 0, 99) == [log[0], log[2]]
        assert await to.identities.limits("ada") == AgentLimits(episodic_capacity=7)
        assert await to.identities.limits("grace") == AgentLimits(episodic_capacity=0)
        namespace = await to.namespaces.get("policies")
        assert namespace is not None
        assert namespace.grants == (Grant(agent="ada", access=Access.ADMIN),)
        assert await to.identities.find_key("prefix") is not None
        assert await to.replies.get("ada", "key") is not None
        assert await to.data_keys.current() is not None

    async def look_at_another(to: Transaction) -> None:
        assert await to.identities.limits("ada") == AgentLimits(episodic_capacity=9)
        assert await to.identities.limits("grace") == AgentLimits()

    await store.read(TENANT, look)
    await store.read("globex", look_at_another)
    await store.close()
    assert _problems(database) == []


async def test_file_of_the_first_version_is_migrated(database: Path) -> None:
    _make_old(database)
    await SqliteStore.open(database).close()
    store = SqliteStore.open(database)
    keyed = await _take_over(store)
    event = Event(
        tenant=TENANT, type="note", stream="", agent_id="ada", actor="ada", intent_id="intent",
        timestamp=NOW, data=b"{}",
    )  # fmt: skip

    async def write(to: Transaction) -> None:
        # Behind the old events come the genesis event and one with the digests of the entries.
        assert (await append_event(to, event)).seq == 6
        taken = await to.leases.acquire(make_lease(), NOW)
        assert taken is not None
        await to.identities.set_limits("ada", AgentLimits(pinned_namespaces=("a",)))
        for record in await to.entries.of_task(Tier.WORKING, "task"):
            await to.entries.remove(record)

    await keyed.write(TENANT, write)
    limits = await store.read(TENANT, lambda to: to.identities.limits("ada"))
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


# From the schema before kinds


_BEFORE_KINDS = """
INSERT INTO tenants VALUES ('acme', '2026-01-01T00:00:00.000Z');
INSERT INTO entries (number, tenant, id, tier, owner, agent_id, namespace, key, session_id, tags,
    version, pinned, priority, sensitivity, created_at, updated_at, accessed_at, created_by,
    provenance, size, value)
VALUES
    (7, 'acme', 'mem_1', 'episodic', 'ada', 'ada', 'a', 'one', NULL, '["tag"]', 1, 0, 1, 'internal',
    '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 'ada',
    '{"principal":"ada","kind":"agent"}', 2, CAST('{}' AS BLOB)),
    (8, 'acme', 'mem_2', 'semantic', '', 'ada', 'a', 'one', 's', '[]', 1, 0, 1, 'internal',
    '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 'ada',
    '{"principal":"ada","kind":"agent","derived_from":[{"id":"mem_1","version":1},'
    || '{"id":"mem_0","version":1},{"id":"mem_1","version":2}]}',
    2, CAST('{}' AS BLOB));
INSERT INTO tags VALUES (3, 'acme', 'ada', 'tag', 1);
INSERT INTO entry_tags VALUES ('acme', 3, 7);
INSERT INTO usage VALUES ('acme', 'ada', 'episodic', 1, 2, 0), ('acme', '', 'semantic', 1, 2, 0);
"""


def _make_before_kinds(database: Path) -> None:
    database.parent.mkdir()
    connection = apsw.Connection(str(database))
    for number, _, sql in migrations()[:4]:
        connection.execute(sql)
        connection.execute(f"PRAGMA user_version = {number}")
    connection.execute(_BEFORE_KINDS)
    connection.execute("PRAGMA application_id = 0x6D77616C")
    connection.close()


async def test_file_from_before_kinds_gets_edges_and_takes_kinds(database: Path) -> None:
    _make_before_kinds(database)
    store = SqliteStore.open(database)

    async def look(to: Transaction) -> None:
        one = await to.entries.get("mem_1", NOW)
        two = await to.entries.find(Tier.SEMANTIC, "", "a", "one", "s")
        assert one is not None
        assert two is not None
        assert (one.kind, one.state, one.listed, one.tags) == (None, "live", True, ("tag",))
        assert set(two.edges) == {("derived_from", "mem_0"), ("derived_from", "mem_1")}
        assert await to.edges.sources("derived_from", ["mem_1"], 9) == ["mem_2"]
        assert await to.entries.find(Tier.SEMANTIC, "", "a", "one") is None

    await store.read(TENANT, look)
    assert [one.id for one in await search(store, tags=("tag",))] == ["mem_1"]

    async def change(to: Transaction) -> None:
        two = await to.entries.get("mem_2", NOW)
        assert two is not None
        new = msgspec.structs.replace(two, version=2, kind="ticket", kind_version=1)
        await to.entries.replace(two, new, keep_old=True)

    await store.write(TENANT, change)
    await store.close()
    assert _problems(database) == []


async def test_file_from_before_the_index_finds_who_was_forgotten(database: Path) -> None:
    database.parent.mkdir()
    connection = apsw.Connection(str(database))
    for number, _, sql in migrations()[:22]:
        connection.execute(sql)
        connection.execute(f"PRAGMA user_version = {number}")
    event = make_event(WorkEventType.SUBJECT_FORGOTTEN, data=b'{"subject_digest":"~1"}')
    stored = seal_event(event, LogHead(0, NO_HASH), DIGEST_KEY)
    statements = load("sqlite", "events")
    connection.execute(statements["append"], envelope_to_row(stored))
    connection.execute(statements["append_content"], content_to_row(stored))
    connection.execute("PRAGMA application_id = 0x6D77616C")
    connection.close()
    store = SqliteStore.open(database)
    found = await store.read(TENANT, lambda to: to.events.list_forgotten([b'"~1"'], NOW))
    assert [one.seq for one in found] == [1]
    await store.close()
    assert _problems(database) == []


async def test_file_whose_newest_step_only_adds_is_opened(database: Path) -> None:
    await SqliteStore.open(database).close()
    newest = migrations()[-1].number
    connection = apsw.Connection(str(database))

    def pretend(name: str, number: int) -> None:
        connection.execute("DELETE FROM migrations WHERE number > ?", (newest,))
        connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, name))
        connection.execute(f"PRAGMA user_version = {number}")

    pretend("999_add_more.expand.sql", newest + 1)
    await SqliteStore.open(database).close()
    pretend("999_add_more.expand.sql", newest + 2)
    with pytest.raises(ConfigurationError, match=f"knows {newest}"):
        SqliteStore.open(database)
    pretend("999_drop_more.contract.sql", newest + 1)
    with pytest.raises(ConfigurationError, match=f"knows {newest}"):
        SqliteStore.open(database)
    connection.close()
