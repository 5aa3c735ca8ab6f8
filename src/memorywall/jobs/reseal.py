"""Seals content anew whose data key was replaced, and then destroys the replaced key.

A pass reads all entries with their earlier versions, all records with sealed fields and all
attachments of the tenant. Writes use the new key from the moment of the replacement, so a pass that
finds nothing under a replaced key proves that nothing is left. Only such a pass destroys the key.
Stored responses are not sealed anew: a key that one names stays until the response expires.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final, NamedTuple

import msgspec

from memorywall.coordination.attachments import reseal_attachment
from memorywall.jobs.chain_log import append_row_digests
from memorywall.jobs.job_runner import JobSpec, StepResult
from memorywall.records.entry import Entry
from memorywall.records.principal import Maintenance
from memorywall.records.sealed import SealedPart
from memorywall.service.entries.record_writes import open_record, replace_record
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.record_table import RECORDS
from memorywall.tiers import TIERS

RESEAL_INTERVAL = 3_600.0
"""Seconds. After its first run, the job only waits for stored responses to expire."""
_AT_ONCE = 100
_SEALED = tuple(name for name, spec in RECORDS.items() if spec.sealed)
_PHASES: Final = ("entries", *_SEALED, "attachments")


class _ResealCursor(NamedTuple):
    """The progress of a pass.

    phase: the index in `_PHASES`
    after: the last id that was looked at
    found: whether this pass has found anything under a replaced key
    """

    phase: int = 0
    after: str = ""
    found: bool = False


class _Resealed(NamedTuple):
    """What is resealed of one page: its last id, None at the end, and the number of things."""

    last: str | None
    resealed: int


async def _is_needed(context: OperationContext) -> bool:
    return bool(await context.transaction.data_keys.replaced())


async def _reseal_some(context: OperationContext, cursor: str) -> StepResult:
    phase, after, found = _decode(cursor) if cursor else _ResealCursor()
    replaced = await context.transaction.data_keys.replaced()
    names = {data_key.id for data_key in replaced}
    if not names:
        return StepResult(0, "", False)
    if phase == len(_PHASES):
        # The pass is complete: it is repeated until it finds nothing.
        if found:
            return StepResult(0, _encode(_ResealCursor()), True)
        for data_key in replaced:
            if not await context.transaction.replies.names_key(data_key.id):
                await context.service.cipher.destroy_data_key(context.transaction, data_key)
        return StepResult(0, "", False)
    done = await _reseal_page(context, _PHASES[phase], after, names)
    found = found or done.resealed > 0
    following = _ResealCursor(phase + 1, "", found)
    if done.last is not None:
        following = _ResealCursor(phase, done.last, found)
    return StepResult(done.resealed, _encode(following), True)


async def _reseal_page(
    context: OperationContext, phase: str, after: str, names: Set[str]
) -> _Resealed:
    if phase == "entries":
        return await _reseal_entries(context, after, names)
    if phase == "attachments":
        return await _reseal_attachments(context, after, names)
    return await _reseal_records(context, phase, after, names)


async def _reseal_entries(context: OperationContext, after: str, names: Set[str]) -> _Resealed:
    transaction, cipher = context.transaction, context.service.cipher
    resealed: list[Entry] = []
    entries = await transaction.entries.walk(after, _AT_ONCE)
    for entry in entries:
        if entry.sealing_key in names:
            fresh = await cipher.reseal(transaction, entry, context.now)
            await transaction.entries.reseal(fresh)
            resealed.append(fresh)
        if TIERS[entry.tier].durability.versioned:
            for version in await transaction.history.versions(entry.id):
                if version.sealing_key in names:
                    fresh = await cipher.reseal(transaction, version, context.now)
                    await transaction.entries.reseal(fresh, earlier=True)
                    resealed.append(fresh)
    if resealed:
        await append_row_digests(transaction, resealed, context.now)
    last = entries[-1].id if len(entries) == _AT_ONCE else None
    return _Resealed(last, len(resealed))


async def _reseal_records(
    context: OperationContext, table: str, after: str, names: Set[str]
) -> _Resealed:
    spec: Any = RECORDS[table]
    records = await context.transaction.records(spec).page(after=after, limit=_AT_ONCE)
    resealed = 0
    for record in records:
        part: SealedPart | None = record.sealed
        if part is not None and part.key_id in names:
            await replace_record(context, await open_record(context, record))
            resealed += 1
    return _Resealed(records[-1].id if len(records) == _AT_ONCE else None, resealed)


async def _reseal_attachments(context: OperationContext, after: str, names: Set[str]) -> _Resealed:
    """Seals at most one file anew, because a file may have many megabytes."""
    files = await context.transaction.attachments.page(after=after, limit=_AT_ONCE)
    for file in files:
        if file.sealing_key in names:
            await reseal_attachment(context, file)
            return _Resealed(file.id, 1)
    return _Resealed(files[-1].id if len(files) == _AT_ONCE else None, 0)


def _encode(cursor: _ResealCursor) -> str:
    return msgspec.json.encode(cursor).decode()


_decode = msgspec.json.Decoder(_ResealCursor).decode

RESEAL_JOB: Final = JobSpec(
    name="reseal",
    maintenance=Maintenance.SEAL,
    interval=lambda context: RESEAL_INTERVAL,
    is_needed=_is_needed,
    step=_reseal_some,
)
