"""How much an agent remembers (RFC-0015 "Agent Memory Summary")."""

from __future__ import annotations

from dataclasses import dataclass

from memorywall.policy.reach import reach
from memorywall.records.decision import Verb
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.records.usage import Usage
from memorywall.storage.port import Transaction
from memorywall.wall.capacity import episodic_capacity
from memorywall.wall.door import Door, authorize, namespace_targets, owner_target


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Counts of an agent's own memory and the shared namespaces it may read."""

    agent_id: str
    working: Usage
    tasks: list[str]
    episodic: Usage
    capacity: int
    oldest: str | None
    newest: str | None
    namespaces: list[str]


async def summarize(door: Door, principal: Principal, agent: str) -> Summary:
    """The summary of the caller's own memory. Raises MemoryAccessError for another's."""
    tenant = principal.tenant
    authorize(principal, Verb.OBSERVE, owner_target(tenant, agent))
    now = door.now()

    async def script(transaction: Transaction) -> Summary:
        entries = transaction.entries
        known = await transaction.namespaces.list_for(tenant, principal.id)
        targets = await namespace_targets(transaction, principal, known, now)
        capacity, _ = await episodic_capacity(door, transaction, tenant, agent, now)
        oldest, newest = await entries.span(tenant, Tier.EPISODIC, agent, now)
        return Summary(
            agent_id=agent,
            working=await entries.usage(tenant, Tier.WORKING, agent, now),
            tasks=await entries.tasks(tenant, Tier.WORKING, agent, now),
            episodic=await entries.usage(tenant, Tier.EPISODIC, agent, now),
            capacity=capacity,
            oldest=oldest,
            newest=newest,
            namespaces=list(reach(principal, Verb.READ, targets).namespaces),
        )

    return await door.store.read(principal.tenant, script)
