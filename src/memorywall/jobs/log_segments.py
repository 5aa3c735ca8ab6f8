"""Segments of a log: a restore begins a new one, whose first event names the end of the backup."""

from __future__ import annotations

import msgspec

from memorywall.records.event import LogEvent
from memorywall.records.event_chain import LogHead, StoredEvent, read_content
from memorywall.records.principal import Maintenance
from memorywall.service.requests.event_log import append_log_event
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner.maintenance import maintain


class AppliedLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The position in the suppression ledger up to which a restore has repeated erasures.

    mac: the MAC of the last of these lines, the seed if there are none
    """

    lines: int
    mac: str


class RestoredLog(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a `log.restored` event.

    seq, hash: the last event of the backup, the hash in hexadecimal
    ledger: None for a restore without a ledger
    """

    seq: int
    hash: str
    ledger: AppliedLedger | None


class LogSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment that a restore has begun.

    first: the `seq` of its first event, `log.restored`
    restored: None if the content of that event has been erased
    """

    tenant: str
    first: int
    restored: RestoredLog | None


async def begin_segment(
    service: SharedServices, tenant: str, ledger: AppliedLedger | None
) -> LogHead | None:
    """Appends `log.restored` to the log of a tenant. Returns the end of the log after it, None for
    a log without events."""

    async def function(context: OperationContext) -> LogHead | None:
        events = context.transaction.events
        head = await events.head()
        if not head.seq:
            return None
        data = RestoredLog(seq=head.seq, hash=head.hash.hex(), ledger=ledger)
        await append_log_event(context.transaction, LogEvent.RESTORED, context.now, data)
        return await events.head()

    return await maintain(service, tenant, Maintenance.ADMINISTER, function)


def read_segment(stored: StoredEvent) -> LogSegment | None:
    """Returns the segment that an event begins; None for another event."""
    envelope = stored.envelope
    if envelope.type != LogEvent.RESTORED:
        return None
    restored = None
    if stored.content is not None:
        try:
            data = read_content(stored.content).data
            restored = msgspec.json.decode(data, type=RestoredLog)
        except msgspec.MsgspecError:
            restored = None
    return LogSegment(tenant=envelope.tenant, first=envelope.seq, restored=restored)
