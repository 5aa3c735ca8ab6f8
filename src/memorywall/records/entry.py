"""The one noun: everything an agent remembers is an Entry (RFC-0015 section 1)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memorywall.records.tier import Tier

Priority = Literal["low", "normal", "high"]
Sensitivity = Literal["public", "internal", "confidential", "restricted"]

PRIORITY_RANK: dict[str, int] = {"low": 0, "normal": 1, "high": 2}
SEALED_SENSITIVITIES = frozenset({"confidential", "restricted"})
VALUE_LIMIT = 64 * 1024


class Scope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What an entry is bound to (RFC-0015 section 1.1)."""

    task_id: str | None = None
    intent_id: str | None = None
    session_id: str | None = None


EMPTY_SCOPE = Scope()


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An entry as somebody read it before writing another."""

    id: str
    version: Annotated[int, Meta(ge=1)]


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who wrote an entry last, with what standing, and from what.

    derived_from: what the writer says it had read, each checked to have been there to read
    fencing_token: the lease or claim it was written under, None for none
    """

    principal: str
    kind: str
    authority: str | None = None
    derived_from: tuple[Source, ...] = ()
    fencing_token: int | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry as it is kept.

    owner: the agent for a tier walled by agent, "" for one walled by namespace; with `tier`,
        `namespace` and `key` it is unique within the tenant
    value: JSON text in UTF-8, or, when `sealing_key` is set, that text encrypted
    size: length of the value's JSON text in bytes
    expires_at: the instant from which the entry is gone, whether `ttl` or the client set it
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
    sealing_key: str | None = None
    scope: Scope = EMPTY_SCOPE
    tags: tuple[str, ...] = ()
    ttl: str | None = None
    expires_at: str | None = None
    version: int = 1
    pinned: bool = False
    priority: Priority = "normal"
    sensitivity: Sensitivity = "internal"
    created_at: str
    updated_at: str
    created_by: str
    curated_by: str | None = None
    provenance: Provenance


def is_over(entry: Entry, now: str) -> bool:
    """Whether an entry's time is over, though it may still wait to be swept."""
    return entry.expires_at is not None and entry.expires_at <= now


def has_other_content(old: Entry, new: Entry) -> bool:
    """Whether what was made of an entry's content does not hold for what it has become."""
    return old.value != new.value or old.sensitivity != new.sensitivity
