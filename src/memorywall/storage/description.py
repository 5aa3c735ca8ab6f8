"""The description of a database: its engine, its schema, and whether it is sound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreDescription:
    """The engine of a store and its schema.

    engine: `SQLite` or `PostgreSQL`
    version: of the engine
    schema: the number of the last applied migration; 0 for none
    """

    engine: str
    version: str
    schema: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreHealth(StoreDescription):
    """The state of a database that was looked at without a change, beside servers.

    newest_schema: the number of the last migration that this version of memorywall knows
    is_served: whether a server uses the database
    damage: defects that a quick check of the files found; None if the engine has no such check
    log_bytes: the size of the write-ahead log; None if the engine manages it
    risks: configurations of the engine with which an acknowledged write can be lost or damaged
    """

    newest_schema: int
    is_served: bool
    damage: tuple[str, ...] | None
    log_bytes: int | None
    risks: tuple[str, ...] = ()
