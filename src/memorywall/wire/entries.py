"""Bodies and query parameters about entries (RFC-0015 sections 1 to 4)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.entry import Entry, Priority, Provenance, Scope, Sensitivity, Source
from memorywall.records.filter import DEFAULT_PAGE, LARGEST_PAGE
from memorywall.records.tier import Tier

LARGEST_BATCH = 1_000
_LARGEST_OFFSET = 1_000_000_000


class EntryView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An entry on the wire. `value` is spliced in as the JSON text it is stored as; it is left out
    where a change is answered to a caller who may write the entry and not read it."""

    id: str
    agent_id: str
    namespace: str
    key: str
    value: msgspec.Raw | UnsetType = UNSET
    memory_type: Tier
    scope: Scope
    tags: tuple[str, ...]
    ttl: str | None
    version: int
    pinned: bool
    priority: Priority
    sensitivity: Sensitivity
    created_at: str
    updated_at: str
    expires_at: str | None
    created_by: str
    curated_by: str | None = None
    provenance: Provenance


def view(entry: Entry) -> EntryView:
    """The wire form of an entry whose value is in the clear."""
    return EntryView(
        id=entry.id,
        agent_id=entry.agent_id,
        namespace=entry.namespace,
        key=entry.key,
        value=msgspec.Raw(entry.value) if entry.value else UNSET,
        memory_type=entry.tier,
        scope=entry.scope,
        tags=entry.tags,
        ttl=entry.ttl,
        version=entry.version,
        pinned=entry.pinned,
        priority=entry.priority,
        sensitivity=entry.sensitivity,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        expires_at=entry.expires_at,
        created_by=entry.created_by,
        curated_by=entry.curated_by,
        provenance=entry.provenance,
    )


class EntryPage(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to a query (RFC-0015 section 4.2)."""

    entries: list[EntryView]
    total: int
    limit: int
    offset: int


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of RFC-0015 section 4.1; all that are given must hold."""

    agent_id: Annotated[
        str | None,
        Meta(description="The owning agent; required for working, session and episodic."),
    ] = None
    namespace: Annotated[
        str | None, Meta(description="The namespace, or a prefix of it that ends in `*`.")
    ] = None
    key: Annotated[str | None, Meta(description="The key, whole.")] = None
    memory_type: Tier | None = None
    tags: Annotated[
        str | None, Meta(description="Tags parted by commas; an entry has all of them.")
    ] = None
    tags_any: Annotated[
        str | None, Meta(description="Tags parted by commas; an entry has at least one of them.")
    ] = None
    task_id: Annotated[str | None, Meta(description="The task an entry is bound to.")] = (
        msgspec.field(default=None, name="scope.task_id")
    )
    intent_id: Annotated[str | None, Meta(description="The intent an entry is bound to.")] = (
        msgspec.field(default=None, name="scope.intent_id")
    )
    pinned: Annotated[bool | None, Meta(description="Pinned entries only, or only others.")] = None
    updated_after: Annotated[
        str | None, Meta(description="Changed after this RFC 3339 instant.")
    ] = None
    updated_before: Annotated[
        str | None, Meta(description="Changed before this RFC 3339 instant.")
    ] = None


class EntryQuery(Conditions, frozen=True, kw_only=True):
    """The query parameters of RFC-0015 section 4.1: conditions and a page."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] | None = None
    offset: Annotated[int, Meta(ge=0, le=_LARGEST_OFFSET)] = 0


class ExportQuery(Conditions, frozen=True, kw_only=True):
    """The conditions of an export, and where to go on with one that was cut short."""

    before: Annotated[str | None, Meta(description="The id of the last entry received.")] = None


class AgentMemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query parameters of an agent's bare list."""

    namespace: str | None = None
    memory_type: Tier | None = None
    tags: str | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE
    offset: Annotated[int, Meta(ge=0, le=_LARGEST_OFFSET)] = 0


class BatchElement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With `id` and `version` an update, otherwise a create."""

    id: str | UnsetType = UNSET
    version: int | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    key: str | UnsetType = UNSET
    value: dict[str, Any] | UnsetType = UNSET
    memory_type: Tier | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    ttl: str | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sensitivity: Sensitivity | UnsetType = UNSET
    derived_from: list[Source] | UnsetType = UNSET


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entries to create or update, all or none."""

    entries: Annotated[list[BatchElement], Meta(min_length=1, max_length=LARGEST_BATCH)]


class BatchReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch wrote, in the order of its elements."""

    entries: list[EntryView]
    created: int
    updated: int


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries a deletion by filter removed."""

    deleted: int
