"""The rules of SQL that has to run on databases which are distributed by tenant.

The tenant is named wherever a table is. Ids, numbers and instants are the application's. Nothing
relies on sequences, triggers, foreign keys, messages of the database or locks beside the one on a
tenant's head. `test_sql_schema.py` has the rules of tables.
"""

from __future__ import annotations

import ast
import asyncio
import itertools
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from memorywall.expressions.entry_fields import ENTRY_FIELDS
from memorywall.expressions.parser import parse
from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter, ValueIndex
from memorywall.records.tier import Tier
from memorywall.storage.postgres import consistency, transfer_statements
from memorywall.storage.postgres.migrate import known_migrations
from memorywall.storage.postgres.search import search, search_each
from memorywall.storage.postgres.session import Row, StatementSession
from memorywall.storage.sql.record_statements import all_checks, record_statements
from memorywall.storage.sql.record_table import RECORDS
from memorywall.storage.statements import load, nouns
from memorywall.storage.transfer import TABLES
from tests.support.extent import extent
from tests.support.sql import forbidden, problems
from tests.test_architecture import _SOURCE

_ROOM = _SOURCE / "storage" / "postgres"
_CREATED = re.compile(r"CREATE TABLE (\w+) \(\s*(\w+)")
_RENAMED = re.compile(r"ALTER TABLE (\w+) RENAME TO (\w+)")
_TENANTS = {
    match[1]: match[2] for _, _, sql in known_migrations() for match in _CREATED.finditer(sql)
}
_TENANTS |= {
    match[2]: _TENANTS[match[1]]
    for _, _, sql in known_migrations()
    for match in _RENAMED.finditer(sql)
}

_TOUCHED = re.compile(r"\b(?:FROM|JOIN|UPDATE|USING)\s+(\w+)")
_LOOKS_LIKE_SQL = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|LOCK|FROM|VALUES)\b")

_PUT_TOGETHER = (
    "search.py",
    "search_statement.py",
    "row_conditions.py",
    "transfer_statements.py",
    "migrate.py",
)
"""Modules whose statements are checked as they are put together."""
_OF_ALL_TENANTS = {
    "identities.tenants": "the registry's list; in a tenant's transaction it is given the tenant",
    "identities.find_key": "a key tells the tenant, so it is found before that is known",
    "identities.keys_of_all": "the registry's list of keys",
    "data_keys.any": "any key will do to try the key-encryption key on",
    "data_keys.wrappers": "a rotation counts the data keys of all tenants",
    "heads.progress": "followers of many tenants look at all their heads at once",
    "heads.describe": "the number of the schema is nobody's",
    "heads.generation": "whether keys have changed, of whatever tenant",
    "transfer.tenants": "a copy is of all tenants",
    "transfer.unfinished": "a restore is of all tenants",
    "transfer.schema": "the number of the schema is nobody's",
    "transfer.servers": "who else is connected, which the database knows",
    "consistency: SELECT name FROM tenants ORDER BY name": "`verify` goes through all tenants",
    "consistency: SELECT tenant FROM heads ORDER BY tenant": "and through all that have rows",
    "consistency: SELECT name FROM tenants LIMIT 1": "whether it may read at all",
    "entries.old_index": "the database's catalogue",
    "walls.open_tables": "the database's catalogue",
    "walls.above_walls": "the database's catalogue",
}
"""Statements that are about no tenant, or about all, and why."""


# Where statements come from


def _named() -> Iterator[tuple[str, str]]:
    shown = {name: ", ".join(spec.shown) for name, spec in RECORDS.items()}
    for noun in nouns("postgres"):
        for name, statement in load("postgres", noun, shown=shown.get(noun, "")).items():
            if name != "columns":
                yield f"{noun}.{name}", statement
    for table, spec in RECORDS.items():
        for name, statement in record_statements(spec, "postgres").items():
            if name != "columns":
                yield f"record {table}.{name}", statement
    for name, statement in all_checks("postgres").items():
        yield f"inspection.{name}", statement


def _made_for_copies() -> Iterator[tuple[str, str]]:
    made = transfer_statements
    for table in TABLES:
        statements = {
            "counting": made.counting(table),
            "first page": made.page_of_lines(table, False),
            "next page": made.page_of_lines(table, True) if table.key else made.counting(table),
            "row": made.one_row(table),
            "deletion": made.deletion(table, table.key),
            "deletion of any": made.deletion_of_any(table, table.columns[-1]),
            "insertion": made.insertion(table),
        }
        for name, statement in statements.items():
            yield f"copy of {table.name}: {name}", statement


def _texts() -> Iterator[tuple[str, str]]:
    """SQL that stands as one text in a module."""
    yield "consistency: entries", consistency._ENTRIES
    for path in sorted(_ROOM.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = " ".join(node.value.split())
                elsewhere = path.name in _PUT_TOGETHER
                if not elsewhere and re.match(r"(?:SELECT .* FROM|INSERT|UPDATE|DELETE) ", text):
                    yield f"{path.stem}: {text[:57].strip()}", text


class _Recorder(StatementSession):
    """Keeps the statements of a search, which finds nothing."""

    def __init__(self) -> None:
        super().__init__(None, "acme")  # type: ignore[arg-type]
        self.statements_run: set[str] = set()

    async def rows(self, statement: str, *bindings: Any) -> list[Row]:
        assert bindings[0] == "acme"
        self.statements_run.add(statement)
        return []

    async def row(self, statement: str, *bindings: Any) -> Row | None:
        await self.rows(statement, *bindings)
        return (0,)


def _index(since: str | None, *, in_all_tiers: bool) -> ValueIndex:
    return ValueIndex(
        relation="path:value.a", targets=("n1.0", "?"), since=since, in_all_tiers=in_all_tiers
    )


def _range(since: int | None) -> ValueIndex:
    return ValueIndex(
        relation="path:a:value.b",
        targets=("?",),
        between=("t1", "t2"),
        since_version=since,
        in_all_tiers=True,
    )


_CONDITIONS: list[dict[str, Any]] = [
    {},
    {"tiers": (Tier.WORKING,)},
    {"tiers": (Tier.WORKING, Tier.EPISODIC)},
    {"agent_id": "ada"},
    {"namespace": "invoices"},
    {"namespace": "invoices", "key": "one"},
    {"key": "one"},
    {"namespace_prefix": "inv"},
    {"tags": ("a",)},
    {"tags": ("a", "b")},
    {"tags": ("a", "b", "c", "d")},
    {"tags_any": ("a",)},
    {"tags_any": ("a", "b")},
    {"tags": ("a", "b"), "tags_any": ("c", "d")},
    {"task_id": "task"},
    {"intent_id": "intent"},
    {"task_id": "task", "intent_id": "intent", "tags": ("a",), "tags_any": ("b",)},
    {"pinned": True, "updated_after": "2026", "updated_before": "2027"},
]
_REACHES = [
    VisibilityFilter(**cast(dict[str, Any], dict.fromkeys(ways, names)))
    for count in range(1, 7)
    for ways in itertools.combinations(
        ("owners", "namespaces", "tasks", "intents", "coordinated", "episodic"), count
    )
    for names in (("ada",), ("ada", "task", "intent"))
]
_REACHES += [
    VisibilityFilter(
        by_group=(("invoices", "ada"), ("plans", "eve")), **cast(dict[str, Any], others)
    )
    for others in ({}, {"owners": ("ada",), "namespaces": ("ada",)}, {"episodic": ("ada", "eve")})
]
_REACHES += [
    VisibilityFilter(owners=("ada",), session="s1", session_owners=owners, subjects=("ann", "~1"))
    for owners in ((), ("eve",))
]


_CONDITIONS_OF_LISTS: list[dict[str, Any]] = [
    {"where": parse('value.a = 1 and tags contains "b" or key < "c"', ENTRY_FIELDS)},
    {"value_index": _index(None, in_all_tiers=True)},
    {"value_index": _index("2026-02-02T02:40:00.000Z", in_all_tiers=False)},
    *({"value_index": _range(since)} for since in (None, 2)),
    {"order": "key", "position": ("a", "mem_1"), "key_prefix": "a", "opaque": True},
]
"""Conditions whose text does not depend on the reach; two reaches are enough."""


async def _searched() -> set[str]:
    recorder = _Recorder()
    for conditions, within in itertools.chain(
        itertools.product(_CONDITIONS, _REACHES),
        itertools.product(_CONDITIONS_OF_LISTS, (_REACHES[0], _REACHES[-1])),
    ):
        for before, offset in ((None, 0), ("mem_1", 5)):
            wanted = EntryFilter(
                tenant="acme", limit=10, offset=offset, before=before, **conditions
            )
            await search(recorder, wanted, within, "2026-02-02T02:40:00.000Z")
    each = [(replace(wanted, tiers=tiers), within) for tiers in ((), (Tier.WORKING,))]
    await search_each(recorder, each, "2026-02-02T02:40:00.000Z")
    return recorder.statements_run


_STATEMENTS = dict([*_named(), *_made_for_copies(), *_texts()])


# What they must be


@pytest.mark.parametrize("name", _STATEMENTS)
def test_a_statement_keeps_to_the_rules(name: str) -> None:
    found = problems(_STATEMENTS[name], _TENANTS)
    if name in _OF_ALL_TENANTS:
        assert found, "it is no exception any more"
        assert not forbidden(_STATEMENTS[name])
    else:
        assert found == [], _STATEMENTS[name]


def test_every_exception_is_there() -> None:
    assert set(_OF_ALL_TENANTS) <= set(_STATEMENTS)


def test_there_is_something_to_look_at() -> None:
    assert len(_TENANTS) > 20
    assert {table for table, column in _TENANTS.items() if column != "tenant"} == {"tenants"}
    assert len(dict(_named())) > 100
    assert len(dict(_made_for_copies())) > 100
    assert len(dict(_texts())) >= 5


def test_what_a_search_puts_together_keeps_to_the_rules() -> None:
    statements = asyncio.run(_searched())
    assert len(statements) > 300
    for statement in sorted(statements)[:: extent(5, long=1)]:
        assert problems(statement, _TENANTS) == [], statement


@pytest.mark.parametrize("name", [name for _, name, _ in known_migrations()])
def test_a_migration_makes_nothing_that_is_forbidden(name: str) -> None:
    (sql,) = (sql for _, one, sql in known_migrations() if one == name)
    # What is added while older servers write has a default, until the step that ends that.
    between = ["a value by default"] if name.endswith((".expand.sql", ".contract.sql")) else []
    assert [one for one in forbidden(sql) if one not in between] == []


def _pieces() -> Iterator[tuple[str, str]]:
    """Every text or part of one that looks like SQL, and the module it stands in."""
    for path in sorted(_ROOM.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _LOOKS_LIKE_SQL.search(text):
                yield path.name, text


def test_what_modules_say_beside_uses_nothing_that_is_forbidden() -> None:
    """The migrator alone keeps a list with the time, and locks it."""
    assert len(list(_pieces())) > 20
    found = {(module, what) for module, text in _pieces() for what in forbidden(text)}
    assert found == {("migrate.py", "the database's clock"), ("migrate.py", "another lock")}


# The rules can fail


_WELL = [
    "SELECT 1 FROM tasks WHERE tenant = $1 AND id = $2",
    "SELECT 1 FROM tasks t JOIN intents i ON i.tenant = t.tenant AND i.id = t.intent_id"
    " WHERE t.tenant = $1",
    "SELECT id FROM tasks WHERE tenant = $1 AND (status = $2 OR id = $3) ORDER BY id LIMIT 1",
    "SELECT 1 FROM (SELECT id FROM tasks WHERE tenant = $1 OFFSET 0) t WHERE t.id = $2",
    "WITH gone AS (DELETE FROM tasks WHERE tenant = $1 RETURNING id) SELECT id FROM gone",
    "INSERT INTO tasks (tenant, id) VALUES ($1, $2) ON CONFLICT (tenant, id) DO NOTHING",
    "UPDATE tasks SET status = n.status FROM unnest($2::text[]) AS n (status)"
    " WHERE tasks.tenant = $1 AND tasks.id = n.status",
    "SELECT seq FROM heads WHERE tenant = $1 FOR UPDATE",
    "SELECT id FROM tasks WHERE tenant = $1 AND status IS DISTINCT FROM body",
]
_BADLY = [
    "SELECT 1 FROM tasks",
    "SELECT 1 FROM tasks WHERE id = $1",
    "SELECT 1 FROM tasks WHERE tenant = 'acme'",
    "SELECT 1 FROM tasks WHERE tenant = $1 OR id = $2",
    "SELECT 1 FROM tasks WHERE (tenant = $1 OR id = $2)",
    "SELECT 1 FROM tasks WHERE NOT tenant = $1",
    "SELECT 1 FROM tasks WHERE tenant <> $1",
    "SELECT 1 FROM tasks WHERE tenant = $1 || $2",
    "SELECT 1 FROM tasks WHERE tenant = tenant",
    "SELECT 1 FROM tasks t WHERE t.id = $1 AND t.owner = $2",
    "SELECT 1 FROM tasks WHERE tenant = ANY($1::text[])",
    "SELECT 1 FROM tasks t JOIN intents i ON i.id = t.intent_id WHERE t.tenant = $1",
    "SELECT 1 FROM tasks t JOIN intents i USING (id) WHERE t.tenant = $1",
    "SELECT 1 FROM tasks t JOIN intents i ON i.tenant = t.tenant",
    "SELECT 1 FROM tasks t, intents i WHERE t.tenant = $1",
    "SELECT 1 FROM tasks t CROSS JOIN intents WHERE t.tenant = $1",
    "SELECT 1 FROM tasks t LEFT JOIN intents i ON tenant = $1 WHERE t.tenant = $1",
    "SELECT 1 FROM tasks WHERE tenant = $1 UNION ALL SELECT 1 FROM tasks",
    "SELECT 1 FROM tasks WHERE tenant = $1 AND id IN (SELECT id FROM intents)",
    "SELECT (SELECT count(*) FROM intents) FROM tasks WHERE tenant = $1",
    "SELECT 1 FROM (SELECT * FROM tasks) t WHERE t.tenant = $1",
    "SELECT 1 FROM tasks t CROSS JOIN LATERAL (SELECT 1 FROM intents WHERE id = t.id) i"
    " WHERE t.tenant = $1",
    "WITH gone AS (DELETE FROM tasks WHERE id = $1 RETURNING id) SELECT id FROM gone",
    "DELETE FROM tasks",
    "DELETE FROM tasks USING intents i WHERE tasks.tenant = $1",
    "UPDATE tasks SET status = $1",
    "UPDATE tasks SET tenant = $1 WHERE id = $2",
    "UPDATE tasks SET status = $2 FROM intents i WHERE tasks.tenant = $1",
    "INSERT INTO tasks (id, status) VALUES ($1, $2)",
    "INSERT INTO tasks (id, tenant) VALUES ($1, 'acme')",
    "INSERT INTO tasks (tenant, id) VALUES ($1 || $2, $2)",
    "INSERT INTO tasks VALUES ($1, $2)",
    "INSERT INTO tasks (tenant, id) VALUES ('acme', $1)",
    "INSERT INTO tasks (tenant, id) SELECT tenant, id FROM intents WHERE tenant = $1",
    "INSERT INTO tasks (tenant, id) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO tasks (tenant, id) VALUES ($1, $2)"
    " ON CONFLICT (tenant, id) DO UPDATE SET status = $3 WHERE tasks.status = $4",
    "SELECT 1 FROM tenants WHERE created_at = $1",
    "SELECT 1 FROM nothing_of_ours WHERE tenant = $1",
    "SELECT 1 FROM tasks WHERE tenant = $1 FOR UPDATE",
    "SELECT 1 FROM tasks WHERE tenant = $1 FOR SHARE",
    "SELECT 1 FROM heads h JOIN tasks t ON t.tenant = h.tenant WHERE h.tenant = $1 FOR UPDATE",
    "SELECT 1 FROM tasks WHERE tenant = $1 -- AND tenant = $1\n OR id = $2",
]
_FORBIDDEN = [
    "CREATE SEQUENCE numbers",
    "SELECT nextval('numbers')",
    "CREATE TABLE bad (tenant text, number bigserial)",
    "CREATE TABLE bad (tenant text, number serial)",
    "CREATE TABLE bad (tenant text, number bigint GENERATED BY DEFAULT AS IDENTITY)",
    "CREATE TABLE bad (tenant text, made text DEFAULT 'one')",
    "SELECT now()",
    "SELECT clock_timestamp ()",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT localtimestamp",
    "SELECT random()",
    "SELECT gen_random_uuid()",
    "SELECT uuidv7()",
    "CREATE TRIGGER bad AFTER INSERT ON tasks EXECUTE FUNCTION f()",
    "CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE bad (tenant text REFERENCES tenants)",
    "ALTER TABLE tasks ADD FOREIGN KEY (tenant) REFERENCES tenants",
    "NOTIFY changes",
    "LISTEN changes",
    "SELECT pg_notify('changes', $1)",
    "SELECT pg_advisory_xact_lock(1)",
    "SELECT pg_try_advisory_lock(1)",
    "CREATE TEMP TABLE bad (tenant text)",
    "CREATE TEMPORARY TABLE bad (tenant text)",
    "CREATE UNLOGGED TABLE bad (tenant text)",
    "LOCK TABLE tasks",
    "SELECT seq FROM heads WHERE tenant = $1 FOR UPDATE SKIP LOCKED",
]


@pytest.mark.parametrize("statement", _WELL)
def test_a_good_statement_is_let_through(statement: str) -> None:
    assert problems(statement, _TENANTS) == []


@pytest.mark.parametrize("statement", _BADLY)
def test_a_bad_statement_is_found(statement: str) -> None:
    assert problems(statement, _TENANTS)


@pytest.mark.parametrize("statement", _FORBIDDEN)
def test_what_is_forbidden_is_found(statement: str) -> None:
    assert forbidden(statement)
    assert forbidden(f"-- {statement}") == []


@pytest.mark.parametrize("name", sorted(set(_STATEMENTS) - set(_OF_ALL_TENANTS)))
def test_a_statement_without_one_of_its_tenants_is_found(name: str) -> None:
    """Each mention of the tenant in a condition is needed, but for those of more than there are
    tables; otherwise a table is missing from the rules."""
    statement = _STATEMENTS[name]
    tables = sum(table in _TENANTS for table in _TOUCHED.findall(statement))
    mentions = list(re.finditer(r"\b(?:\w+\.)?tenant = (?:\$1(?!\d)|\w+\.tenant)", statement))
    unneeded = []
    for mention in mentions:
        without = f"{statement[: mention.start()]}TRUE{statement[mention.end() :]}"
        if not problems(without, _TENANTS):
            unneeded.append(without)
    # Of three that hold two tables to each other and to the tenant, any one may go.
    rings = len(re.findall(r"tenant = \w+\.tenant", statement))
    assert len(unneeded) <= max(0, len(mentions) - tables) * (1 + 2 * rings), unneeded
    none = re.sub(r"\b(?:\w+\.)?tenant = \$1(?!\d)", "TRUE", statement)
    assert none == statement or problems(none, _TENANTS), none
