"""The working memory that a checkpoint contains if its request names none."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.coordination.attachment_content import load_content
from memorywall.kinds.working_memory import SCRATCH
from memorywall.records.decision import Verb
from memorywall.records.entry import Entry
from memorywall.records.filter import EntryFilter
from memorywall.records.tier import Tier
from memorywall.service.access.visibility import load_visibility
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession

MOST_ENTRIES = 200
MOST_BYTES = 1024 * 1024
_SEALED = ("confidential", "restricted")


async def working_entries(context: OperationContext, loaded: LoadedSession) -> list[dict[str, Any]]:
    """Returns the caller's working entries of a session, oldest first: their names, kinds, tasks
    and values, the items of steps with their content.

    At most `MOST_ENTRIES` with `MOST_BYTES` in all, the newest. Participants read a checkpoint and
    it is not sealed, so sealed entries and those about other people are left out.
    """
    wanted = EntryFilter(
        tenant=context.tenant,
        agent_id=context.principal.id,
        tiers=(Tier.WORKING,),
        session_id=loaded.id,
        listed_only=True,
        limit=MOST_ENTRIES,
        counted=False,
    )
    visible = await load_visibility(context, Verb.READ, wanted)
    page, _ = await context.transaction.entries.search(wanted, visible, context.now)
    found: list[dict[str, Any]] = []
    left = MOST_BYTES
    for entry in page:
        if _may_be_shown(entry, loaded):
            left -= entry.size
            if left < 0:
                break
            opened = await context.service.cipher.open(context.transaction, entry)
            value = msgspec.json.decode(opened.value)
            if entry.kind == SCRATCH.name and "reference" in value:
                content = await _load_externalized(context, entry, left)
                left -= len(content)
                if content:
                    value["content"] = msgspec.json.decode(content)
            found.append(_described(opened, value))
    return found[::-1]


def _may_be_shown(entry: Entry, loaded: LoadedSession) -> bool:
    about_others = not set(entry.subjects) <= set(loaded.entry.subjects)
    is_leaving = entry.kind == SCRATCH.name and entry.status != "active"
    return not (about_others or is_leaving or entry.sensitivity in _SEALED)


async def _load_externalized(context: OperationContext, entry: Entry, most: int) -> bytes:
    """Returns the content of an item of a step as JSON; b"" for one of more than `most` bytes,
    whose reference must do."""
    found = await context.transaction.attachments.list_of_entry(entry.id)
    if not found or (found[-1].size or 0) > most:
        return b""
    return await load_content(context, found[-1])


def _described(entry: Entry, value: dict[str, Any]) -> dict[str, Any]:
    described = {
        "namespace": entry.namespace,
        "key": entry.key,
        "kind": entry.kind,
        "task_id": entry.scope.task_id,
        "value": value,
    }
    return {name: one for name, one in described.items() if one is not None}
