"""What every operation stands on, and the steps they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from memorywall.policy.decide import decide
from memorywall.policy.reach import shared_target
from memorywall.records.clock import Clock, format_instant
from memorywall.records.decision import Target, Verb
from memorywall.records.entry import EMPTY_SCOPE, Entry
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.event import EventType
from memorywall.records.identifiers import IdSource
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation, Tier
from memorywall.settings import Settings
from memorywall.storage.port import Store, Transaction
from memorywall.tiers import TIERS
from memorywall.tiers.shared import AGENT, PREFIX
from memorywall.wall.accesses import Accesses
from memorywall.wall.log import record
from memorywall.wall.vault import Vault
from memorywall.wall.work import coordinates_agent, guardrails_over, is_barred, work_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """The means of an operation; one per open store."""

    store: Store
    clock: Clock
    ids: IdSource
    vault: Vault
    settings: Settings
    accesses: Accesses = field(default_factory=Accesses)

    def now(self) -> str:
        """The present instant, in the form that is stored."""
        return format_instant(self.clock.now())


def authorize(principal: Principal, verb: Verb, target: Target) -> None:
    """Raises MemoryAccessError, or MemoryNotFoundError where even the refusal would tell."""
    decision = decide(principal, verb, target)
    if decision.hidden:
        raise MemoryNotFoundError
    if not decision.allowed:
        raise MemoryAccessError(f"not allowed to {verb} this: {decision.reason}")


async def target_of(
    transaction: Transaction, principal: Principal, verb: Verb, entry: Entry, now: str
) -> Target:
    """The facts about an entry that a decision about `verb` needs."""
    if TIERS[entry.tier].isolation is Isolation.NAMESPACE:
        return await namespace_target(transaction, principal, entry.tier, entry.namespace, now)
    own = entry.owner == principal.id
    work, coordinated = None, False
    if entry.tier is Tier.WORKING and entry.scope is not EMPTY_SCOPE:
        if not (own and verb is Verb.READ):
            work = await work_of(transaction, principal, entry.scope, now, own=own)
    elif entry.tier is Tier.EPISODIC and not own and verb is Verb.READ:
        coordinated = await coordinates_agent(transaction, principal, entry.owner, now)
    return Target(
        tenant=entry.tenant,
        isolation=Isolation.AGENT,
        owner=entry.owner,
        work=work,
        coordinated=coordinated,
    )


async def namespace_target(
    transaction: Transaction, principal: Principal, tier: Tier, name: str, now: str
) -> Target:
    """The facts about a namespace of shared memory that a decision needs."""
    tenant = principal.tenant
    namespace = await transaction.namespaces.get(tenant, name)
    if tier is Tier.SHARED:
        founder = name.removeprefix(AGENT) if name.startswith(AGENT) else ""
        return shared_target(tenant, namespace, founder=founder)
    guardrails = await guardrails_over(transaction, tenant, principal.id, now)
    return shared_target(tenant, namespace, barred=is_barred(guardrails, name))


async def namespace_targets(
    transaction: Transaction, principal: Principal, namespaces: Iterable[Namespace], now: str
) -> list[Target]:
    """The same for namespaces that are known already."""
    known = list(namespaces)
    guardrails = []
    if known:
        guardrails = await guardrails_over(transaction, principal.tenant, principal.id, now)
    return [
        shared_target(
            principal.tenant,
            one,
            barred=not one.name.startswith(PREFIX) and is_barred(guardrails, one.name),
        )
        for one in known
    ]


def owner_target(tenant: str, agent: str) -> Target:
    """The target that stands for everything behind an agent's wall."""
    return Target(tenant=tenant, isolation=Isolation.AGENT, owner=agent)


async def end(
    transaction: Transaction, kind: EventType, entry: Entry, *, by: Principal | None, at: str
) -> None:
    """Removes an entry for good and records how it ended."""
    await transaction.entries.remove(entry)
    await record(transaction, kind, entry, by=by, at=at)
