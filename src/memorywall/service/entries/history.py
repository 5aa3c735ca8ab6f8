"""Earlier versions of entries: by number, and as of an instant."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec.structs import replace

from memorywall.records.decision import VisibilityFilter
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryNotFoundError, RequestError, ResourceNotFoundError
from memorywall.records.filter import EntryFilter
from memorywall.records.filter_match import matches_fields
from memorywall.records.session import belongs_to
from memorywall.records.tier import Tier
from memorywall.service.entries.conditions import ScanBudget, select_met
from memorywall.service.requests.operation_context import OperationContext

MOST_LOOKED_AT = 10_000
"""The most entries that a query with `as_of` reads."""
_PAGE = 500


async def load_version(
    context: OperationContext, entry: Entry, version: int | None, as_of: str | None
) -> Entry:
    """Returns a stored entry at a version or as of an instant; the current entry if neither is
    given.

    entry: the current entry, after its access decision

    Raises ResourceNotFoundError if there is no such version, or none of that instant any more,
    MemoryNotFoundError for an instant before the creation of the entry.
    """
    history = context.transaction.history
    if version is not None and version != entry.version:
        if version > entry.version:
            raise ResourceNotFoundError("the entry has not had a version of this number yet")
        found = await history.get(entry.id, version)
        if found is None:
            raise ResourceNotFoundError("this version of the entry is not kept")
        entry = found
    if as_of is None:
        return entry
    if entry.created_at > as_of:
        raise MemoryNotFoundError("the entry was created later")
    if version is not None or entry.updated_at <= as_of:
        return entry
    found = (await history.as_of([entry.id], as_of)).get(entry.id)
    if found is None:
        raise ResourceNotFoundError("the version of that instant is not kept")
    return found


async def load_versions(
    context: OperationContext, entry: Entry, before: int | None, limit: int
) -> list[Entry]:
    """Returns up to `limit` versions of a stored entry, newest first, the current one included.

    entry: the current entry, after its access decision
    before: only versions with a smaller number, None for all
    """
    shown = [entry] if before is None or entry.version < before else []
    if len(shown) == limit:
        return shown
    before = entry.version if before is None else min(before, entry.version)
    return shown + await context.transaction.history.earlier(entry.id, before, limit - len(shown))


async def search_as_of(
    context: OperationContext,
    wanted: EntryFilter,
    within: VisibilityFilter,
    as_of: str,
    budget: ScanBudget | None,
) -> tuple[list[Entry], int]:
    """Returns one page of the entries that matched at an instant, in their state at that instant,
    and the number of matches.

    budget: what `where` may read, None without one

    An entry of an unversioned tier matches only if it has not changed since. Raises RequestError if
    the query matches too many entries, ScanLimitError.
    """
    matching: list[Entry] = []
    looked_at, before = 0, wanted.before
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    while True:
        # Conditions on fields that may have changed are checked afterwards.
        page, _ = await context.transaction.entries.search(
            replace(_lasting(wanted), before=before, limit=_PAGE, offset=0, counted=False),
            within,
            context.now,
        )
        found = await _as_of(context, [one for one in page if one.created_at <= as_of], as_of)
        found = [one for one in found if _matches(one, wanted, within, as_of)]
        if wanted.where is not None and budget is not None:
            budget.spend(len(found), sum(len(one.value) for one in found))
            found = await select_met(context, wanted.where, found)
        matching += found
        looked_at += len(page)
        is_enough = not wanted.counted and end is not None and len(matching) >= end
        if is_enough or len(page) < _PAGE:
            return matching[wanted.offset : end], len(matching)
        if looked_at >= MOST_LOOKED_AT:
            raise RequestError(f"`as_of` looks at {MOST_LOOKED_AT} entries; narrow the query")
        before = page[-1].id


def _lasting(wanted: EntryFilter) -> EntryFilter:
    """The conditions of a filter on fields that never change."""
    return EntryFilter(
        tenant=wanted.tenant,
        tiers=wanted.tiers,
        agent_id=wanted.agent_id,
        namespace=wanted.namespace,
        namespace_prefix=wanted.namespace_prefix,
        aliases=wanted.aliases,
        key=wanted.key,
        key_prefix=wanted.key_prefix,
        created_after=wanted.created_after,
        created_before=wanted.created_before,
        except_owner=wanted.except_owner,
        state=None,
        listed_only=False,
    )


async def _as_of(context: OperationContext, entries: list[Entry], as_of: str) -> list[Entry]:
    """The entries as of an instant, without entries whose earlier version is unknown."""
    changed = [one.id for one in entries if one.updated_at > as_of]
    kept = await context.transaction.history.as_of(changed, as_of) if changed else {}
    shown = (kept.get(one.id) if one.updated_at > as_of else one for one in entries)
    return [one for one in shown if one is not None]


def _matches(entry: Entry, wanted: EntryFilter, within: VisibilityFilter, as_of: str) -> bool:
    """Whether a version meets the conditions on fields that may change, except `where`."""
    return (
        (entry.expires_at is None or entry.expires_at > as_of)
        and (wanted.updated_after is None or entry.updated_at > wanted.updated_after)
        and (wanted.updated_before is None or entry.updated_at < wanted.updated_before)
        and (within.subjects is None or set(entry.subjects) <= set(within.subjects))
        and (
            within.session is None or belongs_to(within.session, entry.tier, entry.scope.session_id)
        )
        and matches_fields(_VersionFields.of(entry), wanted)
    )


class _VersionFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a version that a filter reads."""

    tier: Tier
    tags: tuple[str, ...]
    task_id: str | None
    intent_id: str | None
    session_id: str | None
    pinned: bool
    kind: str | None
    status: str | None
    state: str
    listed: bool
    subjects: tuple[str, ...]
    origin: str | None
    source: str | None

    @classmethod
    def of(cls, entry: Entry) -> Self:
        scope, provenance = entry.scope, entry.provenance
        return cls(
            entry.tier,
            entry.tags,
            scope.task_id,
            scope.intent_id,
            scope.session_id,
            entry.pinned,
            entry.kind,
            entry.status,
            entry.state,
            entry.listed,
            entry.subjects,
            provenance.origin,
            provenance.source,
        )
