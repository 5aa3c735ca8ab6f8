"""What nodes with a `memoryAction` do: the convention of the protocol's tests, on the real memory.

They run only while the test seams are on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from memorywall.openwop.adapter import MemoryAdapter
from memorywall.openwop.runs import Run
from memorywall.records.clock import after
from memorywall.records.errors import ValidationError

_MOST_WRITES = 1_000
_LATER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What a node leaves in the variables of its run.

    variables: plain values by name
    reads: the ids of entries by the name of the variable that shows them
    """

    variables: dict[str, Any] = field(default_factory=dict)
    reads: dict[str, str | list[str]] = field(default_factory=dict)


Action = Callable[[Run, MemoryAdapter, str, str, dict[str, Any]], Awaitable[ActionResult]]
"""Takes the run, its memory, the reference of the node's agent, the id of the node, its config."""


async def write_then_read(
    run: Run, memory: MemoryAdapter, reference: str, node_id: str, config: dict[str, Any]
) -> ActionResult:
    """Writes an entry, or `count` of them, and reads the newest one back from the list."""
    count = config.get("count", 1)
    if type(count) is not int or not 1 <= count <= _MOST_WRITES:
        raise ValidationError(f"`count` must be a number from 1 to {_MOST_WRITES}")
    for number in range(1, count + 1):
        text = f"What run {run.id} remembers, part {number}."
        await memory.put(reference, text, ["source:workflow"], node_id=node_id)
    newest = (await memory.list(reference, 1))[0]
    return ActionResult(reads={"memoryReadback": newest.id})


async def probe_redaction(
    run: Run, memory: MemoryAdapter, reference: str, node_id: str, config: dict[str, Any]
) -> ActionResult:
    """Resolves a secret, writes its value, and reads back what was stored in its place."""
    secret_id = str(config.get("byokSecretId", "secret"))[:64]
    service, tenant = run.context.service, run.context.tenant
    value = service.secrets.find(tenant, None, secret_id)
    await run.secret(secret_id, value or f"canary-{service.ids.next_uuid()}")
    value = service.secrets.find(tenant, run.id, secret_id)
    entry = await memory.put(reference, f"The secret is {value}.", [f"is:{value}"[:128]],
                             node_id=node_id)  # fmt: skip
    return ActionResult(reads={"memoryReadback": entry.id})


async def probe_expiry(
    run: Run, memory: MemoryAdapter, reference: str, node_id: str, config: dict[str, Any]
) -> ActionResult:
    """Writes an entry that has expired and one that has not, and lists the memory."""
    moment = run.context.moment
    past, later = after(moment - 1_000, timedelta()), after(moment, _LATER)
    expired = await memory.put(
        reference, "This has expired.", expires_at=past, node_id=node_id, may_be_past=True
    )
    fresh = await memory.put(reference, "This lasts.", expires_at=later, node_id=node_id)
    listed = [one.id for one in await memory.list(reference)]
    return ActionResult(
        variables={"freshId": fresh.id, "expiredId": expired.id}, reads={"memoryList": listed}
    )


async def probe_other_tenant(
    run: Run, memory: MemoryAdapter, reference: str, node_id: str, config: dict[str, Any]
) -> ActionResult:
    """Writes an entry, lists it, and asks for another tenant's memory."""
    own = await memory.put(reference, "This is of one tenant.", node_id=node_id)
    other = str(config.get("probeMemoryRef", ""))
    listed = [one.id for one in await memory.list(reference)]
    found = [one.id for one in await memory.list(other)]
    if await memory.get(other, own.id) is not None:
        found.append(own.id)
    return ActionResult(
        variables={"ownerEntryId": own.id},
        reads={"ownerProbe": listed, "crossTenantProbe": found},
    )


ACTIONS: Final[dict[str, Action]] = {
    "write-then-read": write_then_read,
    "redaction-probe": probe_redaction,
    "ttl-probe": probe_expiry,
    "cross-tenant-probe": probe_other_tenant,
}
