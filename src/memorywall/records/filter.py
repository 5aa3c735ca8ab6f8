"""The conditions of lists and searches (RFC-0015 section 4.1)."""

from __future__ import annotations

from typing import Literal

import msgspec

from memorywall.records.condition import Condition
from memorywall.records.entry import PRIORITY_RANK, Entry, EntryState, Origin
from memorywall.records.tier import Tier

LARGEST_PAGE = 1_000
DEFAULT_PAGE = 100
EntryOrder = Literal["created", "updated", "key", "priority"]
"""The orders of a page; entries that are equal in it are in the order of creation."""


class ValueIndex(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Rows of the index of values that contain every match of a query.

    relation, targets: the edges that are the rows
    between: the first and the last target of further rows; None for no further ones
    since: entries whose last update is at or before this instant may match without a row; None if
        every entry has its rows
    since_version: entries of an earlier version of their kind may match without a row; None if
        every entry has its rows
    in_all_tiers: whether entries of all tiers that the query finds have rows. The rows of a
        namespace are only for tiers that are isolated by namespace.
    """

    relation: str
    targets: tuple[str, ...]
    between: tuple[str, str] | None = None
    since: str | None = None
    since_version: int | None = None
    in_all_tiers: bool

    @property
    def is_complete(self) -> bool:
        """Whether every match has a row."""
        return self.since is None and self.since_version is None and self.in_all_tiers


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry must meet every condition; an empty condition matches every entry. A key, a tag and
    an id of an agent, a task, an intent or a session match in NFC and in NFD.

    namespace, namespace_prefix: the whole namespace, or its beginning
    aliases: further names of the namespace, or further prefixes
    tags, tags_any: the entry must have all of these tags, at least one of these tags
    updated_after, updated_before: instants in the stored form
    before: the id of an entry; only entries that were created before it, for long lists
    except_owner: omits entries that this agent owns
    limit: entries, None for no limit
    counted: whether the total number of matching entries is computed
    state: None for any state
    listed_only: whether unlisted entries match only if `kind` is given
    about: the stored forms of the name of one subject; the entry must have one of them
    only_about: the stored forms of all subjects that an entry may be about
    only_in: the namespaces that an entry may be in; None for any
    only_session: the session that an entry must belong to, as `session_binding.belongs_to` says;
        None for any
    origin, source: those of the provenance
    created_after, created_before: instants in the stored form
    key_prefix: the beginning of the key
    where: a condition on the fields of the entry
    value_index: rows that contain every match of `where`, None for no index
    met: the ids of the matching entries among those whose fields the store cannot read; None
        before they are known
    opaque: only entries whose fields the store cannot read: their value is sealed, or contains NUL
    order, ascending: the order of a page; the newest entries come first by default
    position: the value in that order, and the id, of the last entry before the page
    """

    tenant: str
    tiers: tuple[Tier, ...] = ()
    agent_id: str | None = None
    namespace: str | None = None
    namespace_prefix: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    task_id: str | None = None
    intent_id: str | None = None
    pinned: bool | None = None
    updated_after: str | None = None
    updated_before: str | None = None
    before: str | None = None
    except_owner: str | None = None
    limit: int | None = DEFAULT_PAGE
    offset: int = 0
    counted: bool = True
    aliases: tuple[str, ...] = ()
    session_id: str | None = None
    kind: str | None = None
    statuses: tuple[str, ...] = ()
    state: EntryState | None = "live"
    listed_only: bool = True
    about: tuple[str, ...] = ()
    only_about: tuple[str, ...] | None = None
    only_in: tuple[str, ...] | None = None
    only_session: str | None = None
    origin: Origin | None = None
    source: str | None = None
    created_after: str | None = None
    created_before: str | None = None
    key_prefix: str | None = None
    where: Condition | None = None
    value_index: ValueIndex | None = None
    met: tuple[str, ...] | None = None
    opaque: bool = False
    order: EntryOrder = "created"
    ascending: bool = False
    position: tuple[str | int, str] | None = None


def position_of(entry: Entry, order: EntryOrder) -> tuple[str | int, str]:
    """Returns the position after an entry, see `EntryFilter`."""
    if order == "updated":
        return entry.updated_at, entry.id
    if order == "key":
        return entry.key, entry.id
    return PRIORITY_RANK[entry.priority] if order == "priority" else entry.created_at, entry.id
