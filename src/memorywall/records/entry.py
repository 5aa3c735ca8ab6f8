"""The memory record: everything that an agent remembers is an Entry (RFC-0015 section 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memorywall.records.tier import Tier

Priority = Literal["low", "normal", "high"]
Sensitivity = Literal["public", "internal", "confidential", "restricted"]
EntryState = Literal["live", "cold", "subsumed", "superseded", "withdrawn", "quarantined"]
"""The server's state of an entry, independent of the status of its value. Lists and searches show
live entries unless they ask for another state."""
Origin = Literal["user", "agent", "tool", "document", "import"]
"""The origins of a memory, from the most to the least trusted."""
Authority = Literal["human_curated", "verified", "agent_learned", "inferred"]
"""The authorities of knowledge, from the highest to the lowest (memory wall, 11.5.3)."""

PRIORITY_RANK: dict[str, int] = {"low": 0, "normal": 1, "high": 2}
SEALED_SENSITIVITIES = frozenset({"confidential", "restricted"})
VALUE_LIMIT = 64 * 1024
MOST_SUBJECTS = 16
ORIGIN_RANK: dict[str, int] = {"import": 0, "document": 1, "tool": 2, "agent": 3, "user": 4}
AUTHORITY_RANK: dict[Authority, int] = {
    "inferred": 0,
    "agent_learned": 1,
    "verified": 2,
    "human_curated": 3,
}
_ORIGIN_OF_KIND: dict[str, Origin] = {
    "user": "user",
    "agent": "agent",
    "service": "tool",
    "system": "agent",
}


class Scope(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """The task, intent and session that an entry is bound to (RFC-0015 section 1.1)."""

    task_id: str | None = None
    intent_id: str | None = None
    session_id: str | None = None


EMPTY_SCOPE = Scope()


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An entry at the version that a writer had read before writing another entry."""

    id: str
    version: Annotated[int, Meta(ge=1)]


class ValueCorrection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why and from what the value of an entry was corrected.

    version: the version that was corrected; the correction made the next one
    reason: the text of the caller; None for a sealed entry
    kept: in a tier without earlier versions, the withdrawn entry that holds the earlier value
    """

    version: int
    reason: str | None = None
    kept: str | None = None


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why an entry is withdrawn, and what it was before.

    by: the corrected and retracted entries, each at the version that its correction or retraction
        made; the entry itself if it was retracted. It stays withdrawn until none is left.
    reason: of its own retraction, as in `ValueCorrection`
    state, expires_at: before it was withdrawn
    """

    by: tuple[Source, ...]
    reason: str | None = None
    state: EntryState = "live"
    expires_at: str | None = None


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The last writer of an entry, and where its value came from.

    principal, kind, fencing_token: the last writer, and the token of the lease of its write
    derived_from: the sources that a writer names; the server checks that it could read them
    origin: where the memory came from; None for entries from before origins were recorded
    source: the URI of the source
    session, task, context: the session, task and compiled context of the write of the value
    authority: of knowledge, as it is stored; `authority_of` says what it counts as
    verified_by: the person or validator that has confirmed the value; None for nobody
    superseded_by: the entry that supersedes it, while its state is `superseded`
    source_tier, score, evidence: of a promoted entry, the tier it came from, the measure of the
        promotion, and the entries that support it
    promoted_by, promoted_at: of a promoted entry, who promoted it, and when
    learned_at: of a promoted entry, when its candidate was written
    correction: of a corrected value
    withdrawal: while the state is `withdrawn`
    """

    principal: str
    kind: str
    authority: str | None = None
    origin: Origin | None = None
    source: str | None = None
    session: str | None = None
    task: str | None = None
    context: str | None = None
    source_tier: Tier | None = None
    score: float | None = None
    evidence: tuple[Source, ...] = ()
    derived_from: tuple[Source, ...] = ()
    fencing_token: int | None = None
    superseded_by: str | None = None
    verified_by: str | None = None
    promoted_by: str | None = None
    promoted_at: str | None = None
    learned_at: str | None = None
    correction: ValueCorrection | None = None
    withdrawal: Withdrawal | None = None


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entry in its stored form. Name the fields, except where each read makes one from a row.

    owner: the agent in a tier that is isolated by agent, "" in a tier that is isolated by
        namespace; unique within the tenant together with `tier`, `namespace`, `key` and session
    value: JSON text in UTF-8, or, when `sealing_key` is set, that text encrypted
    size: length of the JSON text of the value in bytes
    kind, kind_version: the kind of the value, see `memorywall.kinds`; None and 0 for free JSON
    status: the word that the kind derives from the value
    state: set by the server alone
    listed: whether lists and searches that name no kind show it, and capacities count it
    subjects: the people that the entry is about; digests of their names for a sealed entry
    edges: pairs of a relation and a target, as in the index of edges
    due_at: the next instant at which something must happen to it
    expires_at: the instant of expiry, set by `ttl` or by the client
    """

    tenant: str
    id: str
    tier: Tier
    owner: str
    agent_id: str
    namespace: str
    key: str
    value: bytes
    size: int
    created_at: str
    updated_at: str
    created_by: str
    provenance: Provenance
    sealing_key: str | None = None
    scope: Scope = EMPTY_SCOPE
    tags: tuple[str, ...] = ()
    ttl: str | None = None
    expires_at: str | None = None
    version: int = 1
    pinned: bool = False
    priority: Priority = "normal"
    sensitivity: Sensitivity = "internal"
    curated_by: str | None = None
    kind: str | None = None
    kind_version: int = 0
    status: str | None = None
    state: EntryState = "live"
    listed: bool = True
    subjects: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    due_at: str | None = None


def origin_of(provenance: Provenance) -> Origin:
    """The origin of a memory; by default derived from the kind of its writer."""
    return provenance.origin or origin_of_writer(provenance.kind)


def authority_of(provenance: Provenance) -> Authority:
    """The authority of knowledge. What earlier versions stored as the `verified` word of an agent
    was confirmed by nobody, and counts as `agent_learned`. Memory of an agent's own that is derived
    from other entries counts as `inferred`."""
    authority = provenance.authority
    if authority == "human_curated":
        return "human_curated"
    if authority == "verified" and provenance.verified_by is not None:
        return "verified"
    is_inferred = authority == "inferred" or (authority is None and provenance.derived_from)
    return "inferred" if is_inferred else "agent_learned"


def with_present_authority(provenance: Provenance) -> Provenance:
    """The provenance as it is shown: its stored authority, if any, is what it counts as."""
    if provenance.authority in (None, authority_of(provenance)):
        return provenance
    return msgspec.structs.replace(provenance, authority=authority_of(provenance))


def origin_of_writer(kind: str) -> Origin:
    """The origin of what a writer of this kind says itself."""
    return _ORIGIN_OF_KIND.get(kind, "import")


def lowest_origin(origins: Iterable[Origin]) -> Origin:
    """The least trusted of the origins; there must be at least one."""
    return min(origins, key=ORIGIN_RANK.__getitem__)


def is_expired(entry: Entry, now: str) -> bool:
    """Whether an entry has expired; a sweep may not have removed it yet.

    now: an instant in the stored form
    """
    return entry.expires_at is not None and entry.expires_at <= now


def has_other_content(old: Entry, new: Entry) -> bool:
    """Whether data that is derived from the content of `old` is invalid for `new`."""
    return old.value != new.value or old.sensitivity != new.sensitivity
