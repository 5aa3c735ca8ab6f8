"""What the server can do and how it is."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Tier
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.storage.port import REGISTRY, Transaction
from memorywall.version import __version__
from memorywall.wire.service import (
    Capabilities,
    Discovery,
    EmbeddingView,
    Limits,
    Readiness,
    Status,
)

_METRICS = b"text/plain; version=0.0.4; charset=utf-8"
_RFCS = [
    "RFC-0001",
    "RFC-0002",
    "RFC-0003",
    "RFC-0005",
    "RFC-0011",
    "RFC-0012",
    "RFC-0013",
    "RFC-0015",
]
_CAPABILITIES = [
    "memory",
    "memory.batch",
    "memory.namespaces",
    "memory.events",
    "memory.export",
    "memory.archive",
    "memory.shared",
    "memory.search",
    "memory.reshape",
    "intents",
    "intents.graph",
    "tasks",
    "coordinators",
    "leases",
    "claims",
    "access",
    "attachments",
]


async def get_capabilities(call: Call) -> Reply:
    settings = call.door.settings
    return json_reply(
        Capabilities(
            version=__version__,
            rfcs=_RFCS,
            capabilities=_CAPABILITIES,
            memory_types=list(Tier),
            eviction_policies=[Eviction.LEAST_RECENTLY_USED],
            extensions={
                "export": "/api/v1/memory/export",
                "events": "/api/v1/agents/{agent_id}/events",
                "search": "/api/v1/memory/search",
            },
            limits=Limits(
                episodic_capacity=settings.episodic_capacity,
                working_capacity_per_task=settings.working_capacity_per_task,
            ),
        )
    )


async def discover(call: Call) -> Reply:
    return json_reply(Discovery(version=__version__, rfcs=_RFCS, capabilities=_CAPABILITIES))


async def health(call: Call) -> Reply:
    return json_reply(Status(status="ok"))


async def ready(call: Call) -> Reply:
    async def script(transaction: Transaction) -> None:
        await call.door.vault.check(transaction)

    await call.door.store.read(REGISTRY, script)
    backlog = await call.service.index.backlog()
    embedding = EmbeddingView(model=backlog.model, backlog=backlog.changes)
    return json_reply(Readiness(status="ready", embedding=embedding))


async def metrics(call: Call) -> Reply:
    index = call.service.index
    backlog, held = await index.backlog(), index.measure()
    # Sums over all tenants, for this is answered without a key.
    return Reply(
        200,
        _gauges(
            (
                "memorywall_embedding_backlog",
                "Changes to memory that embedding has yet to look at.",
                backlog.changes,
            ),
            (
                "memorywall_recall_slices",
                "Slices of memory that are held to be searched.",
                held["slices"],
            ),
            ("memorywall_recall_bytes", "Bytes that the slices held take.", held["bytes"]),
            ("memorywall_recall_entries", "Entries in the slices held.", held["entries"]),
        ),
        media=_METRICS,
    )


def _gauges(*measured: tuple[str, str, int]) -> bytes:
    """Names, meanings and values in Prometheus' text format 0.0.4."""
    lines = [
        f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {value}\n"
        for name, meaning, value in measured
    ]
    return "".join(lines).encode()
