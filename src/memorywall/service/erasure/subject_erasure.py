"""Erasure of a subject: deletes all entries about a person, of any owner, with derived entries.

Entries about a subject are found by their edges, in every tier and of every agent, and derived
entries by their edges. They are deleted with their earlier versions, vectors, stored responses and
the content of their events. Earlier versions of other entries are found by their subjects. The log
names entries that were deleted or archived before; the contents of such events are found by the
digest of the subject, which each event about an entry contains, and by the namespaces of the
subject. The envelopes stay, so that the hash chain remains valid.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import msgspec

from memorywall.kinds.spec import ABOUT, DERIVED_FROM
from memorywall.records.entry import Entry
from memorywall.records.event import Event, EventType, WorkEventType, archived_by
from memorywall.records.event_chain import NO_EVENTS, LogHead, read_content
from memorywall.records.identifiers import name_forms
from memorywall.records.suppression import SuppressionKind, SuppressionLine
from memorywall.service.access.subjects import check_subject, subject_form
from memorywall.service.administration.tenants import known_tenant, require_tenant
from memorywall.service.encryption.opened_key import DIGEST_MARK
from memorywall.service.entries.removal import forget_entry
from memorywall.service.erasure.entry_erasure import (
    StepRunner,
    revoke_keys,
    run_as_system,
    wait_until_erased,
)
from memorywall.service.erasure.query_sample import remove_queries
from memorywall.service.erasure.suppression import record_suppression
from memorywall.service.requests.event_log import append_end_event, append_work_event
from memorywall.service.requests.namespace_names import USER_PREFIX
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices

_encode = msgspec.json.Encoder().encode
_IN_NAMESPACE = re.compile(rb'"%s((?:[^"\\/]|\\.)+)/' % USER_PREFIX.encode()).findall
"""Finds the subjects of namespaces in a JSON text; a subject contains no slash."""
_AT_ONCE = 50
_PAGE = 500
_WHENEVER = ""
"""An instant before all others, at which no entry has expired."""


@dataclass(slots=True)
class SubjectErasure:
    """The counts of an erasure, and its receipt.

    entries: the number of deleted entries by tier
    derived: how many of them were derived from other entries
    versions: the number of deleted earlier versions of entries that remain
    events: the number of erased contents of events about versions and entries that were gone
    receipt: the `seq` of the event that records the forgetting, None if nothing was erased
    digest: replaces the subject in that event
    forgotten_at: of a repetition, the instant of the forgetting; None for the present one
    bytes_left_in_files: whether deleted bytes are not overwritten in the files yet
    in_ledger: whether the suppression ledger names the subject
    position: of a step, the `seq` up to which the log was examined
    is_last: of a step, whether nothing is left to erase
    ids, head: of a step, the erased entries and the end of the log after it
    """

    digest: str
    entries: Counter[str] = field(default_factory=Counter)
    derived: int = 0
    versions: int = 0
    events: int = 0
    namespaces: int = 0
    api_keys: int = 0
    receipt: int | None = None
    forgotten_at: str | None = None
    bytes_left_in_files: bool = False
    in_ledger: bool = False
    position: int = 0
    is_last: bool = False
    ids: list[str] = field(default_factory=list)
    head: LogHead = NO_EVENTS

    @property
    def found(self) -> bool:
        """Returns whether anything was erased."""
        return bool(
            self.entries or self.versions or self.events or self.namespaces or self.api_keys
        )


async def erase_subject(
    service: SharedServices,
    tenant: str,
    subject: str,
    run: StepRunner | None = None,
    *,
    patience: float = 0,
) -> SubjectErasure:
    """Erases a subject in small transactions. May be repeated, to complete an erasure or without
    effect.

    run: default: as the system principal of erasure
    patience: seconds to wait until deleted bytes are overwritten in the files
    Raises ValidationError, UnavailableError if the suppression ledger cannot be written, and
    ConfigurationError for an unknown tenant.
    """
    name = check_subject("subject", subject, is_new=False)
    tenant = await known_tenant(service, tenant)
    run = run or run_as_system(service, tenant)
    # The digest of the subject needs a tenant, and an access decision comes first.
    await run(lambda context: require_tenant(context.transaction, tenant))
    total = SubjectErasure(digest=await subject_form(service, tenant, name))
    for form in name_forms(subject):
        digest = await subject_form(service, tenant, form)
        _add(total, await _erase(service, tenant, (form, digest), run))
    total.bytes_left_in_files = not await wait_until_erased(service, patience)
    return total


async def erase_stored_subject(
    service: SharedServices, tenant: str, stored: str, forgotten_at: str
) -> None:
    """Repeats the erasure of a subject.

    stored: a form in which entries name it: its name, or the digest that replaces the name
    forgotten_at: the instant of the forgetting
    """
    run = run_as_system(service, tenant)
    if stored.startswith(DIGEST_MARK):
        await _erase(service, tenant, (stored, stored), run, forgotten_at)
        return
    for form in name_forms(stored):
        forms = form, await subject_form(service, tenant, form)
        await _erase(service, tenant, forms, run, forgotten_at)


async def record_forgettings(
    service: SharedServices, tenant: str, lines: Sequence[SuppressionLine]
) -> None:
    """Records in a restored log that people were forgotten of whom it may have nothing, as the
    lines of the ledger name them."""
    for start in range(0, len(lines), _AT_ONCE):

        async def step(context: OperationContext, start: int = start) -> None:
            for line in lines[start : start + _AT_ONCE]:
                data = {"ledger_digests": line.digests, "forgotten_at": line.at}
                await append_work_event(context, WorkEventType.SUBJECT_FORGOTTEN, data=data)

        await run_as_system(service, tenant)(step)


async def erase_entries(service: SharedServices, tenant: str, entry_ids: Sequence[str]) -> None:
    """Erases entries with the entries derived from them. Absent ids are ignored."""
    for start in range(0, len(entry_ids), _AT_ONCE):

        async def step(context: OperationContext, start: int = start) -> SubjectErasure:
            counted = SubjectErasure(digest="")
            for entry_id in entry_ids[start : start + _AT_ONCE]:
                await _remove_with_derived(context, entry_id, counted)
            return counted

        await run_as_system(service, tenant)(step)


async def _erase(
    service: SharedServices,
    tenant: str,
    forms: tuple[str, str],
    run: StepRunner,
    forgotten_at: str | None = None,
) -> SubjectErasure:
    total = SubjectErasure(digest=forms[1], forgotten_at=forgotten_at)
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
    return total


async def _erase_some(
    context: OperationContext, forms: tuple[str, str], so_far: SubjectErasure
) -> SubjectErasure:
    """Erases some entries, and in the last step the data that is no entry. Returns the counts of
    this step, because a transaction may run more than once."""
    counted = SubjectErasure(digest=forms[1], position=so_far.position)
    transaction = context.transaction
    if ids := await transaction.edges.sources(ABOUT, forms, _AT_ONCE):
        for entry_id in ids:
            await _remove_with_derived(context, entry_id, counted)
    elif versions := await transaction.history.about(forms, _PAGE):
        await _remove_versions(context, versions, counted)
    elif events := await transaction.events.containing(_texts(forms), so_far.position, _PAGE):
        counted.position = events[-1].seq
        await _erase_events(context, forms, events, counted)
    else:
        await _end(context, forms, so_far, counted)
    counted.head = await transaction.events.head()
    return counted


async def _end(
    context: OperationContext,
    forms: tuple[str, str],
    so_far: SubjectErasure,
    counted: SubjectErasure,
) -> None:
    """Erases the data that is no entry, and records the forgetting, also where nothing was stored:
    what was said before may still wait to be stored, see `forgotten_subjects.py`."""
    counted.is_last = True
    counted.namespaces = await _remove_namespaces(context, forms)
    await remove_queries(context, lambda query: forms[1] in query.subjects)
    counted.api_keys = await revoke_keys(context, lambda key: key.subjects == (forms[1],))
    data = {
        "subject_digest": forms[1],
        "entries": so_far.entries.total(),
        "derived": so_far.derived,
        "versions": so_far.versions,
        "events": so_far.events,
    }
    if so_far.forgotten_at is not None:
        data["forgotten_at"] = so_far.forgotten_at
    event = await append_work_event(context, WorkEventType.SUBJECT_FORGOTTEN, data=data)
    if counted.found or so_far.found:
        counted.receipt = event.seq


async def _remove_with_derived(
    context: OperationContext, entry_id: str, counted: SubjectErasure
) -> None:
    waiting, seen = [entry_id], {entry_id}
    while waiting:
        entries = await context.transaction.entries.get_many(waiting, _WHENEVER)
        made = [one for one in await _made_from(context, waiting) if one not in seen]
        for entry in entries:
            await forget_entry(context, entry)
            counted.entries[entry.tier.value] += 1
            counted.ids.append(entry.id)
            counted.derived += any(relation == DERIVED_FROM for relation, _ in entry.edges)
        seen.update(made)
        waiting = made


async def _remove_versions(
    context: OperationContext, versions: Sequence[Entry], counted: SubjectErasure
) -> None:
    """Removes earlier versions, and the entries that were derived from them."""
    numbers: dict[str, set[int]] = {}
    for version in versions:
        numbers.setdefault(version.id, set()).add(version.version)
    for entry_id, gone in numbers.items():
        await context.transaction.history.remove(entry_id, gone)
        made = await _made_from(context, [entry_id])
        for entry in await context.transaction.entries.get_many(made, _WHENEVER):
            sources = entry.provenance.derived_from
            if any(one.id == entry_id and one.version in gone for one in sources):
                await _remove_with_derived(context, entry.id, counted)
        counted.versions += len(gone)


async def _erase_events(
    context: OperationContext,
    forms: tuple[str, str],
    found: Sequence[Event],
    counted: SubjectErasure,
) -> None:
    """Erases the contents of events about the subject, with all contents of events about entries
    that are gone and their archives; removes entries in the namespaces of the subject.

    An entry that remains has other subjects now, so only the events of its earlier versions go.
    """
    events = context.transaction.events
    found = [one for one in found if _names_somebody(one)]
    gone = {one.entry_id for one in found if one.entry_id}
    for entry in await context.transaction.entries.get_many(gone, _WHENEVER):
        gone.discard(entry.id)
        if entry.namespace.startswith(_namespaces(forms)):
            await _remove_with_derived(context, entry.id, counted)
    seqs = {one.seq for one in found} | set(await events.seqs_of_entries(gone))
    archives = {one.seq: one for one in found if one.type == EventType.ARCHIVED}
    archives |= {one.seq: one for one in await _archives_of(context, gone)}
    for archive in archives.values():
        for archived in archived_by(archive):
            await append_end_event(context, archived)
    counted.events += await events.erase_content(seqs | archives.keys())


def _names_somebody(event: Event) -> bool:
    """Returns whether a content about a subject has to be erased: not the event of an erasure, and
    not the event without names that ends an erased entry."""
    if event.type == WorkEventType.SUBJECT_FORGOTTEN:
        return False
    return bool(event.key or not event.entry_id)


async def _archives_of(context: OperationContext, entry_ids: Collection[str]) -> list[Event]:
    """Returns the archives that have any of these entries."""
    texts, archives = [_encode(one) for one in entry_ids], list[Event]()
    while texts:
        after = archives[-1].seq if archives else 0
        page = await context.transaction.events.containing(
            texts, after, _PAGE, kind=EventType.ARCHIVED
        )
        archives.extend(page)
        if len(page) < _PAGE:
            break
    return archives


def _texts(forms: tuple[str, str]) -> list[bytes]:
    """Returns the JSON texts by which the content of an event names a subject: its digest, and the
    beginning of its namespaces."""
    return [_encode(forms[1]), *(_encode(prefix)[:-1] for prefix in _namespaces(forms))]


def subjects_in_content(content: bytes) -> list[str]:
    """Returns the subjects that the stored content of an event names, in any form, by which
    `_texts` finds it."""
    named: list[str] = [
        msgspec.json.decode(b'"%s"' % one, type=str) for one in _IN_NAMESPACE(content)
    ]
    return [*(read_content(content).subjects or ()), *named]


def _namespaces(forms: tuple[str, str]) -> tuple[str, ...]:
    """Returns the prefixes of the namespaces of a subject."""
    return tuple(f"{USER_PREFIX}{form}/" for form in dict.fromkeys(forms))


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
    prefixes = _namespaces(forms)
    names = [one.name for one in await namespaces.list_for("") if one.name.startswith(prefixes)]
    for name in names:
        await namespaces.remove(name)
    return len(names)


def _add(total: SubjectErasure, step: SubjectErasure) -> None:
    total.entries.update(step.entries)
    total.derived += step.derived
    total.versions += step.versions
    total.events += step.events
    total.namespaces += step.namespaces
    total.api_keys += step.api_keys
    total.receipt = step.receipt if total.receipt is None else total.receipt
    total.in_ledger = total.in_ledger or step.in_ledger
    total.head = step.head
    total.position = step.position
    total.is_last = step.is_last
