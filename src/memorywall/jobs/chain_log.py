"""Adds a log without hashes to the hash chain, before a store is used.

The events are appended to the chain unchanged, in order and with their numbers. A genesis event
then marks their end: the chain proves that they are unchanged since then. Events with the digests
of the rows of all existing entries follow. Each step is a transaction that reads its position from
the log. The work may therefore be interrupted at any time, and several servers may do it at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memorywall.records.clock import Clock, format_instant, instant_to_milliseconds
from memorywall.records.entry import Entry
from memorywall.records.event import Event, LogEvent
from memorywall.records.event_chain import ROW_FORMAT, row_digest
from memorywall.service.requests.event_log import append_event, append_log_event
from memorywall.storage.port import REGISTRY, Store, Transaction

_EVENTS_AT_ONCE = 500
_ENTRIES_AT_ONCE = 200


class RowDigests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data of a `log.rows` event.

    format: the format of the digests; see `event_chain.ROW_FIELDS`
    key: the id of their digest key
    rows: the id, the version and the digest of each entry, by id
    last: no entry up to this id lacks a digest
    complete: whether no entry at all lacks a digest
    """

    format: int
    key: str
    rows: list[tuple[str, int, bytes]]
    last: str
    complete: bool


async def chain_logs(store: Store, clock: Clock) -> None:
    """Adds the logs of all tenants to their chains, and digests the existing rows.

    Raises KeyUnavailableError.
    """

    async def names(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    for tenant in await store.read(REGISTRY, names):
        await _chain_log(store, clock, tenant)


async def _chain_log(store: Store, clock: Clock, tenant: str) -> None:
    async def needs_chaining(transaction: Transaction) -> bool:
        return bool(await transaction.events.legacy(1)) or (
            await _rows_done(transaction) is not None
        )

    async def step(transaction: Transaction) -> bool:
        old = await transaction.events.legacy(_EVENTS_AT_ONCE + 1)
        if old:
            await _move(transaction, old, clock)
            return True
        after = await _rows_done(transaction)
        if after is None:
            return False
        return not await _digest_rows(transaction, after, format_instant(clock.now()))

    if await store.read(tenant, needs_chaining):
        while await store.write(tenant, step, long=True):
            pass


async def _move(transaction: Transaction, old: list[Event], clock: Clock) -> None:
    """Appends legacy events, and after the last of them the genesis event.

    old: one more event than is moved, if there are more
    """
    moved = old[:_EVENTS_AT_ONCE]
    for event in moved:
        await append_event(transaction, event)
    await transaction.events.drop_legacy(moved[-1].seq)
    if len(old) > _EVENTS_AT_ONCE:
        return
    clock.not_before(instant_to_milliseconds(old[-1].timestamp))
    seq, digest = await transaction.events.head()
    data = {"events": seq, "digest": digest.hex()}
    now = format_instant(clock.now())
    await append_log_event(transaction, LogEvent.GENESIS, now, data)


async def _rows_done(transaction: Transaction) -> str | None:
    """Returns the id up to which rows have digests; None if nothing is left to do.

    The end of the log shows this, because no other event is appended before.
    """
    latest = await transaction.events.latest()
    if latest is None or latest.type is LogEvent.GENESIS:
        return None if latest is None else ""
    if latest.type is not LogEvent.ROWS or latest.data is None:
        return None
    done = msgspec.json.decode(latest.data, type=RowDigests)
    return None if done.complete else done.last


async def _digest_rows(transaction: Transaction, after: str, now: str) -> bool:
    """Appends one event with the digests of the next entries. Returns whether those were the
    last."""
    entries = await transaction.entries.walk(after, _ENTRIES_AT_ONCE)
    complete = len(entries) < _ENTRIES_AT_ONCE
    await append_row_digests(transaction, entries, now, after=after, complete=complete)
    return complete


async def append_row_digests(
    transaction: Transaction,
    entries: Sequence[Entry],
    now: str,
    *,
    after: str = "",
    complete: bool = True,
) -> None:
    """Appends an event with the digests of the rows of entries, in their stored form.

    after, complete: see `RowDigests`; by default of a log that lacks no digest
    """
    assert transaction.digest_keys is not None  # noqa: S101 - what is appended needs them too
    key = await transaction.digest_keys.digest_key(transaction, now)
    digests = RowDigests(
        format=ROW_FORMAT,
        key=key.id,
        rows=[(entry.id, entry.version, row_digest(entry, key)) for entry in entries],
        last=entries[-1].id if entries else after,
        complete=complete,
    )
    await append_log_event(transaction, LogEvent.ROWS, now, digests)
