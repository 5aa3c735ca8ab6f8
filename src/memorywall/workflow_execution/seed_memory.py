"""Writes the semantic namespaces of a workflow before its first step begins."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from tqdm import tqdm

from memorywall.records.errors import MemoryAccessError, MemoryConflictError, MemoryNotFoundError
from memorywall.records.tier import Tier
from memorywall.sdk.client import Client
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import is_same
from memorywall.wire.entries import LARGEST_BATCH
from memorywall.workflow import SemanticNamespace

_ATTEMPTS = 5


def seed_memory(
    client: Client, namespaces: Iterable[SemanticNamespace], *, progress: bool = False
) -> None:
    """Creates missing entries and updates different entries; other entries do not change.

    The function may run any number of times, also concurrently. Batches of at most a thousand
    entries are written completely or not at all.

    progress: whether to show progress, if standard error is a terminal
    """
    for namespace in namespaces:
        if not namespace.entries:
            continue
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _load(client, namespace, progress)
                break
            except MemoryAccessError as error:
                raise MemoryAccessError(f"namespace {namespace.name}: {error.detail}") from error
            except (MemoryConflictError, MemoryNotFoundError):
                # Another client has written to the namespace meanwhile, perhaps the same entries.
                if attempt == _ATTEMPTS:
                    raise


def _load(client: Client, namespace: SemanticNamespace, progress: bool) -> None:
    changes = _changes(client, namespace)
    pieces = iter(changes)
    with tqdm(
        total=len(changes),
        desc=namespace.name,
        unit=" entries",
        leave=False,
        disable=None if progress else True,
    ) as bar:
        while piece := list(islice(pieces, LARGEST_BATCH)):
            client.memory.batch(piece)
            bar.update(len(piece))


def _changes(client: Client, namespace: SemanticNamespace) -> list[dict[str, Any]]:
    """The entries to write, as elements of a batch."""
    known = {
        entry.key: entry
        for entry in client.memory.export(namespace=namespace.name, memory_type=Tier.SEMANTIC)
    }
    changes = []
    for element in namespace.elements():
        entry = known.get(element["key"])
        if entry is None:
            changes.append(element)
        elif not _is_equal(entry, element):
            given = {name: element[name] for name in ("value", "tags", "sensitivity")}
            changes.append({"id": entry.id, "version": entry.version, **given})
    return changes


def _is_equal(entry: MemoryEntry, element: dict[str, Any]) -> bool:
    return (
        is_same(element["value"], entry.value)
        and tuple(element["tags"]) == entry.tags
        and element["sensitivity"] == entry.sensitivity
    )
