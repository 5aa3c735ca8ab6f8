"""The fields of an entry in conditions, named as in its JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memorywall.expressions.evaluate import evaluate, fields_of, follow
from memorywall.expressions.fields import Field
from memorywall.records.condition import Condition, Path
from memorywall.records.entry import PRIORITY_RANK, Entry
from memorywall.records.tier import Tier

ENTRY_FIELDS = {
    "id": Field("text"),
    "agent_id": Field("text", is_name=True),
    "namespace": Field("text", is_name=True),
    "key": Field("text", is_name=True),
    "value": Field("json"),
    "memory_type": Field("text", words=tuple(Tier)),
    "scope.task_id": Field("text", is_name=True),
    "scope.intent_id": Field("text", is_name=True),
    "scope.session_id": Field("text", is_name=True),
    "tags": Field("json", is_name=True),
    "version": Field("number"),
    "pinned": Field("boolean"),
    "priority": Field("text", words=tuple(PRIORITY_RANK)),
    "sensitivity": Field("text"),
    "ttl": Field("text"),
    "created_at": Field("instant"),
    "updated_at": Field("instant"),
    "expires_at": Field("instant"),
    "created_by": Field("text", is_name=True),
    "curated_by": Field("text", is_name=True),
    "provenance": Field("json"),
    "kind": Field("text"),
    "kind_version": Field("number"),
    "status": Field("text"),
    "state": Field("text"),
    "subjects": Field("json", is_name=True),
}
SEALED_FIELDS = frozenset({"value", "namespace", "subjects"})
"""The fields that a sealed entry stores in another form: sealed, or with digests of names."""
_decode = msgspec.json.Decoder().decode
_READERS: dict[str, Callable[[Entry], Any]] = {
    "value": lambda entry: _decode(entry.value) if entry.value else None,
    "memory_type": lambda entry: entry.tier.value,
    "provenance": lambda entry: msgspec.to_builtins(entry.provenance),
    **{
        f"scope.{name}": lambda entry, name=name: getattr(entry.scope, name)  # type: ignore[misc]
        for name in ("task_id", "intent_id", "session_id")
    },
}


def is_met_by(condition: Condition, entry: Entry) -> bool:
    """Returns whether an entry, whose value is in clear text, meets a condition."""
    return evaluate(condition, _Fields(entry).get)


def values_at(paths: Iterable[Path], entry: Entry) -> list[Any]:
    """Returns the values of an entry, whose value is in clear text, at some paths."""
    read = _Fields(entry).get
    return [follow(path, read) for path in paths]


def reads_sealed(condition: Condition) -> bool:
    """Returns whether a store cannot evaluate a condition for sealed entries."""
    return not SEALED_FIELDS.isdisjoint(fields_of(condition))


class _Fields:
    """The fields of an entry, each read once."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._read: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self._read:
            reader = _READERS.get(name)
            entry = self._entry
            self._read[name] = getattr(entry, name) if reader is None else reader(entry)
        return self._read[name]
