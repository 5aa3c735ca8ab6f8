"""The rules of the schema of PostgreSQL, as the migrations leave it.

The tenant comes first in every table, key and index. The database fills no column, and has no
sequences, triggers, functions or foreign keys. `test_sql_lint.py` has the rules of statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memorywall.storage.postgres.connection import SCHEMA
from tests.support.backend import own_database
from tests.support.postgres import database_of, shared_server

_INDEXES = """
SELECT i.relname, t.relname, coalesce(a.attname, '') FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_namespace n ON n.oid = t.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
WHERE n.nspname = $1
"""
_OBJECTS = """
SELECT 'sequence', relname::text FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('S', 'v', 'm', 'f') AND nspname = $1
UNION ALL SELECT 'trigger', tgname::text FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = $1
UNION ALL SELECT 'constraint', conname::text FROM pg_constraint
JOIN pg_namespace n ON n.oid = connamespace WHERE contype NOT IN ('p', 'n') AND nspname = $1
UNION ALL SELECT 'function', proname::text FROM pg_proc
JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = $1
UNION ALL SELECT 'table without a key', relname::text FROM pg_class c
JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') AND nspname = $1
    AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisprimary)
"""
_COLUMNS = """
SELECT c.relname, a.attname, a.atthasdef, a.attidentity <> '' AS has_identity, a.attnum,
    t.typname, coalesce(l.collname, '') AS collation
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
"""
_BY_PREFIX = "index api_keys_by_prefix of api_keys begins with prefix"
"""The one exception: a key is found by its prefix, for it tells the tenant in the first place."""


def _problems_of_schema(url: str) -> list[str]:
    """What is wrong with the tables of a database, but for the migrator's own."""

    def rows(statement: str) -> list[Any]:
        found: Sequence[Any] = shared_server().rows(statement, SCHEMA, database=database_of(url))
        return [row for row in found if "migrations" not in tuple(row)]

    found = [f"{kind} {name}" for kind, name in rows(_OBJECTS) if name != "migrations_pkey"]
    for index, table, column in rows(_INDEXES):
        if column != ("name" if table == "tenants" else "tenant"):
            found.append(f"index {index} of {table} begins with {column}")
    for table, column, has_default, has_identity, place, kind, collation in rows(_COLUMNS):
        if has_default or has_identity:
            found.append(f"the database fills {table}.{column}")
        if kind not in ("text", "bytea", "bigint", "integer", "int8", "int4"):
            found.append(f"{table}.{column} is {kind}")
        if kind == "text" and collation != "C":
            found.append(f"{table}.{column} is compared by {collation}")
        if place == 1 and column != ("name" if table == "tenants" else "tenant"):
            found.append(f"{table} begins with {column}")
    return sorted(set(found))


def test_the_schema_keeps_to_the_rules() -> None:
    with own_database() as url:
        assert _problems_of_schema(url) == [_BY_PREFIX]


_BAD_TABLES = {
    'CREATE TABLE bad (id text COLLATE "C" PRIMARY KEY)': [
        "bad begins with id",
        "index bad_pkey of bad begins with id",
    ],
    'CREATE TABLE bad (tenant text COLLATE "C", id text PRIMARY KEY)': [
        "bad.id is compared by default",
        "index bad_pkey of bad begins with id",
    ],
    'CREATE TABLE bad (tenant text COLLATE "C" PRIMARY KEY, number bigserial)': [
        "sequence bad_number_seq",
        "the database fills bad.number",
    ],
    'CREATE TABLE bad (tenant text COLLATE "C" PRIMARY KEY,'
    " number bigint GENERATED ALWAYS AS IDENTITY)": [
        "sequence bad_number_seq",
        "the database fills bad.number",
    ],
    'CREATE TABLE bad (tenant text COLLATE "C" PRIMARY KEY, made text COLLATE "C" DEFAULT \'\')': [
        "the database fills bad.made"
    ],
    'CREATE TABLE bad (tenant text COLLATE "C" PRIMARY KEY, body jsonb)': ["bad.body is jsonb"],
    'CREATE TABLE bad (tenant text COLLATE "C")': ["table without a key bad"],
    "CREATE INDEX bad ON tasks (intent_id)": ["index bad of tasks begins with intent_id"],
    "CREATE INDEX bad ON tasks (lower(tenant))": ["index bad of tasks begins with "],
    "ALTER TABLE tasks ADD CONSTRAINT bad FOREIGN KEY (tenant, intent_id) REFERENCES intents": [
        "constraint bad"
    ],
    "CREATE VIEW bad AS SELECT * FROM tasks": ["sequence bad"],
    "CREATE FUNCTION bad() RETURNS integer LANGUAGE sql AS 'SELECT 1'": ["function bad"],
}


@pytest.mark.parametrize("statement", _BAD_TABLES)
def test_defect_of_a_table_is_found(statement: str) -> None:
    with own_database() as url:
        shared_server().execute(
            f"SET search_path = {SCHEMA}; {statement}", database=database_of(url)
        )
        found = _problems_of_schema(url)
    found.remove(_BY_PREFIX)
    assert {one for one in found if not one.startswith("trigger RI_")} == {*_BAD_TABLES[statement]}
