"""Output of entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from memorywall.cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from memorywall.sdk.models import MemoryEntry

_USUAL: dict[str, tuple[object, ...]] = {
    "kind": (None,),
    "kind_version": (0,),
    "status": (None,),
    "state": ("live",),
    "subjects": ((), []),
    "warnings": ((), []),
}
"""Default values of fields, which are not printed."""
ENTRY_COLUMNS = ["id", "type", "namespace", "key", "version", "updated", "tags", "value"]
_WRITER = ("principal", "kind", "authority")


def print_entry(entry: MemoryEntry) -> None:
    """Prints one entry with all its non-empty fields."""
    fields = _fields(entry)
    fields["value"] = msgspec.json.format(msgspec.json.encode(entry.value), indent=2).decode()
    fields["tags"] = ", ".join(entry.tags)
    fields["scope"] = " ".join(f"{name}={value}" for name, value in fields["scope"].items())
    if "subjects" in fields:
        fields["subjects"] = ", ".join(entry.subjects)
    if "warnings" in fields:
        fields["warnings"] = "; ".join(
            f"{one.detail}: {', '.join(gone.id for gone in one.entries)}" for one in entry.warnings
        )
    fields["provenance"] = _written_by(fields["provenance"])
    print_fields(fields.items())


def print_entry_json(entry: MemoryEntry) -> None:
    """Prints one entry as JSON."""
    print_json(_fields(entry))


def _fields(entry: MemoryEntry) -> dict[str, Any]:
    """Returns the fields of an entry that differ from the usual."""
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return {name: value for name, value in fields.items() if value not in _USUAL.get(name, ())}


def _written_by(provenance: dict[str, object]) -> str:
    """Returns the writer of an entry and the rest of its provenance, by name."""
    words = [str(provenance.pop(name)) for name in _WRITER if provenance.get(name)]
    return " ".join([*words, *(f"{name}={part}" for name, part in provenance.items() if part)])


def print_entries(entries: Iterable[MemoryEntry]) -> None:
    """Prints entries, one line each."""
    print_table(ENTRY_COLUMNS, map(entry_cells, entries))


def entry_cells(entry: MemoryEntry) -> list[object]:
    """Returns the cells of an entry in a table, as `ENTRY_COLUMNS` names them."""
    return [
        entry.id,
        entry.memory_type,
        entry.namespace,
        entry.key,
        entry.version,
        entry.updated_at,
        ", ".join(entry.tags),
        msgspec.json.encode(entry.value).decode(),
    ]
