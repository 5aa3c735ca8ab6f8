"""Bringing the schema up to date: many at once, halfway, by who may not, and after its time."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from memorywall.records.entry import Scope
from memorywall.records.errors import ConfigurationError
from memorywall.records.event import WorkEventType
from memorywall.records.tier import Tier
from memorywall.settings import STORE_ENVIRONMENT
from memorywall.storage.migration import Migration
from memorywall.storage.postgres import migrate as migrator
from memorywall.storage.postgres.consistency import PostgresConsistencyReader
from memorywall.storage.postgres.migrate import known_migrations, migrate
from memorywall.storage.postgres.store import PostgresStore
from memorywall_testing.base import (
    NOW,
    TENANT,
    insert,
    log_event,
    make_entry,
    make_event,
    put,
    search,
    visibility,
)
from tests.support.postgres import PostgresServer, database_of, fresh_database, shared_server
from tests.support.postgres_stores import LIMIT, open_store, until
from tests.support.process import run_cli

pytestmark = pytest.mark.anyio

_AT_ONCE = 8
_NAMES = [name for _, name, _ in known_migrations()]
_APPLIED = "SELECT name FROM memorywall.migrations ORDER BY number"
_OF_THE_SCHEMA = """
SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'memorywall' AND relname <> 'migrations' AND relname <> 'migrations_pkey'
"""


@pytest.fixture
def empty() -> Iterator[str]:
    """The URL of a database with nothing in it."""
    with fresh_database() as url:
        yield url


def _applied(url: str) -> list[str]:
    return [row[0] for row in shared_server().rows(_APPLIED, database=database_of(url))]


def _count(url: str) -> int:
    return int(shared_server().value(_OF_THE_SCHEMA, database=database_of(url)))


def test_the_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _, _ in known_migrations()] == list(range(1, len(_NAMES) + 1))
    for _, name, _ in known_migrations():
        assert re.fullmatch(r"\d{3}_[a-z]+_[a-z_]+(\.expand|\.contract)?\.sql", name)


async def test_missing_migration_is_applied_once(empty: str) -> None:
    assert await migrate(empty) == _NAMES
    assert await migrate(empty) == []
    assert _applied(empty) == _NAMES


async def test_many_at_once_apply_each_once(empty: str) -> None:
    applied = await asyncio.gather(*(migrate(empty) for _ in range(_AT_ONCE)))
    assert sorted(name for names in applied for name in names) == _NAMES
    assert _applied(empty) == _NAMES
    assert await migrate(empty) == []


async def test_many_stores_open_an_empty_database_at_once(empty: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(empty) for _ in range(_AT_ONCE)))
    try:
        entries = [make_entry() for _ in stores]
        await asyncio.gather(
            *(put(store, entry) for store, entry in zip(stores, entries, strict=True))
        )
        for store in stores:
            assert len(await search(store)) == len(stores)
    finally:
        for store in stores:
            await store.close()
    assert _applied(empty) == _NAMES


def test_many_processes_at_once_on_a_server_that_has_never_seen_a_memorywall() -> None:
    """Not even the role is there, which all databases of a server share."""
    with PostgresServer() as server:
        url = server.create_database()
        command = [sys.executable, "-m", "memorywall", "migrate", "--store", url]
        running = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(_AT_ONCE)
        ]
        printed = [process.communicate(timeout=120) for process in running]
        assert [process.returncode for process in running] == [0] * _AT_ONCE, printed
        lines = [line for out, _ in printed for line in out.splitlines()]
        assert sorted(line for line in lines if line.startswith("applied ")) == [
            f"applied {name}" for name in _NAMES
        ]
        assert lines.count("the schema is up to date") == sum(
            "applied" not in out for out, _ in printed
        )
        assert [error for _, error in printed] == [""] * _AT_ONCE
        names = [row[0] for row in server.rows(_APPLIED, database=database_of(url))]
        assert names == _NAMES


def test_the_command_tells_what_it_applied(empty: str) -> None:
    first = run_cli("migrate", "--store", empty)
    names = "names were not looked at: the key-encryption key is not here"
    assert first.stdout.splitlines() == [*(f"applied {name}" for name in _NAMES), names]
    again = run_cli("migrate", env={**os.environ, STORE_ENVIRONMENT: empty})
    assert again.stdout == f"the schema is up to date\n{names}\n"
    assert first.stderr == again.stderr == ""


def test_the_command_says_what_is_wrong() -> None:
    refused = run_cli("migrate", check=False)
    assert refused.returncode != 0
    assert "--store" in refused.stderr
    secret = "hunter2-of-the-owner"
    away = f"postgresql://somebody:{secret}@127.0.0.1:9/nothing"
    refused = run_cli("migrate", "--store", away, check=False)
    assert refused.returncode != 0
    assert "cannot be reached" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert secret not in refused.stdout + refused.stderr


async def test_an_older_version_of_postgresql_is_refused(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrator, "OLDEST", 99)
    with pytest.raises(ConfigurationError, match="needs PostgreSQL 99 or newer"):
        await migrate(empty)


# A newer schema


async def test_a_newer_schema_is_refused(database: str) -> None:
    newer = len(_NAMES) + 1
    shared_server().execute(
        f"INSERT INTO memorywall.migrations VALUES ({newer}, 'of_later.sql', now())",
        database=database_of(database),
    )
    for refused in (migrate(database), PostgresStore.open(database)):
        with pytest.raises(ConfigurationError, match=f"schema {newer}.*knows {len(_NAMES)}"):
            await refused
    assert _applied(database) == [*_NAMES, "of_later.sql"]


# Who may not


@asynccontextmanager
async def _user(url: str, *grants: str) -> AsyncIterator[str]:
    """The URL of the database for a new user with these rights."""
    server, name = shared_server(), f"user_{secrets.token_hex(6)}"
    password = secrets.token_hex(8)
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    try:
        for grant in grants:
            server.execute(
                grant.format(name=name, database=database_of(url)), database=database_of(url)
            )
        yield server.url(database_of(url), user=name, password=password)
    finally:
        server.execute(f"DROP OWNED BY {name} CASCADE", database=database_of(url))
        server.execute(f"DROP ROLE {name}")


@pytest.mark.parametrize(
    "grants",
    [
        [],
        ["GRANT CREATE ON DATABASE {database} TO {name}"],
        ["GRANT memorywall_app TO {name}"],
    ],
    ids=["nothing", "a schema but not the role", "the role but no schema"],
)
async def test_missing_rights_of_a_user_are_reported(
    empty: str, database: str, grants: list[str]
) -> None:
    del database  # Once a memorywall has been on the server the role is there.
    async with _user(empty, *grants) as url:
        for refused in (migrate(url), PostgresStore.open(url)):
            with pytest.raises(ConfigurationError, match="may not change it; run `memorywall"):
                await refused
    assert _count(empty) == 0


async def test_user_with_the_rights_need_not_be_a_superuser(empty: str, database: str) -> None:
    del database
    async with _user(
        empty,
        "GRANT CREATE ON DATABASE {database} TO {name}",
        "GRANT memorywall_app TO {name}",
    ) as url:
        assert await migrate(url) == _NAMES
        async with open_store(url) as store:
            entry = make_entry()
            await put(store, entry)
            assert await search(store) == [entry]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody@127.0.0.1:9/nothing",
        "postgresql://nobody@127.0.0.1:notaport/nothing",
        "postgresql://nobody@no-such-host.invalid/nothing",
    ],
)
async def test_missing_database_is_reported(url: str) -> None:
    for refused in (migrate(url), PostgresStore.open(url)):
        with pytest.raises(ConfigurationError, match="cannot be reached"):
            await refused


async def test_unknown_database_or_user_is_reported() -> None:
    server = shared_server()
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        await migrate(server.url(f"nothing_{secrets.token_hex(4)}"))
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        await migrate(server.url(user=f"nobody_{secrets.token_hex(4)}", password="none"))


# Halfway


def _with_more(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """As if there were one more migration."""
    number = len(_NAMES) + 1
    more = [*known_migrations(), Migration(number, f"{number:03d}_add_more.sql", sql)]
    monkeypatch.setattr(migrator, "known_migrations", lambda: more)


_MORE = "CREATE TABLE more (tenant text); INSERT INTO more VALUES ('acme'); SELECT {};"


@pytest.mark.parametrize("start", ["empty", "current"])
async def test_a_migration_that_fails_leaves_nothing_of_itself(
    empty: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if start == "current":
        await migrate(empty)
    with monkeypatch.context() as patch:
        _with_more(patch, _MORE.format("1 / 0"))
        with pytest.raises(asyncpg.DivisionByZeroError):
            await migrate(empty)
    assert _applied(empty) == _NAMES
    there = "SELECT to_regclass('memorywall.more') IS NULL"
    assert shared_server().value(there, database=database_of(empty))
    _with_more(monkeypatch, _MORE.format("1"))
    assert [name[4:] for name in await migrate(empty)] == ["add_more.sql"]
    assert await migrate(empty) == []


async def test_a_migration_that_is_cut_off_leaves_nothing_and_is_done_again(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = shared_server()
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND query LIKE '%pg_sleep%'"
        " AND state = 'active' AND pid <> pg_backend_pid()"
    )
    end = running.replace("count(*)", "count(pg_terminate_backend(pid))")
    with monkeypatch.context() as patch:
        _with_more(patch, _MORE.format("pg_sleep(60)"))
        migrating = asyncio.ensure_future(migrate(database))
        await until(lambda: server.value(running, database_of(database)), "it is under way")
        assert server.value(end, database_of(database)) == 1
        async with asyncio.timeout(LIMIT):
            outcome = (await asyncio.gather(migrating, return_exceptions=True))[0]
        assert isinstance(outcome, Exception)
    assert _applied(database) == _NAMES
    _with_more(monkeypatch, _MORE.format("1"))
    assert [name[4:] for name in await migrate(database)] == ["add_more.sql"]


async def test_servers_continue_when_no_migration_is_needed(database: str) -> None:
    async with open_store(database) as store:
        entries = [make_entry() for _ in range(50)]
        await asyncio.gather(
            *(put(store, entry) for entry in entries), *(migrate(database) for _ in range(_AT_ONCE))
        )
        assert len(await search(store)) == 50


async def test_database_from_before_the_index_finds_who_was_forgotten(database: str) -> None:
    event = make_event(WorkEventType.SUBJECT_FORGOTTEN, data=b'{"subject_digest":"~1"}')
    async with open_store(database) as store:
        await store.write(TENANT, lambda to: log_event(to, event))
    before = "DROP INDEX memorywall.events_forgotten; DELETE FROM memorywall.migrations"
    shared_server().execute(f"{before} WHERE number >= 26", database=database_of(database))
    assert await migrate(database) == _NAMES[25:]
    async with open_store(database) as store:
        found = await store.read(TENANT, lambda to: to.events.list_forgotten([b'"~1"'], NOW))
        assert [one.seq for one in found] == [1]


# From the schema before kinds, beside a server that knows no more than that


_BEFORE_KINDS = """
INSERT INTO memorywall.entries (tenant, id, tier, owner, agent_id, namespace, key, session_id, tags,
    version, pinned, priority, sensitivity, created_at, updated_at, accessed_at, created_by,
    provenance, size, value)
VALUES ('acme', '{id}', 'semantic', '', 'ada', 'a', '{key}', NULL, '[]', 1, 0, 1, 'internal',
    '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 'ada',
    '{{"principal":"ada","kind":"agent","derived_from":[{{"id":"mem_0","version":1}},'
    || '{{"id":"mem_0","version":2}}]}}', 2, '{{}}');
INSERT INTO memorywall.usage VALUES ('acme', '', 'semantic', 1, 2, 0)
    ON CONFLICT (tenant, owner, tier) DO UPDATE SET entries = usage.entries + 1,
    bytes = usage.bytes + 2;
"""


async def _at_schema(url: str, newest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brings an empty database to an older schema."""
    older = [one for one in known_migrations() if one.number <= newest]
    with monkeypatch.context() as patch:
        patch.setattr(migrator, "known_migrations", lambda: older)
        assert await migrate(url) == [one.name for one in older]


def _old_server_writes(url: str, entry_id: str) -> None:
    statement = _BEFORE_KINDS.format(id=entry_id, key=entry_id)
    shared_server().execute(statement, database=database_of(url))


async def test_contract_step_waits_until_older_servers_are_gone(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _at_schema(empty, 5, monkeypatch)
    _old_server_writes(empty, "mem_1")
    older_server = await asyncpg.connect(empty, server_settings={"application_name": "memorywall"})
    try:
        # This version needs what only comes after the contract step, so it serves nothing yet; the
        # older server does.
        with pytest.raises(ConfigurationError, match=r"older version are connected.*still 6"):
            await migrate(empty)
        _old_server_writes(empty, "mem_2")
        assert _applied(empty) == _NAMES[:6]
    finally:
        await older_server.close()
    assert await migrate(empty) == _NAMES[6:]
    async with open_store(empty) as store:
        one, two = await search(store, visibility(namespaces=["a"]))
        assert (one.id, one.kind, one.state, one.listed) == ("mem_2", None, "live", True)
        name = {"tier": Tier.SEMANTIC, "owner": "", "namespace": "a", "key": two.key}
        assert await insert(store, make_entry(**name, scope=Scope(session_id="s")))
        await put(store, make_entry(kind="ticket", kind_version=1, edges=(("likes", "tea"),)))
        found = await store.read(TENANT, lambda to: to.edges.sources("derived_from", ["mem_0"], 9))
        assert found == ["mem_1", "mem_2"]
        assert len(await search(store, visibility(namespaces=["a"]), key=two.key)) == 2
    inspection = PostgresConsistencyReader(empty)
    assert list(inspection.index_problems()) == []
    inspection.close()


async def test_server_runs_on_a_schema_one_expand_step_newer(database: str) -> None:
    newer = len(_NAMES) + 1
    server, name = shared_server(), database_of(database)
    row = "INSERT INTO memorywall.migrations VALUES ({}, '{}', now())"
    server.execute(row.format(newer, "of_later.expand.sql"), database=name)
    assert await migrate(database) == []
    async with open_store(database) as store:
        await put(store, make_entry())
    server.execute(row.format(newer + 1, "of_later_still.expand.sql"), database=name)
    with pytest.raises(ConfigurationError, match=f"schema {newer + 1}.*knows {len(_NAMES)}"):
        await migrate(database)
