"""Erasure of a subject: deletes all entries about a person, of any owner, with derived entries.

Entries about a subject are found by their edges, in every tier and of every agent, and derived
entries by their edges. They are deleted with their earlier versions, vectors, stored responses and
the content of their events. The envelopes stay, so that the hash chain remains valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from memorywall.kinds.spec import ABOUT, DERIVED_FROM
from memorywall.records.event import WorkEventType
from memorywall.records.event_chain import NO_EVENTS, LogHead
from memorywall.records.principal import Maintenance
from memorywall.records.suppression import SuppressionKind
from memorywall.service.administration import require_tenant
from memorywall.service.context import ServiceContext
from memorywall.service.entry_writes import forget_entry
from memorywall.service.erasure import revoke_keys
from memorywall.service.event_log import append_work_event
from memorywall.service.maintenance import maintain
from memorywall.service.opened_key import DIGEST_MARK
from memorywall.service.operation_context import OperationContext
from memorywall.service.query_sample import remove_queries
from memorywall.service.subjects import USER_PREFIX, check_subject, subject_form
from memorywall.service.suppression import record_suppression

_AT_ONCE = 50
_PAGE = 500
_WHENEVER = ""
"""An instant before all others, at which no entry has expired."""


@dataclass(slots=True)
class SubjectErasure:
    """The counts of an erasure, and its receipt.

    entries: the number of deleted entries by tier
    derived: how many of them have no subject of their own and were derived from such entries
    receipt: the `seq` of the event that records the erasure, None if nothing was erased
    digest: replaces the subject in that event
    erased: whether the deleted bytes are overwritten in the files, or another process does that
    in_ledger: whether the suppression ledger names the subject
    is_last: of a step, whether nothing is left to erase
    ids, head: of a step, the erased entries and the end of the log after it
    """

    digest: str
    entries: Counter[str] = field(default_factory=Counter)
    derived: int = 0
    namespaces: int = 0
    api_keys: int = 0
    receipt: int | None = None
    erased: bool = False
    in_ledger: bool = False
    is_last: bool = False
    ids: list[str] = field(default_factory=list)
    head: LogHead = NO_EVENTS

    @property
    def found(self) -> bool:
        """Returns whether anything was erased."""
        return bool(self.entries or self.namespaces or self.api_keys)


Step = Callable[[OperationContext], Awaitable[SubjectErasure]]


async def erase_subject(
    service: ServiceContext,
    tenant: str,
    subject: str,
    run: Callable[[Step], Awaitable[SubjectErasure]] | None = None,
) -> SubjectErasure:
    """Erases a subject in small transactions. May be repeated, to complete an erasure or without
    effect.

    run: runs one step in its own transaction; default: as the system principal of erasure

    Raises ValidationError, UnavailableError if the suppression ledger cannot be written, and
    ConfigurationError for an unknown tenant.
    """
    check_subject("subject", subject)

    async def look(context: OperationContext) -> None:
        await require_tenant(context.transaction, tenant)

    if run is None:
        await maintain(service, tenant, Maintenance.ERASE, look)
        run = _by_system(service, tenant)
    form = await subject_form(service, tenant, subject)
    return await _erase(service, tenant, (subject, form), run)


async def erase_stored_subject(service: ServiceContext, tenant: str, stored: str) -> None:
    """Erases a subject by a form in which entries name it: its name, or the digest that replaces
    the name."""
    form = stored
    if not stored.startswith(DIGEST_MARK):
        form = await subject_form(service, tenant, stored)
    await _erase(service, tenant, (stored, form), _by_system(service, tenant))


async def erase_entries(service: ServiceContext, tenant: str, entry_ids: Sequence[str]) -> None:
    """Erases entries with the entries derived from them. Absent ids are ignored."""
    for start in range(0, len(entry_ids), _AT_ONCE):

        async def step(context: OperationContext, start: int = start) -> SubjectErasure:
            counted = SubjectErasure(digest="")
            for entry_id in entry_ids[start : start + _AT_ONCE]:
                await _remove_with_derived(context, entry_id, counted)
            return counted

        await _by_system(service, tenant)(step)


def _by_system(service: ServiceContext, tenant: str) -> Callable[[Step], Awaitable[SubjectErasure]]:
    async def run(step: Step) -> SubjectErasure:
        return await maintain(service, tenant, Maintenance.ERASE, step, long=True)

    return run


async def _erase(
    service: ServiceContext,
    tenant: str,
    forms: tuple[str, str],
    run: Callable[[Step], Awaitable[SubjectErasure]],
) -> SubjectErasure:
    total = SubjectErasure(digest=forms[1])
    while not total.is_last:
        step = await run(lambda context: _erase_some(context, forms, total))
        if step.ids:
            # An older backup may have these entries without the subject.
            entries = SuppressionKind.ENTRIES
            await record_suppression(service, tenant, entries, step.ids, step.head)
        _add(total, step)
    total.in_ledger = await record_suppression(
        service, tenant, SuppressionKind.SUBJECT, dict.fromkeys(forms), total.head
    )
    total.erased = service.store.is_erasure_complete()
    return total


async def _erase_some(
    context: OperationContext, forms: tuple[str, str], so_far: SubjectErasure
) -> SubjectErasure:
    """Erases some entries, and in the last step the data that is no entry. Returns the counts of
    this step, because a transaction may run more than once."""
    counted = SubjectErasure(digest=forms[1])
    ids = await context.transaction.edges.sources(ABOUT, forms, _AT_ONCE)
    if ids:
        for entry_id in ids:
            await _remove_with_derived(context, entry_id, counted)
        counted.head = await context.transaction.events.head()
        return counted
    counted.is_last = True
    counted.namespaces = await _remove_namespaces(context, forms)
    await remove_queries(context, lambda query: forms[1] in query.subjects)
    counted.api_keys = await revoke_keys(context, lambda key: key.subjects == (forms[1],))
    if counted.found or so_far.found:
        event = await append_work_event(
            context,
            WorkEventType.SUBJECT_FORGOTTEN,
            data={
                "subject_digest": forms[1],
                "entries": so_far.entries.total(),
                "derived": so_far.derived,
            },
        )
        counted.receipt = event.seq
    counted.head = await context.transaction.events.head()
    return counted


async def _remove_with_derived(
    context: OperationContext, entry_id: str, counted: SubjectErasure
) -> None:
    waiting, is_derived = [entry_id], False
    seen = {entry_id}
    while waiting:
        entries = await context.transaction.entries.get_many(waiting, _WHENEVER)
        made = [one for one in await _made_from(context, waiting) if one not in seen]
        for entry in entries:
            await forget_entry(context, entry)
            counted.entries[entry.tier.value] += 1
            counted.ids.append(entry.id)
            counted.derived += is_derived and not entry.subjects
        seen.update(made)
        waiting, is_derived = made, True


async def _made_from(context: OperationContext, entry_ids: list[str]) -> list[str]:
    made: list[str] = []
    after = ""
    while True:
        page = await context.transaction.edges.sources(DERIVED_FROM, entry_ids, _PAGE, after)
        made.extend(page)
        if len(page) < _PAGE:
            return made
        after = page[-1]


async def _remove_namespaces(context: OperationContext, forms: tuple[str, str]) -> int:
    namespaces = context.transaction.namespaces
    prefixes = tuple(f"{USER_PREFIX}{form}/" for form in forms)
    names = [one.name for one in await namespaces.list_for("") if one.name.startswith(prefixes)]
    for name in names:
        await namespaces.remove(name)
    return len(names)


def _add(total: SubjectErasure, step: SubjectErasure) -> None:
    total.entries.update(step.entries)
    total.derived += step.derived
    total.namespaces += step.namespaces
    total.api_keys += step.api_keys
    total.receipt = step.receipt
    total.head = step.head
    total.is_last = step.is_last
