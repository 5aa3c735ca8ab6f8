"""How entries are printed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.cli.output import print_fields, print_json, print_table
from memorywall.sdk.shapes import MemoryEntry


def print_entry(entry: MemoryEntry, as_json: bool) -> None:
    """One entry, with every field that says something."""
    if as_json:
        print_json(entry)
        return
    fields = msgspec.to_builtins(entry)
    fields["value"] = msgspec.json.format(msgspec.json.encode(entry.value), indent=2).decode()
    fields["tags"] = ", ".join(entry.tags)
    fields["scope"] = " ".join(f"{name}={value}" for name, value in fields["scope"].items())
    fields["provenance"] = " ".join(str(part) for part in fields["provenance"].values())
    print_fields(fields.items())


def print_entries(entries: Iterable[MemoryEntry]) -> None:
    """Entries, a line each."""
    headers = ["id", "type", "namespace", "key", "version", "updated", "tags", "value"]
    print_table(
        headers,
        (
            [
                entry.id,
                entry.memory_type,
                entry.namespace,
                entry.key,
                entry.version,
                entry.updated_at,
                ", ".join(entry.tags),
                msgspec.json.encode(entry.value).decode(),
            ]
            for entry in entries
        ),
    )
