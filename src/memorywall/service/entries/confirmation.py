"""Confirms the value of an entry: the only way in which knowledge becomes `verified`."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.records.decision import Target, Verb
from memorywall.records.draft import EntryPatch
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError, TransitionError
from memorywall.records.namespace import Access
from memorywall.records.principal import Principal, PrincipalKind
from memorywall.service.access.targets import load_target
from memorywall.service.entries.provenance import update_provenance
from memorywall.service.entries.supersession import load_changeable
from memorywall.service.entries.update import hide_unread
from memorywall.service.entries.writes import make_next_version, replace_entry
from memorywall.service.requests.operation_context import OperationContext

_REFUSED = (
    "only a person confirms an entry, or a service with a grant of `admin` in its namespace that"
    " did not write it"
)


async def confirm(context: OperationContext, entry_id: str, version: int) -> Entry:
    """Confirms the value of an entry at `version`: its authority is `verified` until the value
    changes. What a person wrote stays `human_curated`.

    Raises MemoryNotFoundError, MemoryConflictError, TransitionError for an entry that is not live,
    and MemoryAccessError for a caller that may not update or may not confirm it.
    """
    entry = await load_changeable(context, entry_id, version)
    target = await load_target(context, Verb.UPDATE, entry)
    if not _may_confirm(context.principal, target, entry):
        raise MemoryAccessError(_REFUSED)
    if entry.state != "live":
        raise TransitionError(f"the entry is {entry.state}; only a live entry can be confirmed")
    opened = await context.service.cipher.open(context.transaction, entry)
    curated_by = context.principal.id if not entry.owner else None
    new = make_next_version(context, opened, curated_by=curated_by)
    new = update_provenance(context, opened, new, EntryPatch())
    is_curated = opened.provenance.authority == "human_curated"
    provenance = replace(
        new.provenance,
        authority="human_curated" if is_curated else "verified",
        verified_by=context.principal.id,
    )
    new = replace(new, provenance=provenance)
    return await hide_unread(
        context, entry, await replace_entry(context, entry, new, policy="keep")
    )


def _may_confirm(principal: Principal, target: Target, entry: Entry) -> bool:
    """Whether the caller is a person, or the validator of the namespace: a service that it grants
    `admin`. No validator confirms what it wrote itself."""
    if principal.kind is PrincipalKind.USER:
        return True
    if principal.kind is not PrincipalKind.SERVICE or target.namespace is None:
        return False
    writers = {entry.created_by, entry.curated_by, entry.provenance.principal}
    return writers.isdisjoint((principal.id, principal.actor)) and any(
        grant.access is Access.ADMIN
        and (grant.agent == principal.id or principal.is_in(grant.agent))
        for grant in target.namespace.grants
    )
