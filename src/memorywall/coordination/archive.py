"""Archival of working memory when its task ends (RFC-0015 section 2.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.records.entry import SEALED_SENSITIVITIES, Entry, is_expired
from memorywall.records.event import EventType
from memorywall.records.intent import Intent
from memorywall.records.task import Task
from memorywall.service.entries.removal import remove_entry, take_out_entry
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import TASK_LIFETIME
from memorywall.tiers import TASK_TIERS


async def archive_task_memory(context: OperationContext, task: Task, intent: Intent) -> int:
    """Archives the task's working memory as one event of the intent's log, and deletes it.

    Entries about people are in further events, one for each set of people, because the erasure of a
    person erases whole contents of events. Without archival in the task's policy and in the
    guardrails, only deletes the memory. Expired entries are not archived. Returns the number of
    archived or deleted entries.
    """
    archived: dict[tuple[str, ...], list[Entry]] = {}
    guardrails = intent.guardrails
    required = guardrails is not None and guardrails.memory_archive_required
    archives = task.memory_policy.archive_on_completion or required
    bound = await context.transaction.entries.of_task(None, task.id)
    for entry in bound:
        if entry.tier not in TASK_TIERS:
            continue
        if is_expired(entry, context.now):
            await remove_entry(context, EventType.EXPIRED, entry, by_system=True)
            continue
        archived.setdefault(entry.subjects, []).append(entry)
        if archives:
            await take_out_entry(context, entry)
        else:
            await remove_entry(context, EventType.DELETED, entry)
    for subjects in sorted(archived) if archives else ():
        entries = archived[subjects]
        await append_work_event(
            context,
            EventType.ARCHIVED,
            intent_id=intent.id,
            task_id=task.id,
            agent=task.assigned_agent,
            data={
                "entries_archived": len(entries),
                "snapshot": [await _snapshot(context, one) for one in entries],
            },
        )
    await _end_lifetimes(context, bound)
    return sum(map(len, archived.values()))


async def _end_lifetimes(context: OperationContext, bound: list[Entry]) -> None:
    """Ends the entries of other tiers with the `ttl` `task_lifetime` (RFC-0015 section 1.1)."""
    for entry in bound:
        if entry.tier not in TASK_TIERS and entry.ttl == TASK_LIFETIME:
            await remove_entry(context, EventType.EXPIRED, entry, by_system=True)


async def _snapshot(context: OperationContext, entry: Entry) -> dict[str, Any]:
    """An entry in an archive: with its value, or with a keyed digest of the value, which reveals
    nothing about it, where the value is sensitive (9.2) or the entry is about a person.

    The digest uses a key of the tenant, because the archive outlives the agent.
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
    if entry.sensitivity not in SEALED_SENSITIVITIES and not entry.subjects:
        return {**kept, "value": msgspec.Raw(entry.value)}
    opened = await context.service.cipher.open(context.transaction, entry)
    digest_key = (await context.service.cipher.digest_key(context.transaction, context.now)).id
    digest = await context.service.cipher.digest(
        context.transaction, entry.tenant, opened.value, digest_key
    )
    return {
        **kept,
        "digest": "hmac-sha256:" + digest.hex(),
        "digest_key": digest_key,
    }
