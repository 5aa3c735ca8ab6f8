"""The SQL of declared records: their tables, their statements and the checks of `verify`.

This is the only module that generates statements from a `RecordSpec`; bindings are numbered in the
order of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal

from memorywall.storage.sql.record_spec import ColumnType, RecordIndex, RecordParent, RecordSpec
from memorywall.storage.sql.record_table import RECORDS
from memorywall.storage.statements import load, translate

Dialect = Literal["sqlite", "postgres"]
Spec = RecordSpec[Any]

_TYPES: dict[str, dict[ColumnType, str]] = {
    "sqlite": {
        ColumnType.TEXT: "TEXT",
        ColumnType.INTEGER: "INTEGER",
        ColumnType.BYTES: "BLOB",
        ColumnType.RAW_TEXT: "TEXT",
    },
    "postgres": {
        ColumnType.TEXT: 'text COLLATE "C"',
        ColumnType.INTEGER: "bigint",
        ColumnType.BYTES: "bytea",
        ColumnType.RAW_TEXT: "bytea",
    },
}
_ROW_SECURITY = """\
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {table}
    USING (tenant = nullif(current_setting('memorywall.tenant', true), ''));
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO memorywall_app;"""


def create_table(spec: Spec, dialect: Dialect) -> str:
    """Returns the SQL that creates the table and its indexes, for the migration that adds the
    record."""
    types = _TYPES[dialect]
    columns = [("tenant", ColumnType.TEXT, True), *spec.stored]
    lines = [
        f"    {name} {types[kind]}{' NOT NULL' if required else ''},"
        for name, kind, required in columns
    ]
    end = ""
    if dialect == "sqlite":
        end = " STRICT" if spec.has_body else " STRICT, WITHOUT ROWID"
    key = ", ".join(("tenant", *spec.key))
    parts = [
        f"CREATE TABLE {spec.table} (\n" + "\n".join(lines) + f"\n    PRIMARY KEY ({key})\n){end};",
        *(create_index(spec, one) for one in indexes_of(spec, dialect)),
    ]
    if dialect == "postgres":
        parts.append(_ROW_SECURITY.format(table=spec.table))
    return "\n\n".join(parts)


def indexes_of(spec: Spec, dialect: Dialect) -> Iterator[RecordIndex]:
    """Returns the indexes of the table in a dialect. Sealed records have two more: to seal rows
    from before sealing, and to erase rows that are sealed with a key."""
    yield from (one for one in spec.indexes if one.dialect in ("", dialect))
    if spec.sealed:
        yield RecordIndex(
            name=f"{spec.table}_unsealed", columns=spec.key, where="sealing_key IS NULL"
        )
        yield RecordIndex(
            name=f"{spec.table}_by_sealing_key",
            columns=("sealing_key", *spec.key),
            where="sealing_key > ''",
        )


def create_index(spec: Spec, index: RecordIndex) -> str:
    """Returns the SQL that creates one index."""
    columns = ", ".join(("tenant", *index.columns))
    where = f"\n    WHERE {index.where}" if index.where else ""
    return f"CREATE INDEX {index.name} ON {spec.table} ({columns}){where};"


@cache
def record_statements(spec: Spec, dialect: Dialect) -> dict[str, str]:
    """Returns the statements of a record's repository, by name."""
    names = ["tenant", *(name for name, _, _ in spec.stored)]
    keyed = _equal(("tenant", *spec.key))
    set_ = ", ".join(
        f"{name} = ?{place}"
        for place, name in enumerate(names, 1)
        if name not in ("tenant", *spec.key)
    )
    holes = ", ".join(f"?{place}" for place in range(1, len(names) + 1))
    shown, table = ", ".join(spec.shown), spec.table
    found = {
        "columns": shown,
        "get": f"SELECT {shown} FROM {table} WHERE {keyed}",
        **_by_keys(spec),
        "insert": f"INSERT INTO {table} ({', '.join(names)}) VALUES ({holes})",
        "replace": f"UPDATE {table} SET {set_} WHERE {_equal_by(names, spec.key)} RETURNING 1",
        "remove": f"DELETE FROM {table} WHERE {keyed} RETURNING 1",
        **dict(_lists(spec)),
    }
    if spec.numbers:
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in spec.numbers)
        found["sums"] = f"SELECT {sums} FROM {table} WHERE tenant = ?1"
    if spec.sealed:
        found["unsealed"] = (
            f"SELECT {shown} FROM {table} INDEXED BY {table}_unsealed"
            " WHERE tenant = ?1 AND sealing_key IS NULL ORDER BY id LIMIT ?2"
        )
        found["erase_sealed"] = (
            f"UPDATE {table} SET sealing_key = '', sealed = NULL WHERE tenant = ?1 AND id IN ("
            f"SELECT id FROM {table} WHERE tenant = ?1 AND sealing_key > '' AND sealing_key IN ("
            "SELECT id FROM data_keys WHERE tenant = ?1 AND subject = ?2)"
            " ORDER BY id LIMIT ?3) RETURNING 1"
        )
    return {name: translate(statement, dialect) for name, statement in found.items()}


def _by_keys(spec: Spec) -> dict[str, str]:
    """Returns the statement that reads several records whose key has one column."""
    if len(spec.key) > 1:
        return {}
    shown, (key,) = ", ".join(spec.shown), spec.key
    return {
        "get_many": f"SELECT {shown} FROM {spec.table} WHERE tenant = ?1 AND {key} IN {{list ?2}}"
    }


def _lists(spec: Spec) -> Iterator[tuple[str, str]]:
    """Returns statements for pages in the order of the last column of the key: all records, those
    of one parent, and each with a status. Their bindings are the tenant, the parent, the status,
    the preceding id and the limit."""
    order = spec.key[-1]
    for parent in (None, *(one.column for one in spec.parents)):
        for status in ("", spec.status) if spec.status else ("",):
            columns = [one for one in (parent, status) if one]
            hint = spec.index_on(parent) if parent else None
            hinted = f" INDEXED BY {hint.name}" if hint else ""
            after = len(columns) + 2
            yield (
                "list" + (f"_by_{parent}" if parent else "") + ("_in" if status else ""),
                f"SELECT {', '.join(spec.shown)} FROM {spec.table}{hinted}"
                f" WHERE {_equal(('tenant', *columns))} AND {order} > ?{after}"
                f" ORDER BY {order} LIMIT ?{after + 1}",
            )


def all_checks(dialect: Dialect) -> dict[str, str]:
    """Returns statements that list the defects of a store, named after the defect. Those of
    PostgreSQL are bound to one tenant. They consist of the statements of `inspection.sql` and those
    that follow from the declarations."""
    declared = (one for spec in RECORDS.values() for one in _checks(spec, dialect))
    return {**load(dialect, "inspection"), **dict(declared)}


def _checks(spec: Spec, dialect: Dialect) -> Iterator[tuple[str, str]]:
    noun = _with_article(spec.noun)
    if spec.has_body:
        yield f"the_columns_of_{noun}_are_not_what_it_says", _body_check(spec, dialect)
    for parent in spec.parents:
        yield f"{noun}_belongs_to_no_{parent.noun}", _parent_check(spec, parent, dialect)
    if len(spec.parents) > 1:
        none = " AND ".join(f"{one.column} IS NULL" for one in spec.parents)
        yield f"{noun}_belongs_to_nothing", _rows_where(spec, none, dialect)
    if spec.sealed:
        tenant = f"{spec.table}.tenant" if dialect == "sqlite" else "$1"
        no_key = (
            "coalesce(sealing_key, '') <> '' AND (sealed IS NULL OR NOT EXISTS ("
            f"SELECT 1 FROM data_keys k WHERE k.tenant = {tenant}"
            f" AND k.id = {spec.table}.sealing_key))"
        )
        yield f"{noun}_is_sealed_with_a_key_that_is_gone", _rows_where(spec, no_key, dialect)


def _body_check(spec: Spec, dialect: Dialect) -> str:
    pairs = [("tenant", "tenant"), *((one.name, one.source) for one in spec.columns)]
    numbers = {one.name for one in spec.columns if one.type is ColumnType.INTEGER}
    if dialect == "sqlite":
        wrong = " OR ".join(f"{name} IS NOT body ->> '{said}'" for name, said in pairs)
        return f"SELECT tenant, {', '.join(spec.key)} FROM {spec.table} WHERE {wrong}"
    # PostgreSQL decodes no JSON with a NUL, so NUL is replaced by another character.
    wrong = " OR ".join(
        f"{name}{'::text' if name in numbers else ''} IS DISTINCT FROM said ->> '{said}'"
        for name, said in pairs
    )
    return (
        f"SELECT {', '.join(spec.key)} FROM (SELECT *, replace(body, '\\u0000', '\\u0001')::json"
        f" AS said FROM {spec.table} WHERE tenant = $1) kept WHERE tenant = $1 AND ({wrong})"
    )


def _parent_check(spec: Spec, parent: RecordParent, dialect: Dialect) -> str:
    key = ", ".join(f"c.{name}" for name in spec.key)
    orphan = f"c.{parent.column} IS NOT NULL AND p.{parent.key} IS NULL"
    if dialect == "sqlite":
        return (
            f"SELECT c.tenant, {key} FROM {spec.table} c LEFT JOIN {parent.table} p"
            f" ON p.tenant = c.tenant AND p.{parent.key} = c.{parent.column} WHERE {orphan}"
        )
    return (
        f"SELECT {key} FROM {spec.table} c LEFT JOIN {parent.table} p"
        f" ON p.tenant = $1 AND p.{parent.key} = c.{parent.column}"
        f" WHERE c.tenant = $1 AND {orphan}"
    )


def _rows_where(spec: Spec, condition: str, dialect: Dialect) -> str:
    key = ", ".join(spec.key)
    if dialect == "sqlite":
        return f"SELECT tenant, {key} FROM {spec.table} WHERE {condition}"
    return f"SELECT {key} FROM {spec.table} WHERE tenant = $1 AND {condition}"


def _with_article(noun: str) -> str:
    article = "an" if noun[0] in "aeiou" else "a"
    return f"{article} {noun}".replace(" ", "_")


def _equal(columns: Iterable[str]) -> str:
    return " AND ".join(f"{name} = ?{place}" for place, name in enumerate(columns, 1))


def _equal_by(names: list[str], key: tuple[str, ...]) -> str:
    """Returns a statement with the bindings of all columns."""
    return " AND ".join(f"{name} = ?{names.index(name) + 1}" for name in ("tenant", *key))
