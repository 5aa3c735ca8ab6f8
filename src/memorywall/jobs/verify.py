"""Replays the log and compares the result with the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from memorywall.jobs.log_segments import LogSegment
from memorywall.jobs.verify_attachments import check_attachments
from memorywall.jobs.verify_chain import ChainVerifier
from memorywall.recall.segments import fits, is_current
from memorywall.records.entry import Entry
from memorywall.records.event import ENDINGS, Event, EventType, archived_by
from memorywall.records.feature_errors import StoreDamagedError
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.storage.consistency import ConsistencyReader


@dataclass(slots=True)
class VerifyReport:
    """The counts and the differences.

    erased: the number of events whose content has been erased
    segments: the segments of logs that restores have begun, by tenant
    """

    entries: int = 0
    events: int = 0
    erased: int = 0
    problems: list[str] = field(default_factory=list)
    segments: list[LogSegment] = field(default_factory=list)


def verify(
    inspection: ConsistencyReader,
    progress: Callable[[int], object] = lambda _: None,
    cipher: EnvelopeCipher | None = None,
) -> VerifyReport:
    """Checks the files of the database and the hash chain of every log, compares every entry's
    existence, version, tags, owner and row with its events, earlier versions with theirs, every
    attachment with its digest, and every index with the entries. `progress` receives the numbers of
    processed events and entries.

    cipher: opens the data keys; without it digests of contents, rows and attachments are not
        checked
    """
    report = VerifyReport()
    report.problems.extend(inspection.file_problems())
    try:
        known = set(inspection.tenants())
        for tenant in sorted(known | set(inspection.tenants_of_rows())):
            if tenant not in known:
                report.problems.append(
                    f"the tenant {tenant} has entries or events and does not exist"
                )
            _verify_tenant(inspection, tenant, cipher, report, progress)
            if cipher is not None:
                report.problems.extend(check_attachments(inspection, tenant, cipher))
            report.problems.extend(_check_segments(inspection, tenant))
        report.problems.extend(inspection.index_problems())
    except StoreDamagedError as error:
        report.problems.append(f"{error.detail}; the rest was not compared")
    return report


def _verify_tenant(
    inspection: ConsistencyReader,
    tenant: str,
    cipher: EnvelopeCipher | None,
    report: VerifyReport,
    progress: Callable[[int], object],
) -> None:
    """Replays the log of a tenant, and compares its entries and their earlier versions with it."""
    chain = ChainVerifier(inspection.data_keys(tenant), cipher)
    report.problems.extend(f"{tenant}: {text}" for text in chain.check_log(inspection.log(tenant)))
    report.erased += chain.erased
    report.segments.extend(chain.segments)
    entries = _Peekable(inspection.entries(tenant))
    versions = _Peekable(inspection.versions(tenant))
    archived: dict[str, list[tuple[int, int]]] = {}
    for entry_id, history in groupby(inspection.events(tenant), lambda one: one.entry_id):
        if not entry_id:
            # Events that are not about one entry come first; an archive ends several entries.
            _note_archives(history, archived, report, progress)
            continue
        events = list(history)
        report.events += len(events)
        while (entry := entries.peek()) is not None and entry.id < entry_id:
            report.problems.append(f"{entry.id} is there, but no event tells of it")
            entries.take()
            progress(1)
        entry = entries.take() if entry is not None and entry.id == entry_id else None
        told = len(events)
        events += [_archival(events[-1], *one) for one in archived.pop(entry_id, ())]
        events.sort(key=lambda one: one.seq)
        found = [*_compare(events, entry), *_check_versions(chain, versions, events)]
        if entry is not None:
            found.extend(chain.check_entry(entry, events[-1]))
        report.problems.extend(f"{entry_id} {text}" for text in found)
        progress(told + (entry is not None))
    report.problems.extend(f"{one} was archived, but no event tells of it" for one in archived)
    while (entry := entries.peek()) is not None:
        report.problems.append(f"{entry.id} is there, but no event tells of it")
        entries.take()
        progress(1)
    report.entries += entries.taken


def _check_segments(inspection: ConsistencyReader, tenant: str) -> Iterator[str]:
    """Yields the index segments with other content than was written. Only those of the present
    format are read, by searches too."""
    for one in inspection.segments(tenant):
        if is_current(one.form) and not fits(one):
            yield (
                f"{tenant}: the index segment {one.first} to {one.last} is damaged; the next search"
                " that needs it drops it and reads its entries"
            )


def _note_archives(
    history: Iterable[Event],
    archived: dict[str, list[tuple[int, int]]],
    report: VerifyReport,
    progress: Callable[[int], object],
) -> None:
    """Adds the entries that archives end, with their versions and the `seq` of the archive."""
    for event in history:
        report.events += 1
        progress(1)
        try:
            for one in archived_by(event):
                archived.setdefault(one.entry_id, []).append((one.version, event.seq))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            report.problems.append(f"the archive at event {event.seq} cannot be read")


def _check_versions(
    chain: ChainVerifier, versions: _Peekable, events: list[Event]
) -> Iterator[str]:
    """Yields the earlier versions of an entry that differ from the row digests of its events."""
    entry_id = events[0].entry_id
    wrote = {one.version: one for one in events if one.row is not None}
    # A version of an entry that no event names is a problem of the index.
    while (version := versions.peek()) is not None and version.id <= entry_id:
        versions.take()
        event = wrote.get(version.version) if version.id == entry_id else None
        if event is not None:
            for text in chain.check_entry(version, event):
                yield f"in version {version.version} {text}"


def _archival(last: Event, version: int, seq: int) -> Event:
    """Returns the last event of an entry that an archive implies."""
    return msgspec.structs.replace(
        last, seq=seq, type=EventType.ARCHIVED, version=version, previous_version=None
    )


def _compare(events: list[Event], entry: Entry | None) -> Iterator[str]:
    """Yields the contradictions between an entry and its events."""
    yield from _replay(events)
    last = events[-1]
    if entry is None:
        if last.type not in ENDINGS:
            yield "should be there and is not"
        return
    if last.type in ENDINGS:
        yield "is there though its log has ended"
    if entry.version != last.version:
        yield f"has version {entry.version}, its log says {last.version}"
    first = events[0]
    if not last.is_erased and entry.tags != last.tags:
        yield "has other tags than its log says"
    same_agent = first.is_erased or entry.agent_id == first.agent_id
    if not same_agent or entry.owner not in ("", entry.agent_id):
        yield "has another owner than its log says"
    if not last.is_erased and (entry.tier, entry.namespace, entry.key) != (
        last.tier,
        last.namespace,
        last.key,
    ):
        yield "has another tier, namespace or key than its log says"


def _replay(events: list[Event]) -> Iterator[str]:
    """Yields the contradictions between the events of one entry."""
    version = 0
    ended = False
    for event in events:
        if ended:
            yield f"has an event after its end, at {event.seq}"
        if event.type is EventType.CREATED:
            expected = 1 if version == 0 else None
        elif event.type is EventType.UPDATED:
            expected = version + 1 if event.previous_version == version else None
        else:
            expected, ended = version, True
        if event.version != expected:
            yield f"skips or repeats a version at event {event.seq}"
        version = event.version


class _Peekable:
    """An iterator over entries in order, with a look-ahead of one."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        self._entries = entries
        self._next = next(entries, None)
        self.taken = 0

    def peek(self) -> Entry | None:
        return self._next

    def take(self) -> Entry | None:
        taken, self._next = self._next, next(self._entries, None)
        self.taken += taken is not None
        return taken
