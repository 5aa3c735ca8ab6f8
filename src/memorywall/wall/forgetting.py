"""Forgetting an agent: all that is behind its wall goes, and the data keys it was sealed with.

Deleted rows leave copies for a while, in a database's pages, in its log, on its replicas. What was
sealed can be opened from none of them once the data key, which is one small row, is gone as well.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from memorywall.records.event import EventType, WorkEvent
from memorywall.records.tier import Tier
from memorywall.records.usage import AgentLimits
from memorywall.storage.port import Transaction
from memorywall.wall.administration import require_tenant
from memorywall.wall.door import Door, end
from memorywall.wall.limits import check_agent
from memorywall.wall.log import record_work

_ENTRIES_AT_ONCE = 100
_REPLIES_AT_ONCE = 500
_LOOK_AGAIN = 0.05


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much of an agent has gone.

    entries: of each tier
    erased: whether the bytes of what was removed have left the files, or it is not this process
        whose business that is
    """

    entries: dict[Tier, int]
    kept_replies: int
    limits: int
    api_keys: int
    data_keys: int
    erased: bool


@dataclass(slots=True)
class _Step:
    """What one transaction removed."""

    entries: dict[Tier, int]
    kept_replies: int = 0
    limits: int = 0
    data_keys: int = 0
    is_last: bool = False

    @property
    def removed(self) -> bool:
        return any((*self.entries.values(), self.kept_replies, self.limits, self.data_keys))


async def forget(door: Door, tenant: str, agent: str, *, patience: float = 0) -> Forgotten:
    """Removes for good, in small transactions, everything that is the agent's alone: its API keys
    are revoked, its entries, kept replies and limits removed, its data keys destroyed.

    It may be run again, to finish what was interrupted or to no effect.

    patience: seconds to wait for the bytes to leave the files
    Raises ConfigurationError for a tenant that is not there, ValidationError.
    """
    check_agent("agent", agent)
    # First of all nobody speaks with its keys any more.
    revoked = await _revoke_keys(door, tenant, agent)
    entries = dict.fromkeys(Tier, 0)
    replies, removed = 0, revoked > 0
    while True:
        step = await _forget_some(door, tenant, agent, removed)
        for tier, number in step.entries.items():
            entries[tier] += number
        replies += step.kept_replies
        removed = removed or step.removed
        if step.is_last:
            break
    door.vault.drop(tenant, agent)
    return Forgotten(
        entries, replies, step.limits, revoked, step.data_keys, await _erased(door, patience)
    )


async def _revoke_keys(door: Door, tenant: str, agent: str) -> int:
    now = door.now()

    async def script(transaction: Transaction) -> int:
        await require_tenant(transaction, tenant)
        revoked = 0
        for key in await transaction.identities.keys(tenant):
            if key.principal == agent and key.revoked_at is None:
                revoked += await transaction.identities.revoke_key(key.prefix, now)
        return revoked

    return await door.store.write(tenant, script)


async def _forget_some(door: Door, tenant: str, agent: str, removed: bool) -> _Step:
    """Removes some of the agent's memory, and in the transaction that removes the last of it the
    data keys: whatever is written before that goes, and whatever after is sealed with a new key.

    removed: whether anything has gone before
    """
    now = door.now()

    async def script(transaction: Transaction) -> _Step:
        step = _Step({})
        if not await _remove_entries(transaction, tenant, agent, now, step):
            return step
        step.kept_replies = await transaction.replies.remove(tenant, agent, _REPLIES_AT_ONCE)
        if step.kept_replies == _REPLIES_AT_ONCE:
            return step
        if await transaction.identities.limits(tenant, agent) != AgentLimits():
            await transaction.identities.set_limits(tenant, agent, AgentLimits())
            step.limits = 1
        step.data_keys = await transaction.data_keys.remove(tenant, agent)
        step.is_last = True
        if removed or step.removed:
            await record_work(
                transaction,
                WorkEvent.AGENT_FORGOTTEN,
                tenant=tenant,
                by=None,
                at=now,
                agent=agent,
                data={},
            )
        return step

    return await door.store.write(tenant, script, long=True)


async def _remove_entries(
    transaction: Transaction, tenant: str, agent: str, now: str, step: _Step
) -> bool:
    """Removes some entries of the agent. Whether those were all."""
    room = _ENTRIES_AT_ONCE
    for tier in Tier:
        found = await transaction.entries.of_owner(tenant, tier, agent, room + 1)
        for entry in found[:room]:
            await end(transaction, EventType.DELETED, entry, by=None, at=now)
        step.entries[tier] = min(len(found), room)
        if len(found) > room:
            return False
        room -= len(found)
    return True


async def _erased(door: Door, patience: float) -> bool:
    deadline = asyncio.get_running_loop().time() + patience
    while not door.store.erased():
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True
