"""Two barriers between tenants: conditions of statements, and row-level security below them.

Each is taken away in turn, and nothing may leak; with both away it does, so these tests can fail.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from memorywall.records.errors import ConfigurationError
from memorywall.storage.port import Store, Transaction
from memorywall.storage.postgres import connection as connections
from memorywall.storage.postgres import store as stores
from memorywall.storage.postgres.connection import LONG_SETTINGS, SCHEMA, begin, make_pool
from memorywall.storage.postgres.row_security import check_row_security
from memorywall.storage.postgres.store import PostgresStore
from memorywall_testing.base import (
    NOW,
    TENANT,
    Opener,
    get,
    log_event,
    make_entry,
    make_event,
    put,
    search,
)
from memorywall_testing.tenants import TenantsConformance
from tests.support.postgres import database_of, shared_server
from tests.support.postgres_stores import open_store

pytestmark = pytest.mark.anyio

_OTHER = "globex"
_REGISTRY = {"api_keys", "data_keys", "heads", "tenants", "restores"}
_MADE_UP = {"text": "one", "bytea": b"one", "integer": 1, "bigint": 1}


# Without what the statements say


_PREDICATE = re.compile(
    r"(?:\b\w+\.)?\btenant = (?P<bound>\$\d+)"
    r"|(?:\b\w+\.)?\btenant = \w+\.tenant\b"
    r"|(?<=OR )\bname = (?P<named>\$1)(?= ORDER BY name)"
)


def _stripped(statement: str) -> str:
    """A statement that asks for what it asks for of every tenant."""

    def always(match: re.Match[str]) -> str:
        bound = match["bound"] or match["named"]
        return "TRUE" if bound is None else f"{bound}::text IS NOT NULL"

    return _PREDICATE.sub(always, statement)


class _Careless(connections._Connection):
    """A connection on which no statement of a tenant's transaction names the tenant. The registry
    is about all of them, and there it is a question like any other."""

    is_in_registry = False

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        rows: list[Any] = await super().fetch(self._careless(query), *args, **options)
        return rows

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await super().fetchrow(self._careless(query), *args, **options)

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        if "BEGIN" in query:
            self.is_in_registry = "memorywall.registry" in query
        return await super().execute(self._careless(query), *args, **options)

    def _careless(self, query: str) -> str:
        return query if self.is_in_registry else _stripped(query)


def _remove_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_Connection", _Careless)


def _remove_security(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unchecked(pool: object) -> None:
        """The store would not start."""

    monkeypatch.setattr(stores, "check_row_security", unchecked)
    off = (
        "DO $$ DECLARE one regclass; BEGIN FOR one IN SELECT oid FROM pg_class WHERE relrowsecurity"
    )
    off += (
        " LOOP EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', one); END LOOP; END $$"
    )
    shared_server().execute(off, database=database_of(url))
    left = "SELECT count(*) FROM pg_class WHERE relrowsecurity"
    assert shared_server().value(left, database=database_of(url)) == 0


class TestWithoutThePredicates(TenantsConformance):
    """Row-level security alone keeps the tenants apart."""

    @pytest.fixture
    def opener(self, database: str, monkeypatch: pytest.MonkeyPatch) -> Opener:
        _remove_predicates(monkeypatch)

        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(database)

        return opened


class TestWithoutRowLevelSecurity(TenantsConformance):
    """The statements alone keep the tenants apart."""

    @pytest.fixture
    def opener(self, database: str, monkeypatch: pytest.MonkeyPatch) -> Opener:
        _remove_security(database, monkeypatch)

        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(database)

        return opened


async def test_without_both_walls_everything_leaks(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So each of them is a barrier, and the cases above find a hole in it."""
    _remove_predicates(monkeypatch)
    _remove_security(database, monkeypatch)
    own, others = make_entry(tags=("tag",)), make_entry(tags=("tag",), tenant=_OTHER)
    async with open_store(database) as store:
        await put(store, own, others)
        await store.write(_OTHER, lambda to: log_event(to, make_event(tenant=_OTHER)))
        assert {entry.tenant for entry in await search(store)} == {TENANT, _OTHER}
        assert {entry.tenant for entry in await search(store, tags=("tag",))} == {TENANT, _OTHER}
        assert await store.read(TENANT, lambda to: to.entries.get(others.id, NOW)) == others
        event = await store.read(TENANT, lambda to: to.events.latest())
        assert event is not None
        assert event.tenant == _OTHER


# Row-level security, table by table


@dataclass(frozen=True)
class _Table:
    """A table.

    tenant: which column says whose a row is
    """

    name: str
    columns: dict[str, str]
    tenant: str

    def row(self, tenant: str) -> dict[str, object]:
        """A row of a tenant, the same as every other tenant's."""
        made_up = {name: _MADE_UP[kind] for name, kind in self.columns.items()}
        return {**made_up, self.tenant: tenant}

    @property
    def insertion(self) -> str:
        names = ", ".join(f'"{name}"' for name in self.columns)
        places = ", ".join(f"${place}" for place in range(1, len(self.columns) + 1))
        return f"INSERT INTO {self.name} ({names}) VALUES ({places})"


_COLUMNS = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = $1 AND table_name <> 'migrations' ORDER BY table_name, ordinal_position
"""


@asynccontextmanager
async def _connected(url: str, **settings: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings={"search_path": SCHEMA, **settings})
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def tables(database: str) -> list[_Table]:
    """All tables, each with one row of either tenant, alike but for whose they are."""
    columns: dict[str, dict[str, str]] = {}
    async with _connected(database) as owner:
        for table, column, kind in await owner.fetch(_COLUMNS, SCHEMA):
            columns.setdefault(table, {})[column] = kind
        tables = [
            _Table(name, kinds, "tenant" if "tenant" in kinds else "name")
            for name, kinds in columns.items()
        ]
        for table in tables:
            for tenant in (TENANT, _OTHER):
                await owner.execute(table.insertion, *table.row(tenant).values())
    assert len(tables) > 20
    return tables


@pytest.fixture
async def application(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection as a server has it."""
    async with _connected(database, role=LONG_SETTINGS["role"]) as connection:
        assert await connection.fetchval("SELECT current_user") == "memorywall_app"
        yield connection


async def _seen(connection: asyncpg.Connection, table: _Table) -> set[str]:
    rows = await connection.fetch(f"SELECT * FROM {table.name}")
    assert len(rows) == len({row[table.tenant] for row in rows})
    return {row[table.tenant] for row in rows}


async def _refused(connection: asyncpg.Connection, statement: str, *bindings: object) -> bool:
    """Whether row-level security refuses a statement, which is undone in either case."""
    within = connection.is_in_transaction()
    await connection.execute("SAVEPOINT here" if within else "BEGIN")
    try:
        await connection.execute(statement, *bindings)
    except asyncpg.InsufficientPrivilegeError as error:
        return "row-level security" in str(error)
    finally:
        await connection.execute("ROLLBACK TO here" if within else "ROLLBACK")
    return False


async def test_a_tenant_sees_its_own_rows_of_every_table(
    tables: list[_Table], application: asyncpg.Connection
) -> None:
    for isolation in ("READ COMMITTED", "REPEATABLE READ READ ONLY"):
        for tenant in (TENANT, _OTHER):
            await application.execute(begin(tenant, isolation))
            for table in tables:
                assert await _seen(application, table) == {tenant}, table.name
            await application.execute("COMMIT")


@pytest.mark.parametrize("tenant", ["", "Acme", "acme ", "acm", "%", "acme' OR 'a' = 'a", "\\"])
async def test_no_other_name_of_a_tenant_sees_anything(
    tables: list[_Table], application: asyncpg.Connection, tenant: str
) -> None:
    await application.execute(begin(tenant, "READ COMMITTED"))
    for table in tables:
        assert await _seen(application, table) == set(), table.name
    await application.execute("COMMIT")


@pytest.mark.parametrize("before", ["nothing", "a tenant", "the registry", "an undone tenant"])
async def test_without_a_tenant_nothing_is_seen_or_written(
    tables: list[_Table], application: asyncpg.Connection, before: str
) -> None:
    if before != "nothing":
        tenant = None if before == "the registry" else TENANT
        await application.execute(begin(tenant, "READ COMMITTED"))
        await application.execute("ROLLBACK" if before == "an undone tenant" else "COMMIT")
    accepted = []
    for table in tables:
        assert await _seen(application, table) == set(), table.name
        assert await application.execute(f"DELETE FROM {table.name}") == "DELETE 0"
        change = f"UPDATE {table.name} SET {table.tenant} = {table.tenant}"
        assert await application.execute(change) == "UPDATE 0"
        for tenant in (TENANT, "new", ""):
            row = table.row(tenant)
            if not await _refused(application, table.insertion, *row.values()):
                accepted.append((table.name, tenant))
    assert accepted == []


async def test_registry_contains_only_tenants_and_keys(
    tables: list[_Table], application: asyncpg.Connection
) -> None:
    await application.execute(begin(None, "REPEATABLE READ READ ONLY"))
    for table in tables:
        everybody = {TENANT, _OTHER} if table.name in _REGISTRY else set()
        assert await _seen(application, table) == everybody, table.name
    await application.execute("COMMIT")
    assert {table.name for table in tables} >= _REGISTRY


async def test_the_registry_changes_nothing(
    tables: list[_Table], application: asyncpg.Connection
) -> None:
    """Even in a transaction that may write."""
    await application.execute(begin(None, "READ COMMITTED"))
    for table in tables:
        assert await application.execute(f"DELETE FROM {table.name}") == "DELETE 0"
        change = f"UPDATE {table.name} SET {table.tenant} = {table.tenant}"
        assert await application.execute(change) == "UPDATE 0"
        for tenant in (TENANT, "new"):
            assert await _refused(application, table.insertion, *table.row(tenant).values())
    await application.execute("COMMIT")


async def test_a_tenant_writes_no_row_of_another(
    tables: list[_Table], application: asyncpg.Connection
) -> None:
    await application.execute(begin(TENANT, "READ COMMITTED"))
    for table in tables:
        for tenant in (_OTHER, "new", ""):
            row = table.row(tenant)
            assert await _refused(application, table.insertion, *row.values()), table.name
            change = f"UPDATE {table.name} SET {table.tenant} = $1"
            assert await _refused(application, change, tenant), table.name
        change = f"UPDATE {table.name} SET {table.tenant} = $1 WHERE {table.tenant} = $2"
        assert await application.execute(change, TENANT, _OTHER) == "UPDATE 0"
        remove = f"DELETE FROM {table.name} WHERE {table.tenant} = $1"
        assert await application.execute(remove, _OTHER) == "DELETE 0"
    await application.execute("COMMIT")


async def test_rows_of_a_tenant_cause_no_refusal_in_another(
    tables: list[_Table], application: asyncpg.Connection
) -> None:
    """No name, id, number or key that is taken elsewhere is taken here: that would tell of it."""
    await application.execute(begin("new", "READ COMMITTED"))
    for table in tables:
        await application.execute(table.insertion, *table.row("new").values())
        assert await _seen(application, table) == {"new"}, table.name
    await application.execute("COMMIT")


async def test_every_unique_key_begins_with_the_tenant(database: str) -> None:
    keys = shared_server().rows(
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE i.indisunique AND n.nspname = $1 AND c.relname <> 'migrations'",
        SCHEMA,
        database=database_of(database),
    )
    assert len(keys) > 20
    assert {(table, column) for table, column in keys if column != "tenant"} == {
        ("tenants", "name")
    }


async def test_a_script_that_writes_for_another_tenant_is_refused(database: str) -> None:
    own, others = make_entry(), make_entry(tenant=_OTHER)

    async def script(transaction: Transaction) -> None:
        await transaction.entries.insert(own, NOW)
        await transaction.entries.insert(others, NOW)

    async with open_store(database) as store:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await store.write(TENANT, script)
        assert await get(store, own) is None
        assert await get(store, others) is None


# Whether the policies exist is looked at


async def _add_table(url: str, *statements: str) -> None:
    async with _connected(url) as owner:
        await owner.execute("CREATE TABLE notes (tenant text, note text)")
        for statement in statements:
            await owner.execute(statement)


_ENABLE = "ALTER TABLE notes ENABLE ROW LEVEL SECURITY"
_FORCE = "ALTER TABLE notes FORCE ROW LEVEL SECURITY"


@pytest.mark.parametrize("statements", [[], [_ENABLE], [_FORCE]], ids=["none", "on", "forced"])
async def test_a_table_without_the_wall_keeps_a_server_from_starting(
    database: str, statements: list[str]
) -> None:
    await _add_table(database, *statements)
    with pytest.raises(ConfigurationError, match="row-level security is off in notes"):
        await PostgresStore.open(database)
    async with _connected(database) as owner:
        await owner.execute(f"{_ENABLE}; {_FORCE}")
    async with open_store(database) as store:
        assert await search(store) == []


async def test_server_does_not_start_when_a_table_has_no_row_level_security(
    database: str, tables: list[_Table]
) -> None:
    for table in tables:
        for one in ("ENABLE", "FORCE"):
            taken, put_back = f"NO {one}" if one == "FORCE" else "DISABLE", one
            async with _connected(database) as owner:
                await owner.execute(f"ALTER TABLE {table.name} {taken} ROW LEVEL SECURITY")
                with pytest.raises(ConfigurationError, match=f"off in {table.name};"):
                    await PostgresStore.open(database)
                await owner.execute(f"ALTER TABLE {table.name} {put_back} ROW LEVEL SECURITY")


async def test_a_server_that_owns_a_table_does_not_start(database: str) -> None:
    await _add_table(database, _ENABLE, _FORCE, "ALTER TABLE notes OWNER TO memorywall_app")
    with pytest.raises(ConfigurationError, match="owns tables or is above"):
        await PostgresStore.open(database)


@pytest.mark.parametrize("right", ["SUPERUSER", "BYPASSRLS"])
async def test_a_role_above_the_walls_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    role = f"above_{secrets.token_hex(6)}"
    server = shared_server()
    server.execute(f"CREATE ROLE {role} NOLOGIN {right}")
    try:
        monkeypatch.setattr(connections, "ROLE", role)
        pool = await make_pool(database, 1)
        try:
            with pytest.raises(ConfigurationError, match="owns tables or is above"):
                await check_row_security(pool)
        finally:
            await pool.close()
    finally:
        server.execute(f"DROP ROLE {role}")


@asynccontextmanager
async def _user(url: str, *grants: str) -> AsyncIterator[str]:
    """The URL of the database for a new user."""
    server, name = shared_server(), f"user_{secrets.token_hex(6)}"
    password = secrets.token_hex(8)
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    try:
        for grant in grants:
            server.execute(grant.format(name=name), database=database_of(url))
        yield server.url(database_of(url), user=name, password=password)
    finally:
        server.execute(f"DROP OWNED BY {name}", database=database_of(url))
        server.execute(f"DROP ROLE {name}")


async def test_member_of_the_role_can_run_a_server(database: str) -> None:
    """The owner migrates; a server needs no right but this one."""
    async with (
        _user(database, "GRANT memorywall_app TO {name}") as url,
        open_store(url) as store,
    ):
        entry = make_entry()
        await put(store, entry)
        assert await search(store) == [entry]


async def test_error_explains_the_missing_role_membership(database: str) -> None:
    async with _user(database, "GRANT SELECT ON memorywall.migrations TO {name}",
                     "GRANT USAGE ON SCHEMA memorywall TO {name}") as url:  # fmt: skip
        with pytest.raises(ConfigurationError, match="GRANT memorywall_app"):
            await PostgresStore.open(url)
