"""What the server can do and how it is."""

from __future__ import annotations

from memorywall.records.tier import Eviction, Tier
from memorywall.server.dispatch import Call
from memorywall.server.replies import Reply, json_reply
from memorywall.storage.port import REGISTRY, Transaction
from memorywall.version import __version__
from memorywall.wire.service import Capabilities, Discovery, Limits, Status

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
    return json_reply(Status(status="ready"))
