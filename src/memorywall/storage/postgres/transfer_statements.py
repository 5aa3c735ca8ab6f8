"""The statements of a copy over PostgreSQL. They are generated from the tables in
`storage/transfer.py`, so that columns are listed only once; all name the tenant."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from memorywall.storage.sql.record_spec import ColumnType
from memorywall.storage.transfer import PAGE, Table

_ARRAYS = {ColumnType.TEXT: "text[]", ColumnType.INTEGER: "bigint[]", ColumnType.BYTES: "bytea[]"}


@cache
def counting(table: Table) -> str:
    """Counts the rows of the tenant in a table."""
    return f"SELECT count(*) FROM {table.name} WHERE {table.tenant} = $1"


@cache
def page_of_lines(table: Table, after: bool) -> str:
    """Reads the next page of row digests: after a key, or the first."""
    key = _join_names(table.key)
    condition = f"{table.tenant} = $1"
    if after:
        bound = ", ".join(
            f"${place}::{_ARRAYS[table.kind(name)].removesuffix('[]')}"
            for place, name in enumerate(table.key, 2)
        )
        condition += f" AND ({key}) > ({bound})"
    order = f"ORDER BY {key}" if key else ""
    chosen = f"{key}, " if key else ""
    return (
        f"SELECT {chosen}sha256(content), octet_length(content) FROM ("
        f" SELECT {chosen}{_canonical(table)} AS content FROM {table.name}"
        f" WHERE {condition} {order} LIMIT {PAGE}) AS page {order}"
    )


@cache
def one_row(table: Table) -> str:
    """Reads the row with a key."""
    return f"SELECT {_join_names(table.columns)} FROM {table.name} WHERE {_equal(table, table.key)}"


@cache
def deletion(table: Table, names: tuple[str, ...]) -> str:
    """Deletes rows by a value in each of the named columns."""
    return f"DELETE FROM {table.name} WHERE {_equal(table, names)}"


@cache
def deletion_of_any(table: Table, name: str) -> str:
    """Deletes rows by any value of an array in the named column."""
    array = f"$2::{_ARRAYS[table.kind(name)]}"
    return f'DELETE FROM {table.name} WHERE {table.tenant} = $1 AND "{name}" = ANY({array})'


@cache
def insertion(table: Table) -> str:
    """Inserts rows from an array for each column."""
    arrays = ", ".join(
        f"${place}::{_ARRAYS[table.kind(name)]}" for place, name in enumerate(table.columns, 1)
    )
    return f"INSERT INTO {table.name} ({_join_names(table.columns)}) SELECT * FROM unnest({arrays})"


def _equal(table: Table, names: Sequence[str]) -> str:
    """Checks for a row of the tenant with the given values in the named columns."""
    pairs = "".join(f" AND {name} = ${place}" for place, name in enumerate(_quote_names(names), 2))
    return f"{table.tenant} = $1{pairs}"


def _canonical(table: Table) -> str:
    """Computes `transfer.canonical` of a row in the database."""
    parts = []
    for column in table.columns:
        (name,) = _quote_names([column])
        kind = table.kind(column)
        if kind is ColumnType.BYTES:
            length = f"convert_to(octet_length({name}) || ':', 'UTF8')"
            parts.append(f"coalesce({length} || {name}, '-'::bytea)")
        else:
            text = name if kind is ColumnType.TEXT else f"{name}::text"
            cell = f"coalesce(octet_length({text}) || ':' || {text}, '-')"
            parts.append(f"convert_to({cell}, 'UTF8')")
    return " || ".join(parts)


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(_quote_names(names))


def _quote_names(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]
