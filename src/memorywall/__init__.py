"""Governed memory for AI agents: five isolated tiers behind one service layer.

    from memorywall import Client

    client = Client(server_url="http://127.0.0.1:7377", api_key="...")
    client.memory.set("invoices", "progress", {"completed": 23})

`memorywall.open("memory.db")` returns the same client without a server. The path is a file or the
data directory of a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memorywall.version import __version__ as __version__

if TYPE_CHECKING:
    from memorywall import exceptions
    from memorywall.in_process.opening import open_local as open
    from memorywall.in_process.opening import open_local_async as open_async
    from memorywall.sdk.claims import Claim
    from memorywall.sdk.client import AsyncClient, Client
    from memorywall.sdk.context_loading import load_context
    from memorywall.sdk.models import MemoryEntry
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

# Loaded on first use: a server needs no HTTP client, and a client needs no server.
_HOMES = {
    "AsyncClient": ("memorywall.sdk.client", "AsyncClient"),
    "Claim": ("memorywall.sdk.claims", "Claim"),
    "Client": ("memorywall.sdk.client", "Client"),
    "MemoryEntry": ("memorywall.sdk.models", "MemoryEntry"),
    "TaskBlocked": ("memorywall.sdk.worker_context", "TaskBlocked"),
    "TaskContext": ("memorywall.sdk.worker_context", "TaskContext"),
    "Worker": ("memorywall.sdk.worker", "Worker"),
    "exceptions": ("memorywall.exceptions", ""),
    "load_context": ("memorywall.sdk.context_loading", "load_context"),
    "open": ("memorywall.in_process.opening", "open_local"),
    "open_async": ("memorywall.in_process.opening", "open_local_async"),
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
