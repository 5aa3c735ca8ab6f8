"""The fields of an entry that a caller may set on creation and on update."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from memorywall.records.entry import Origin, Priority, Scope, Sensitivity, Source
from memorywall.records.tier import Tier

_REMOVED_BY_NULL = frozenset({"ttl", "expires_at", "kind"})
_OF_PROVENANCE = frozenset({"derived_from", "origin", "source", "context_id"})


class NewEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new entry (RFC-0015 sections 1.1, 2.2 and 9.2).

    key: optional; by default the id of the entry, which the server makes
    agent_id: optional; must be the caller's agent
    ttl: `duration:` with an ISO 8601 duration, or `task_lifetime`; by default that of the tier
    expires_at: an RFC 3339 instant with an offset; wins over `ttl`
    derived_from: the entries and versions that the new entry is derived from
    kind: the kind of the value; its schema is at `/api/v1/schemas/{kind}`
    subjects: the people that the entry is about, at most 16
    origin: where the memory came from, at or below the origin of the caller
    source: the URI of the source
    context_id: the compiled context of the caller's agent that the value answers from
    """

    namespace: str
    key: str | UnsetType = UNSET
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
    kind: str | None = None
    subjects: list[str] | None = None
    origin: Origin | None = None
    source: str | None = None
    context_id: str | None = None


class EntryPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to replace as a whole; omitted fields do not change (RFC-0015 section 3.2).

    A `ttl` restarts the expiry from the moment of the update, unless `expires_at` is also given.
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
    kind: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    source: str | UnsetType = UNSET
    context_id: str | UnsetType = UNSET

    @property
    def is_empty(self) -> bool:
        """Whether the patch changes nothing; `derived_from` alone is no change."""
        return bool(_changing_fields(self) == _NO_CHANGE)


_CHANGING = [name for name in EntryPatch.__struct_fields__ if name not in _OF_PROVENANCE]
_changing_fields = attrgetter(*_CHANGING)
_NO_CHANGE = (UNSET,) * len(_CHANGING)


class ScopeMergePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A merge patch of a scope; null removes a member."""

    task_id: str | UnsetType | None = UNSET
    intent_id: str | UnsetType | None = UNSET
    session_id: str | UnsetType | None = UNSET

    def applied_to(self, scope: Scope) -> Scope:
        """The scope with the given members replaced or removed."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        given = {name: field for name, field in fields.items() if field is not UNSET}
        return msgspec.structs.replace(scope, **given)


class EntryMergePatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A merge patch (RFC 7396) of the fields of an entry that an update may change.

    Omitted fields do not change. `value` and `scope` are merged with the stored objects: `value` at
    every depth, and null removes a member. Every other field is replaced as a whole. Null removes
    `ttl`, `expires_at` and `kind` and empties `scope`, `tags` and `subjects`. The other fields
    always have a value, so null is refused.
    """

    value: dict[str, Any] | UnsetType = UNSET
    scope: ScopeMergePatch | UnsetType | None = UNSET
    tags: list[str] | UnsetType | None = UNSET
    ttl: str | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sensitivity: Sensitivity | UnsetType = UNSET
    derived_from: list[Source] | UnsetType = UNSET
    kind: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType | None = UNSET
    origin: Origin | UnsetType = UNSET
    source: str | UnsetType = UNSET
    context_id: str | UnsetType = UNSET

    @property
    def needs_entry(self) -> bool:
        """Whether the result depends on stored fields, so that the caller must be able to read
        them."""
        return self.value is not UNSET or self.scope is not UNSET

    def applied_to(self, value: Any, scope: Scope) -> EntryPatch:
        """The update that results from merging.

        value: the stored value, decoded
        scope: the stored scope
        """
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        given = {name: field for name, field in fields.items() if field is not UNSET}
        if self.value is not UNSET:
            given["value"] = merge_patch(value, self.value)
        if self.scope is not UNSET:
            given["scope"] = Scope() if self.scope is None else self.scope.applied_to(scope)
        for name in ("tags", "subjects"):
            if name in given and given[name] is None:
                given[name] = []
        return EntryPatch(**given)


class EntryPut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry to create, or the replacement of the entry of this name.

    The name is the owner, `memory_type`, `namespace`, `key` and `scope.session_id`. A replacement
    replaces `value` and the given fields. Omitted fields do not change; null counts as omitted,
    except for `ttl`, `expires_at` and `kind`, which it removes. `scope` is replaced as a whole if
    it names a task or an intent, and otherwise only names the session. The fields are those of
    `NewEntry`.
    """

    namespace: str
    key: str
    value: dict[str, Any]
    memory_type: Tier
    agent_id: str | None = None
    scope: Scope | None = None
    tags: list[str] | None = None
    ttl: str | UnsetType | None = UNSET
    expires_at: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    sensitivity: Sensitivity | UnsetType = UNSET
    derived_from: list[Source] | None = None
    kind: str | UnsetType | None = UNSET
    subjects: list[str] | None = None
    origin: Origin | None = None
    source: str | None = None
    context_id: str | None = None

    def as_new(self) -> NewEntry:
        """The new entry, if there is none of this name."""
        return NewEntry(**self._collect_given())

    def as_patch(self) -> EntryPatch:
        """The changes to the entry of this name."""
        given = {
            name: field
            for name, field in self._collect_given().items()
            if name in EntryPatch.__struct_fields__
            and (field is not None or name in _REMOVED_BY_NULL)
        }
        scope = self.scope
        if scope is not None and scope.task_id is None and scope.intent_id is None:
            del given["scope"]
        return EntryPatch(**given)

    def _collect_given(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: field for name, field in fields.items() if field is not UNSET}


def merge_patch(target: Any, patch: Any) -> Any:
    """Returns the target with a merge patch applied; the target stays unchanged.

    The members of an object are merged at every depth, and null removes a member. Every other
    value, such as a list, replaces the target.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, part in patch.items():
        if part is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), part)
    return merged
