"""Replays the log and compares the result with the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from memorywall.jobs.verify_chain import ChainVerifier
from memorywall.records.entry import Entry
from memorywall.records.event import ENDINGS, Event, EventType
from memorywall.service.encryption import EnvelopeCipher
from memorywall.storage.consistency import ConsistencyReader


@dataclass(slots=True)
class VerifyReport:
    """The counts and the differences.

    erased: the number of events whose content has been erased
    """

    entries: int = 0
    events: int = 0
    erased: int = 0
    problems: list[str] = field(default_factory=list)


def verify(
    inspection: ConsistencyReader,
    progress: Callable[[int], object] = lambda _: None,
    cipher: EnvelopeCipher | None = None,
) -> VerifyReport:
    """Checks the hash chain of every log, compares every entry's existence, version, tags, owner
    and row with its events, and every index with the entries. `progress` receives the numbers of
    processed events and entries.

    vault: opens the digest keys; without it digests of contents and rows are not checked
    """
    report = VerifyReport()
    known = set(inspection.tenants())
    for tenant in sorted(known | set(inspection.tenants_of_rows())):
        if tenant not in known:
            report.problems.append(f"the tenant {tenant} has entries or events and does not exist")
        chain = ChainVerifier(inspection.data_keys(tenant), cipher)
        report.problems.extend(
            f"{tenant}: {text}" for text in chain.check_log(inspection.log(tenant))
        )
        report.erased += chain.erased
        entries = _Peekable(inspection.entries(tenant))
        archived: dict[str, list[tuple[int, int]]] = {}
        for entry_id, history in groupby(inspection.events(tenant), lambda one: one.entry_id):
            if not entry_id:
                # Events that are not about one entry come first; an archive ends several entries.
                for event in history:
                    report.events += 1
                    progress(1)
                    try:
                        for one in _archived_by(event):
                            archived.setdefault(one.entry_id, []).append((one.version, event.seq))
                    except (msgspec.MsgspecError, UnicodeDecodeError):
                        report.problems.append(f"the archive at event {event.seq} cannot be read")
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
            report.problems.extend(f"{entry_id} {text}" for text in _compare(events, entry))
            if entry is not None:
                report.problems.extend(
                    f"{entry_id} {text}" for text in chain.check_entry(entry, events[-1])
                )
            progress(told + (entry is not None))
        report.problems.extend(f"{one} was archived, but no event tells of it" for one in archived)
        while (entry := entries.peek()) is not None:
            report.problems.append(f"{entry.id} is there, but no event tells of it")
            entries.take()
            progress(1)
        report.entries += entries.taken
    report.problems.extend(inspection.index_problems())
    return report


class _Ended(msgspec.Struct):
    """An entry as an archive names it."""

    entry_id: str
    version: int


class _Archive(msgspec.Struct):
    """The data of an archive event."""

    snapshot: list[_Ended]


def _archived_by(event: Event) -> list[_Ended]:
    """Returns the entries in an archive event."""
    if event.type != EventType.ARCHIVED or event.data is None:
        return []
    return msgspec.json.decode(event.data, type=_Archive).snapshot


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
