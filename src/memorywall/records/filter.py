"""The conditions of lists and searches (RFC-0015 section 4.1)."""

from __future__ import annotations

import msgspec

from memorywall.records.entry import EntryState, Origin
from memorywall.records.tier import Tier

LARGEST_PAGE = 1_000
DEFAULT_PAGE = 100


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry must meet every condition; an empty condition matches every entry.

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
    origin, source: those of the provenance
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
    status: str | None = None
    state: EntryState | None = "live"
    listed_only: bool = True
    about: tuple[str, ...] = ()
    only_about: tuple[str, ...] | None = None
    only_in: tuple[str, ...] | None = None
    origin: Origin | None = None
    source: str | None = None
