"""What becomes of working memory when its task ends (RFC-0015 section 2.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, is_over
from memorywall.records.event import EventType
from memorywall.records.intent import Intent
from memorywall.records.principal import Principal
from memorywall.records.task import Task
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from memorywall.wall.door import Door, end
from memorywall.wall.limits import TASK_LIFETIME
from memorywall.wall.log import record, record_work


async def close_memory(
    door: Door, transaction: Transaction, principal: Principal, task: Task, intent: Intent, now: str
) -> int:
    """Archives the task's working memory as one event of the intent's log and clears it, in this
    transaction; deletes it where the task's policy wants no archive and no guardrail demands one.

    Returns how many entries there were. What had expired is not archived.
    """
    archived: list[Entry] = []
    guardrails = intent.guardrails
    required = guardrails is not None and guardrails.memory_archive_required
    archives = task.memory_policy.archive_on_completion or required
    for entry in await transaction.entries.of_task(task.tenant, Tier.WORKING, task.id):
        if is_over(entry, now):
            await end(transaction, EventType.EXPIRED, entry, by=None, at=now)
            continue
        archived.append(entry)
        await transaction.entries.remove(entry)
        if not archives:
            await record(transaction, EventType.DELETED, entry, by=principal, at=now)
    if archives and archived:
        await record_work(
            transaction,
            EventType.ARCHIVED,
            tenant=task.tenant,
            by=principal,
            at=now,
            intent_id=intent.id,
            task_id=task.id,
            agent=task.assigned_agent,
            data={
                "entries_archived": len(archived),
                "snapshot": [await _snapshot(door, transaction, one) for one in archived],
            },
        )
    await _end_lifetimes(transaction, task, now)
    return len(archived)


async def _end_lifetimes(transaction: Transaction, task: Task, now: str) -> None:
    """Ends what was to last as long as the task and is no working memory (1.1, `ttl`)."""
    for tier in Tier:
        if tier is Tier.WORKING:
            continue
        for entry in await transaction.entries.of_task(task.tenant, tier, task.id):
            if entry.ttl == TASK_LIFETIME:
                await end(transaction, EventType.EXPIRED, entry, by=None, at=now)


async def _snapshot(door: Door, transaction: Transaction, entry: Entry) -> dict[str, Any]:
    """An entry as the archive keeps it: with its value, or for what is confidential with a digest
    that proves it to who has the value and tells nobody else anything (9.2).

    The archive belongs to the tenant and outlives the agent, so it is the tenant's key.
    """
    kept: dict[str, Any] = {
        "entry_id": entry.id,
        "agent_id": entry.agent_id,
        "namespace": entry.namespace,
        "key": entry.key,
        "version": entry.version,
        "tags": entry.tags,
        "sensitivity": entry.sensitivity,
        "updated_at": entry.updated_at,
    }
    if entry.sensitivity not in SEALED_SENSITIVITIES:
        return {**kept, "value": msgspec.Raw(entry.value)}
    opened = await door.vault.open(transaction, entry)
    digest_key = await door.vault.key_id(transaction, entry.tenant, "", door.now())
    digest = await door.vault.digest(transaction, entry.tenant, opened.value, digest_key)
    return {
        **kept,
        "digest": "hmac-sha256:" + digest.hex(),
        "digest_key": digest_key,
    }
