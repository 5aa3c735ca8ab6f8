"""The working memory that a checkpoint contains if its request names none."""

from __future__ import annotations

from typing import Any

import msgspec

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
    and values.

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
            found.append(_described(opened))
    return found[::-1]


def _may_be_shown(entry: Entry, loaded: LoadedSession) -> bool:
    about_others = not set(entry.subjects) <= set(loaded.entry.subjects)
    return not (about_others or entry.sensitivity in _SEALED)


def _described(entry: Entry) -> dict[str, Any]:
    described = {
        "namespace": entry.namespace,
        "key": entry.key,
        "kind": entry.kind,
        "task_id": entry.scope.task_id,
        "value": msgspec.json.decode(entry.value),
    }
    return {name: one for name, one in described.items() if one is not None}
