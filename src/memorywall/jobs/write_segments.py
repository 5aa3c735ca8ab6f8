"""Writes index segments, with which a server loads an index shard without reading every entry.

An entry belongs to a segment once it has not changed for a while. A change of an entry removes its
segment in the same transaction, and a later run writes another one. A run can therefore end at any
point and be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from memorywall.jobs.job_runner import JobSpec, JobStep, StepResult
from memorywall.recall.analyzer import Analyzer
from memorywall.recall.document import AuthorDateFields
from memorywall.recall.segments import build, form_of
from memorywall.records.clock import format_instant
from memorywall.records.entry import Entry
from memorywall.records.principal import Maintenance
from memorywall.records.recall import StoredSegment
from memorywall.records.tier import Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import inspect
from memorywall.storage.port import LAST_KEY

SEGMENTS_INTERVAL: Final = 300.0
"""Seconds. Segments save time after a start only, so that a delay does not matter."""
SEGMENT_SIZE: Final = 1_000
"""The entries of a segment."""
_LEAST = 250
"""The fewest entries of a segment; fewer entries in a row are loaded one by one."""
_SETTLED_MILLISECONDS = 600_000
"""An entry that changed within this time is likely to change again."""
_LASTING_MILLISECONDS = 3_600_000
"""An entry that expires within this time is not worth a segment."""


class _Position(msgspec.Struct, frozen=True, array_like=True):
    """The progress of a run: an owner, a tier of the owner, and the last id."""

    owner: str = ""
    tier: str = ""
    after: str | None = None


_decode = msgspec.json.Decoder(_Position).decode


async def _is_needed(context: OperationContext) -> bool:
    form = form_of(AuthorDateFields.of(context.service.settings))
    return await context.transaction.recall.without_segment(form, SEGMENT_SIZE) is not None


async def _prepare(service: SharedServices, tenant: str, cursor: str) -> JobStep:
    """Builds the next segment outside of the transaction that stores it."""
    fields = AuthorDateFields.of(service.settings)
    form = form_of(fields)
    position = _decode(cursor) if cursor else _Position()
    entries: Sequence[Entry] | None = None
    while entries is None:
        read = partial(_next_run, form=form, position=position)
        entries, position = await inspect(service, tenant, Maintenance.INDEX, read, long=True)
    if not entries:
        return _end
    content = await asyncio.to_thread(build, entries, fields, Analyzer())
    segment = StoredSegment(entries[0].id, entries[-1].id, form, content)
    versions = {entry.id: entry.version for entry in entries}
    following = msgspec.json.encode(position).decode()

    async def step(context: OperationContext, cursor: str) -> StepResult:
        one, recall = entries[0], context.transaction.recall
        stored = await recall.put_segment(one.tier, one.owner, segment, versions)
        return StepResult(int(stored), following, True)

    return step


async def _end(context: OperationContext, cursor: str) -> StepResult:
    return StepResult(0, "", False)


async def _next_run(
    context: OperationContext, form: str, position: _Position
) -> tuple[Sequence[Entry] | None, _Position]:
    """Reads the entries between two segments. Returns those for the next segment, None if there are
    none and empty at the end of everything, and the following position."""
    recall, after = context.transaction.recall, position.after
    owner, tier = position.owner, position.tier
    if after is None:
        found = await recall.without_segment(form, SEGMENT_SIZE, (owner, tier))
        if found is None:
            return (), position
        (owner, tier), after = found, ""
    stored = await recall.next_segment(Tier(tier), owner, form, after)
    end = LAST_KEY if stored is None else stored.first
    read = context.transaction.entries.of_owner
    entries = await read(Tier(tier), owner, SEGMENT_SIZE, after, end)
    settled = [_is_settled(context, entry) for entry in entries]
    chosen, rest = choose_run(entries, settled, is_cut=stored is not None)
    if rest is None and stored is not None:
        rest = stored.last
    return chosen or None, _Position(owner, tier, rest)


def choose_run(
    entries: Sequence[Entry], settled: Sequence[bool], *, is_cut: bool
) -> tuple[Sequence[Entry], str | None]:
    """Returns the first settled entries in a row that are enough for a segment, and the id from
    which the search for others continues; None if all entries were looked at.

    entries: a page of the entries between two segments; less than `SEGMENT_SIZE` at their end
    is_cut: whether a segment follows. New entries follow otherwise, so that few are left for later.
    """
    is_full, start = len(entries) == SEGMENT_SIZE, 0
    for place, is_settled in enumerate((*settled, False)):
        if is_settled:
            continue
        is_end = place == len(entries)
        least = _LEAST if not is_end or (is_cut and not is_full) else SEGMENT_SIZE
        if place - start >= least:
            return entries[start:place], entries[place - 1].id
        if is_end and is_full:
            return (), entries[start - 1].id
        start = place + 1
    return (), None


def _is_settled(context: OperationContext, entry: Entry) -> bool:
    if entry.updated_at > format_instant(context.moment - _SETTLED_MILLISECONDS):
        return False
    lasting = format_instant(context.moment + _LASTING_MILLISECONDS)
    return entry.expires_at is None or entry.expires_at > lasting


SEGMENTS_JOB: Final = JobSpec(
    name="segments",
    maintenance=Maintenance.INDEX,
    interval=lambda context: SEGMENTS_INTERVAL,
    is_needed=_is_needed,
    step=_end,
    prepare=_prepare,
)
