"""What every operation stands on, and the steps they share."""

from __future__ import annotations

from dataclasses import dataclass, field

from memorywall.policy.decide import decide
from memorywall.policy.reach import shared_target
from memorywall.records.clock import Clock, format_instant
from memorywall.records.decision import Target, Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError
from memorywall.records.event import Event, EventType
from memorywall.records.identifiers import IdSource
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation
from memorywall.settings import Settings
from memorywall.storage.port import Store, Transaction
from memorywall.tiers import TIERS
from memorywall.wall.accesses import Accesses
from memorywall.wall.vault import Vault

SYSTEM = "system"


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


async def target_of(transaction: Transaction, entry: Entry) -> Target:
    """The facts about an entry that a decision needs."""
    if TIERS[entry.tier].isolation is Isolation.NAMESPACE:
        namespace = await transaction.namespaces.get(entry.tenant, entry.namespace)
        return shared_target(entry.tenant, namespace)
    return owner_target(entry.tenant, entry.owner)


def owner_target(tenant: str, agent: str) -> Target:
    """The target that stands for everything behind an agent's wall."""
    return Target(tenant=tenant, isolation=Isolation.AGENT, owner=agent)


async def end(
    transaction: Transaction, kind: EventType, entry: Entry, *, by: Principal | None, at: str
) -> None:
    """Removes an entry for good and records how it ended."""
    await transaction.entries.remove(entry)
    await record(transaction, kind, entry, by=by, at=at)


def is_over(entry: Entry, now: str) -> bool:
    """Whether an entry's time is over, though it may still wait to be swept."""
    return entry.expires_at is not None and entry.expires_at <= now


async def record(
    transaction: Transaction,
    kind: EventType,
    entry: Entry,
    *,
    by: Principal | None,
    at: str,
    previous_version: int | None = None,
) -> None:
    """Appends what happened to `entry` to the log (RFC-0015 section 5). The one place that does.

    An agent's stream shows what happens to its own memory and what it does to shared memory; what
    the server does to shared memory by itself stands in no agent's stream, for its creator may
    have lost sight of it since.
    """
    doer = by.id if by is not None else ""
    await transaction.events.append(
        Event(
            tenant=entry.tenant,
            type=kind,
            stream=entry.owner or doer,
            agent_id=entry.owner or doer or entry.agent_id,
            actor=by.actor if by is not None else SYSTEM,
            entry_id=entry.id,
            tier=entry.tier,
            namespace=entry.namespace,
            key=entry.key,
            version=entry.version,
            previous_version=previous_version,
            tags=entry.tags,
            task_id=entry.scope.task_id,
            intent_id=entry.scope.intent_id,
            timestamp=at,
        )
    )
