"""Converts the elements of a batch from the caller's form to the wire's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from memorywall.records.entry import Source
from memorywall.records.tier import Tier
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.filters import tag_list
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.values import checked_objects, checked_value

Sources: TypeAlias = (
    MemoryEntry | Source | Mapping[str, Any] | Sequence[MemoryEntry | Source | Mapping[str, Any]]
)
_SOURCE = 'an entry or {"id": "mem_1", "version": 1}'
_NAMES = ("namespace", "key", "memory_type", "agent_id")


def batch_element(state: ClientState, given: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Converts one element; it is an update if it names an entry that this client has seen.

    Raises ValidationError with the `index` of the element for a value that is no object.
    """
    element = dict(given)
    if "value" in element:
        element["value"] = checked_value(element["value"], index=index)
    if isinstance(element.get("tags"), str):
        element["tags"] = tag_list(element["tags"])
    if isinstance(element.get("expires_at"), datetime):
        element["expires_at"] = element["expires_at"].isoformat()
    if element.get("derived_from") is not None:
        element["derived_from"] = source_list(element["derived_from"])
    if "id" in element:
        return element
    name = element.get("namespace"), element.get("key")
    memory_type = element.get("memory_type")
    if not all(isinstance(one, str) for one in name):
        return element
    known = state.versions.find(str(name[0]), str(name[1]), memory_type)
    version = element.get("version", None if known is None else known.version)
    if known is not None and version is not None:
        update = {field: one for field, one in element.items() if field not in _NAMES}
        return {**update, "id": known.id, "version": version}
    if memory_type is None:
        element["memory_type"] = Tier.WORKING if known is None else known.memory_type
    if (
        element["memory_type"] == Tier.WORKING
        and element.get("scope") is None
        and state.task_id is not None
    ):
        element["scope"] = {"task_id": state.task_id}
    return element


def source_list(sources: Sources) -> list[dict[str, Any]]:
    """Returns the ids and versions of source entries; a single entry needs no list. Raises
    ValidationError."""
    given = [sources] if isinstance(sources, MemoryEntry | Source | Mapping) else sources
    return [_source(one) for one in checked_objects("derived_from", given, _SOURCE)]


def _source(source: MemoryEntry | Source | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, MemoryEntry):
        return {"id": source.id, "version": source.version}
    return dict(source) if isinstance(source, Mapping) else dict(msgspec.to_builtins(source))
