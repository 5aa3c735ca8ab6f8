"""Namespaces of shared memory and their permissions (RFC-0015 section 2.3)."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Access(StrEnum):
    """Levels of access; each level includes the levels before it."""

    NONE = "none"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def covers(self, needed: Access) -> bool:
        """Whether this level is at least `needed`."""
        return _RANKS[self] >= _RANKS[needed]


_RANKS = {level: rank for rank, level in enumerate(Access)}


class Grant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of a namespace's `allow` list."""

    agent: str
    access: Access


class IndexedPath(msgspec.Struct, frozen=True, array_like=True):
    """A path of the values of a namespace that is indexed.

    since: entries whose last update is at or before this instant may lack in the index; None if no
        entry lacks
    """

    path: str
    since: str | None = None


_decode_paths = msgspec.json.Decoder(tuple[IndexedPath, ...]).decode


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace with its permissions. If the namespace was loaded for a decision about one agent,
    `grants` may contain only the grant of that agent.

    indexes: the JSON text of a list of `IndexedPath`, None for none
    last_write_wins: whether a `PUT` without a precondition replaces an entry of a memory tier in
        this namespace; default: false
    """

    tenant: str
    name: str
    default: Access
    grants: tuple[Grant, ...] = ()
    version: int = 1
    created_at: str
    updated_at: str
    last_write_wins: bool = False
    indexes: str | None = None

    @property
    def indexed_paths(self) -> tuple[IndexedPath, ...]:
        """The paths of values that are indexed."""
        return () if self.indexes is None else _decode_paths(self.indexes)
