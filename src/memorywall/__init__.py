"""Governed memory for AI agents: five walled tiers behind one door.

    from memorywall import Client

    client = Client(server_url="http://127.0.0.1:7377", api_key="...")
    client.memory.set("invoices", "progress", {"completed": 23})

`memorywall.open("memory.db")` gives the same client with no server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memorywall.version import __version__ as __version__

if TYPE_CHECKING:
    from memorywall import exceptions
    from memorywall.sdk.claims import Claim
    from memorywall.sdk.client import AsyncClient, Client
    from memorywall.sdk.context import load_context
    from memorywall.sdk.local import open_local as open
    from memorywall.sdk.local import open_local_async as open_async
    from memorywall.sdk.shapes import MemoryEntry
    from memorywall.sdk.worker import Worker
    from memorywall.sdk.worker_context import TaskBlocked, TaskContext

__all__ = [
    "AsyncClient",
    "Claim",
    "Client",
    "MemoryEntry",
    "TaskBlocked",
    "TaskContext",
    "Worker",
    "exceptions",
    "load_context",
    "open",
    "open_async",
]

# Loaded when first asked for: a server must not pay for an HTTP client, nor a client for a server.
_HOMES = {
    "AsyncClient": ("memorywall.sdk.client", "AsyncClient"),
    "Claim": ("memorywall.sdk.claims", "Claim"),
    "Client": ("memorywall.sdk.client", "Client"),
    "MemoryEntry": ("memorywall.sdk.shapes", "MemoryEntry"),
    "TaskBlocked": ("memorywall.sdk.worker_context", "TaskBlocked"),
    "TaskContext": ("memorywall.sdk.worker_context", "TaskContext"),
    "Worker": ("memorywall.sdk.worker", "Worker"),
    "exceptions": ("memorywall.exceptions", ""),
    "load_context": ("memorywall.sdk.context", "load_context"),
    "open": ("memorywall.sdk.local", "open_local"),
    "open_async": ("memorywall.sdk.local", "open_local_async"),
}


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    home = import_module(module)
    found: object = getattr(home, attribute) if attribute else home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
