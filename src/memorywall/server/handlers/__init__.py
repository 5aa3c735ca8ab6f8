"""What each operation of the table does: one call of the wall, one rendering."""

from __future__ import annotations

from memorywall.server.dispatch import Handler
from memorywall.server.handlers import (
    access,
    agents,
    attachments,
    batches,
    bridge,
    claims,
    coordinators,
    entries,
    graph,
    intents,
    leases,
    namespaces,
    recall,
    service,
    tasks,
)

_ROOMS = (
    access,
    agents,
    attachments,
    batches,
    bridge,
    claims,
    coordinators,
    entries,
    graph,
    intents,
    leases,
    namespaces,
    recall,
    service,
    tasks,
)


def handler(name: str) -> Handler:
    """The handler of the operation of this name. Raises LookupError."""
    for room in _ROOMS:
        if hasattr(room, name):
            found: Handler = getattr(room, name)
            return found
    raise LookupError(name)
