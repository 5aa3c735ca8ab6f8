"""Requests and responses of entries (RFC-0015 sections 1 to 4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.copier import copier
from memorywall.records.entry import (
    Authority,
    Entry,
    EntryState,
    Origin,
    Priority,
    Provenance,
    Scope,
    Sensitivity,
    Source,
    with_present_authority,
)
from memorywall.records.filter import DEFAULT_PAGE, LARGEST_PAGE, EntryOrder
from memorywall.records.tier import Tier
from memorywall.records.worthiness import Verdict
from memorywall.wire.events import EventResponse
from memorywall.wire.operation import UserOfRequest

LARGEST_BATCH = 1_000
LARGEST_HISTORY = 100
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_LARGEST_OFFSET = 1_000_000_000
_ReadMajor = Annotated[
    Annotated[int, Meta(ge=0, le=999_999)] | None,
    Meta(description="The entry must fit its namespace's schemas of this major version."),
]


class EvictedEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry that a write has evicted. Its name is shown to its owner, unless the request is
    bound to people or to a session."""

    id: str
    namespace: str | None = None
    key: str | None = None


class EvictionWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Says that a write has evicted entries, because a capacity of the tier is reached."""

    code: Literal["EVICTED"] = "EVICTED"
    detail: str
    entries: tuple[EvictedEntry, ...]


class EntryResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An entry. A response to an update omits `value` if the caller may write the entry and may not
    read it. A response to a write has `warnings` if the write has evicted entries, and that of
    `remember` says by `worthiness` whether the text is worth keeping."""

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
    kind: str | None = None
    kind_version: int = 0
    status: str | None = None
    state: EntryState = "live"
    subjects: tuple[str, ...] = ()
    warnings: tuple[EvictionWarning, ...] = ()
    worthiness: Verdict | None = None


_view = copier(
    Entry,
    EntryResponse,
    given=["value"],
    defaults=["warnings", "worthiness"],
    memory_type="tier",
)


def view(entry: Entry) -> EntryResponse:
    """The wire form of an entry whose value is in the clear, at the present version of its kind."""
    if entry.kind is not None:
        entry = upgrade_entry(entry)
    if entry.provenance.authority == "verified":
        # Only this word has changed its meaning since it was stored.
        provenance = with_present_authority(entry.provenance)
        entry = msgspec.structs.replace(entry, provenance=provenance)
    return _view(entry, value=msgspec.Raw(entry.value) if entry.value else UNSET)


def upgrade_entry(entry: Entry) -> Entry:
    """The entry with its value as the present version of its kind has it."""
    # A client needs the types of entries and not the table of kinds, whose import takes as long.
    from memorywall.kinds.registry import spec_of, upgrade

    spec = spec_of(entry.kind)
    if spec is None or entry.kind_version >= spec.version or not entry.value:
        return entry
    value = upgrade(spec, entry.kind_version, _decode(entry.value))
    return msgspec.structs.replace(
        entry, value=msgspec.json.encode(value), kind_version=spec.version
    )


REMEMBERED = "remembered"
"""The namespace of remembered texts."""


class RememberRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text to remember as a new episodic entry in the namespace `remembered`. Its value has the
    members `text` and, if given, `metadata`. The other fields are those of an entry.

    If memory says the text already, the reply is the entry that says it, with the status 200."""

    text: Annotated[str, Meta(pattern=r"\S", description="The text; not empty.")]
    metadata: Annotated[
        dict[str, Any] | None, Meta(description="An object about the text, for conditions.")
    ] = None
    tags: list[str] | None = None
    ttl: str | None = None
    expires_at: str | None = None
    pinned: bool = False
    priority: Priority = "normal"
    sensitivity: Sensitivity = "internal"
    subjects: list[str] | None = None
    origin: Origin | None = None
    source: str | None = None
    scope: Scope | None = None
    derived_from: list[Source] | None = None
    kind: str | None = None
    context_id: str | None = None


class EntryPageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a query (RFC-0015 section 4.2).

    With `cursor` or `order_by` the response has `next_cursor`, which is null on the last page, and
    `total` is that of the first page. With `fields` an entry has the fields that were asked for.
    """

    entries: list[EntryResponse]
    total: int
    limit: int
    offset: int
    next_cursor: str | UnsetType | None = UNSET


class RenderedPageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The same response, with its entries as JSON text already."""

    entries: msgspec.Raw
    total: int
    limit: int
    offset: int
    next_cursor: str | UnsetType | None = UNSET


class Conditions(UserOfRequest, frozen=True, kw_only=True):
    """The conditions of RFC-0015 section 4.1. An entry must meet every given condition."""

    agent_id: Annotated[
        str | None,
        Meta(description="The owning agent; required for working, session and episodic."),
    ] = None
    namespace: Annotated[
        str | None, Meta(description="A namespace, or a prefix followed by `*`.")
    ] = None
    key: Annotated[str | None, Meta(description="The exact key.")] = None
    key_prefix: Annotated[str | None, Meta(description="The beginning of the key.")] = None
    memory_type: Tier | None = None
    tags: Annotated[
        str | None, Meta(description="Comma-separated tags; the entry must have all of them.")
    ] = None
    tags_any: Annotated[
        str | None,
        Meta(description="Comma-separated tags; the entry must have at least one of them."),
    ] = None
    task_id: Annotated[str | None, Meta(description="The task that the entry is bound to.")] = (
        msgspec.field(default=None, name="scope.task_id")
    )
    intent_id: Annotated[str | None, Meta(description="The intent that the entry is bound to.")] = (
        msgspec.field(default=None, name="scope.intent_id")
    )
    session_id: Annotated[str | None, Meta(description="The session an entry is bound to.")] = (
        msgspec.field(default=None, name="scope.session_id")
    )
    kind: Annotated[
        str | None,
        Meta(description="The kind of the values; unlisted kinds are found by this filter only."),
    ] = None
    status: Annotated[
        str | None, Meta(description="The status, which the kind derives from the value.")
    ] = None
    state: Annotated[
        EntryState | None, Meta(description="The state, which the server sets; default: live.")
    ] = None
    about: Annotated[str | None, Meta(description="Only entries about this person.")] = None
    origin: Annotated[Origin | None, Meta(description="The origin of the content.")] = None
    source: Annotated[str | None, Meta(description="The URI of the source of the content.")] = None
    pinned: Annotated[
        bool | None, Meta(description="True for pinned entries only, false for other entries only.")
    ] = None
    created_after: Annotated[
        str | None, Meta(description="Created after this RFC 3339 instant or date.")
    ] = None
    created_before: Annotated[
        str | None, Meta(description="Created before this RFC 3339 instant or date.")
    ] = None
    updated_after: Annotated[
        str | None, Meta(description="Updated after this RFC 3339 instant or date.")
    ] = None
    updated_before: Annotated[
        str | None, Meta(description="Updated before this RFC 3339 instant or date.")
    ] = None
    where: Annotated[
        str | None,
        Meta(description='A condition on fields, such as `value.customer.tier = "gold"`.'),
    ] = None


class EntryQuery(Conditions, frozen=True, kw_only=True):
    """The query parameters of RFC-0015 section 4.1: conditions and a page."""

    limit: Annotated[
        Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] | None,
        Meta(description="The most entries; default: 100 for a page, and all for a deletion."),
    ] = None
    offset: Annotated[int, Meta(ge=0, le=_LARGEST_OFFSET)] = 0


class EntryListQuery(EntryQuery, frozen=True, kw_only=True):
    """Conditions and a page, with its order and its form.

    With `schema_version`, entries of the page that do not fit are left out; `total` and `offset`
    count them.
    """

    as_of: Annotated[
        str | None, Meta(description="Return the entries as of this RFC 3339 instant or date.")
    ] = None
    schema_version: _ReadMajor = None

    order_by: Annotated[
        EntryOrder | None, Meta(description="The order of the page; created by default.")
    ] = None
    direction: Annotated[
        Literal["asc", "desc"] | None,
        Meta(description="Ascending or descending; asc by default for key, else desc."),
    ] = None
    cursor: Annotated[
        str | None,
        Meta(description="`*` for the first page, then the `next_cursor` of the page before."),
    ] = None
    count_only: Annotated[
        bool, Meta(description="Only the total of the matching entries, and no entries.")
    ] = False
    fields: Annotated[
        str | None,
        Meta(description="Comma-separated fields, such as `key,value.customer.tier`; default all."),
    ] = None

    @property
    def is_plain(self) -> bool:
        """Whether the page has the usual order and form."""
        return (
            self.order_by is None
            and self.cursor is None
            and self.fields is None
            and not self.count_only
            and self.direction is None
        )


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the versions of an entry."""

    limit: Annotated[int, Meta(ge=1, le=LARGEST_HISTORY)] = DEFAULT_PAGE
    before_version: Annotated[
        Annotated[int, Meta(ge=1, le=2**53)] | None,
        Meta(description="Only versions with a smaller number."),
    ] = None


class HistoryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of an entry, newest first; the present one is the first of the first page.

    events: in tiers that keep no earlier versions, the events of the entry, newest first: who
        changed it when, without values
    """

    versions: list[EntryResponse]
    events: list[EventResponse] | UnsetType = UNSET


class VersionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The version of an entry, by one of the two fields; default: the present version."""

    version: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    as_of: Annotated[
        str | None,
        Meta(description="The version that was current at this instant or date."),
    ] = None
    schema_version: _ReadMajor = None


class NameQuery(VersionQuery, frozen=True, kw_only=True):
    """The name of an entry, where it is looked for, and which version is meant."""

    namespace: Annotated[str, Meta(description="The full name of the namespace.")]
    key: Annotated[str, Meta(description="The exact key.")]
    memory_type: Annotated[
        Tier | None,
        Meta(description="The tier; default: the narrowest tier with an entry of this name."),
    ] = None
    task_id: Annotated[
        str | None, Meta(description="The task whose working memory is searched first.")
    ] = msgspec.field(default=None, name="scope.task_id")


class ShadowedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that has the name of another one in a narrower tier.

    authority: `human_curated` if a person wrote its value
    conflicts: whether its value differs from that of the returned entry; both null from an older
        server
    """

    id: str
    memory_type: Tier
    version: int | None = None
    authority: Authority | None = None
    conflicts: bool | None = None


class NamedVersion(Protocol):
    """An entry at a version."""

    @property
    def id(self) -> str:
        """The id of the entry."""
        ...

    @property
    def version(self) -> int:
        """The version of the entry."""
        ...


def name_tag(entry: NamedVersion, shadows: Iterable[ShadowedEntry]) -> str:
    """The entity tag of the entry of a name: a name may later belong to another entry with the same
    version, or shadow other entries."""
    shadowed = (f"{one.id}.{one.version}" for one in shadows)
    return ".".join((entry.id, str(entry.version), *shadowed))


class FoundEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry of a name; null where there is none, or none that may be read.

    `shadows` lists the caller's own and shared entries of the same name in other tiers, which a
    request with their `memory_type` returns. It is omitted if there are none, and if the request
    named a tier.
    """

    entry: EntryResponse | None
    shadows: tuple[ShadowedEntry, ...] = ()

    @property
    def tag(self) -> str | None:
        """The entity tag, None without an entry; see `name_tag`."""
        return None if self.entry is None else name_tag(self.entry, self.shadows)


WaitFor = Annotated[
    Literal["indexed"] | None,
    Meta(description="`indexed`: respond when a search finds the entry by words and meaning."),
]


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The condition for which a write waits before its response."""

    wait_for: WaitFor = None


class WriteQuery(UserOfRequest, frozen=True, kw_only=True):
    """The person that a write is bound to, and the condition for which it waits."""

    wait_for: WaitFor = None


class BatchQuery(WriteQuery, frozen=True, kw_only=True):
    """The same, and whether the new entries are judged like remembered texts."""

    judge: Annotated[
        bool,
        Meta(description="Whether new entries are judged like remembered texts."),
    ] = False


WRITE_QUERIES = (WaitQuery, WriteQuery, BatchQuery)
"""The queries of writes that may wait."""


class ExportQuery(Conditions, frozen=True, kw_only=True):
    """The conditions of an export, and the position to resume it from."""

    before: Annotated[str | None, Meta(description="The id of the last received entry.")] = None
    as_of: Annotated[
        str | None, Meta(description="As the entries were at this RFC 3339 instant or date.")
    ] = None


class AgentMemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query parameters of an agent's bare list."""

    namespace: str | None = None
    memory_type: Tier | None = None
    tags: str | None = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE
    offset: Annotated[int, Meta(ge=0, le=_LARGEST_OFFSET)] = 0


class BatchElement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An update if `id` and `version` are given, otherwise a create."""

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
    kind: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    source: str | UnsetType = UNSET
    context_id: str | UnsetType = UNSET


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entries to create or update, all or none."""

    entries: Annotated[list[BatchElement], Meta(min_length=1, max_length=LARGEST_BATCH)]


class BatchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The written entries, in the order of the elements of the batch. `warnings` is there if the
    batch has evicted entries.

    `verdicts` is there with `judge`: what was decided about each element, null for an update. A
    tenant that refuses what is not worth keeping leaves these elements out of `entries`."""

    entries: list[EntryResponse]
    created: int
    updated: int
    warnings: tuple[EvictionWarning, ...] | UnsetType = UNSET
    verdicts: list[Verdict | None] | UnsetType = UNSET


class DeletedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The number of entries that a deletion by filter removed."""

    deleted: int
