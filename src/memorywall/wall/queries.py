"""Looking for entries, and deleting what a filter finds (RFC-0015 section 4).

A filter only ever narrows what the caller may reach; what lies beyond is left out without a word.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from memorywall.policy.decide import decide
from memorywall.policy.reach import reach
from memorywall.records.decision import Reach, Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import RequestError
from memorywall.records.event import EventType
from memorywall.records.filter import LARGEST_PAGE, Filter
from memorywall.records.lease import Lease
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.storage.port import Script, Transaction
from memorywall.tiers import NAMESPACE_TIERS
from memorywall.wall.door import Door, end, namespace_targets, target_of
from memorywall.wall.fencing import guard, held_lease
from memorywall.wall.work import opened_by_work

_EXPORT_PAGE = 50
"""Entries of an export held at once; with the largest values that is 3 MB."""
_SHARED = frozenset(NAMESPACE_TIERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page of a query and how many entries match on all pages."""

    entries: list[Entry]
    total: int
    limit: int
    offset: int


async def query(door: Door, principal: Principal, wanted: Filter) -> Page:
    """The entries that match and that the caller may read, newest first.

    Raises RequestError when a tier behind an agent's wall is asked for and neither `agent_id` nor
    `scope.task_id` is given (RFC-0015 sections 4.1 and 8.1).
    """
    _require_owner(wanted)
    return await find(door, principal, wanted)


async def find(door: Door, principal: Principal, wanted: Filter) -> Page:
    """`query` for surfaces that imply whose memory is meant."""
    now = door.now()

    async def script(transaction: Transaction) -> Page:
        within = await reach_of(transaction, principal, Verb.READ, wanted, now)
        entries, total = await transaction.entries.search(wanted, within, now)
        return Page(
            entries=[
                entry if entry.sealing_key is None else await door.vault.open(transaction, entry)
                for entry in entries
            ],
            total=total,
            limit=LARGEST_PAGE if wanted.limit is None else wanted.limit,
            offset=wanted.offset,
        )

    page = await door.store.read(principal.tenant, script)
    door.accesses.note(page.entries, now)
    return page


async def export(
    door: Door, principal: Principal, wanted: Filter
) -> AsyncGenerator[list[Entry], None]:
    """Everything `query` would find, in pages, each on a fresh snapshot, newest first.

    A page starts after the last id of the one before, so what is written meanwhile is neither
    shown twice nor makes anything be left out, and no snapshot is held for long.
    """
    before = wanted.before
    while True:
        page = await find(
            door,
            principal,
            replace(wanted, before=before, limit=_EXPORT_PAGE, offset=0, counted=False),
        )
        if page.entries:
            yield page.entries
            before = page.entries[-1].id
        if len(page.entries) < _EXPORT_PAGE:
            return


async def delete_matching(door: Door, principal: Principal, wanted: Filter) -> Script[int]:
    """A script that deletes every entry that matches and that the caller may both see and delete;
    with a limit, only that page. Returns how many. Raises RequestError like `query`."""
    _require_owner(wanted)
    now = door.now()

    async def script(transaction: Transaction) -> int:
        lease = await held_lease(transaction, principal, now)
        readable = await reach_of(transaction, principal, Verb.READ, wanted, now)
        deletable = await reach_of(transaction, principal, Verb.DELETE, wanted, now)
        within = Reach(
            owners=tuple(set(readable.owners) & set(deletable.owners)),
            namespaces=tuple(sorted(set(readable.namespaces) & set(deletable.namespaces))),
        )
        whole = wanted.limit is None
        chunk = replace(wanted, limit=500, counted=False) if whole else wanted
        deleted = 0
        while True:
            entries, _ = await transaction.entries.search(chunk, within, now)
            for entry in entries:
                deleted += await _delete_allowed(transaction, principal, lease, entry, now)
            if not (whole and entries):
                return deleted
            # What may not be deleted stays where it was, so the next look starts behind it.
            chunk = replace(chunk, before=entries[-1].id)

    return script


async def _delete_allowed(
    transaction: Transaction,
    principal: Principal,
    lease: Lease | None,
    entry: Entry,
    now: str,
) -> bool:
    """Deletes an entry, unless it is bound to work that is its owner's no more."""
    target = await target_of(transaction, principal, Verb.DELETE, entry, now)
    if not decide(principal, Verb.DELETE, target).allowed:
        return False
    await guard(transaction, lease, entry, now)
    await end(transaction, EventType.DELETED, entry, by=principal, at=now)
    return True


def _require_owner(wanted: Filter) -> None:
    walled_by_agent = wanted.tiers and not _SHARED.issuperset(wanted.tiers)
    if walled_by_agent and wanted.agent_id is None and wanted.task_id is None:
        raise RequestError("give `agent_id` or `scope.task_id` to query this memory_type")


async def reach_of(
    transaction: Transaction, principal: Principal, verb: Verb, wanted: Filter, now: str
) -> Reach:
    """How far `principal` reaches among what `wanted` could match; looks up no more than needed."""
    tiers = wanted.tiers or tuple(Tier)
    namespaces: list[Namespace] = []
    if not _SHARED.isdisjoint(tiers):
        if wanted.namespace is None:
            namespaces = await transaction.namespaces.list_for(principal.tenant, principal.id)
            if wanted.namespace_prefix:
                prefix = wanted.namespace_prefix
                namespaces = [one for one in namespaces if one.name.startswith(prefix)]
        else:
            namespace = await transaction.namespaces.get(principal.tenant, wanted.namespace)
            namespaces = [] if namespace is None else [namespace]
    targets = await namespace_targets(transaction, principal, namespaces, now)
    opened = await opened_by_work(transaction, principal, verb, wanted, tiers, now)
    within = reach(principal, verb, targets, opened)
    return replace(within, owners=()) if _SHARED.issuperset(tiers) else within
