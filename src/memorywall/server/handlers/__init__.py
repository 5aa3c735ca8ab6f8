"""What each operation of the table does: one call of the wall, one rendering."""

from __future__ import annotations

from memorywall.server.dispatch import Handler
from memorywall.server.handlers import agents, batches, entries, namespaces, service

_ROOMS = (agents, batches, entries, namespaces, service)


def handler(name: str) -> Handler:
    """The handler of the operation of this name. Raises LookupError."""
    for room in _ROOMS:
        if hasattr(room, name):
            found: Handler = getattr(room, name)
            return found
    raise LookupError(name)
