"""What a caller may say about an entry: all of it when making one, parts when changing one."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.records.entry import Priority, Scope, Sensitivity, Source
from memorywall.records.tier import Tier


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry to be made (RFC-0015 sections 1.1, 2.2 and 9.2).

    agent_id: may be left out; when given it must be the caller's own
    derived_from: the entries, and the versions of them, that this one was made from
    """

    namespace: str
    key: str
    value: dict[str, Any]
    memory_type: Tier
    agent_id: str | None = None
    scope: Scope | None = None
    tags: list[str] | None = None
    ttl: str | None = None
    expires_at: str | None = None
    pinned: bool = False
    priority: Priority = "normal"
    sensitivity: Sensitivity = "internal"
    derived_from: list[Source] | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to replace, each one whole; what is left out stays (RFC-0015 section 3.2).

    A `ttl` sets the expiry anew from the moment of the change, unless `expires_at` comes with it.
    """

    value: dict[str, Any] | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    ttl: str | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sensitivity: Sensitivity | UnsetType = UNSET
    derived_from: list[Source] | UnsetType = UNSET

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing; where it comes from is nothing to change by itself."""
        names = (name for name in self.__struct_fields__ if name != "derived_from")
        return all(getattr(self, name) is UNSET for name in names)
