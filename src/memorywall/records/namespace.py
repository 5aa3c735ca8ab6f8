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


class Grant(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One entry of a namespace's `allow` list.

    agent: a principal, or `group:` and the name of a group
    episodic: whether the members of the group may read each other's episodic memory in the
        namespace; only for a group, default: false
    """

    agent: str
    access: Access
    episodic: bool = False


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
    `grants` may contain only the grants of that agent and of its groups.

    indexes: the JSON text of a list of `IndexedPath`, None for none
    last_write_wins: whether a `PUT` without a precondition replaces an entry of a memory tier in
        this namespace; default: false
    schemas: the digest of the namespace's schemas, see
        `memorywall.service.entries.value_schemas`; None without schemas
    """

    tenant: str
    name: str
    default: Access
    grants: tuple[Grant, ...] = ()
    version: int = 1
    created_at: str
    updated_at: str
    last_write_wins: bool = False
    schemas: str | None = None
    indexes: str | None = None

    @property
    def indexed_paths(self) -> tuple[IndexedPath, ...]:
        """The paths of values that are indexed."""
        return () if self.indexes is None else _decode_paths(self.indexes)
