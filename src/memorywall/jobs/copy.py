"""Makes one store identical to another, and verifies it by count and digest.

The copy merges both sides in key order, tenant by tenant and table by table: it inserts missing
rows, replaces different rows, and deletes rows that only the target has. An interrupted copy
therefore resumes when it is run again, and a repeated copy transfers only the difference.

A copy only moves a target forward. The log of a tenant is never rewritten, so it shows which of two
stores is an earlier state of the other: if the target's log is a prefix of the source's log, the
target has no data that the source lacks. Other copies, such as one with swapped `--from` and
`--to`, are refused.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from memorywall.records.clock import SystemClock
from memorywall.records.errors import ConfigurationError
from memorywall.records.event_chain import Envelope
from memorywall.records.idempotency import DataKey, KeyPurpose
from memorywall.records.identifiers import IdSource
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.storage.transfer import (
    API_KEYS,
    BATCH_BYTES,
    COUNTERS,
    DATA_KEYS,
    EVENTS,
    CopyRowDigest,
    CopySide,
    CopySource,
    CopyTarget,
    Key,
    Row,
    Table,
    TableDigest,
    tables,
)

Progress = Callable[[int], object]

_CLIENT_NAMES = ("task_id", "intent_id")
"""Columns of an envelope that are erased, with its content, if they contain a name that a client
chose."""
_PREFIX, _REVOKED = API_KEYS.indexes["prefix"], API_KEYS.indexes["revoked_at"]
_ENVELOPE = [EVENTS.indexes[name] for name in Envelope._fields if name not in _CLIENT_NAMES]
_COUNTER, _VALUE = COUNTERS.indexes["name"], COUNTERS.indexes["value"]


class OverwritePolicy(Enum):
    """The states of a target that a copy may overwrite."""

    EMPTY_ONLY = "an empty store, or the beginning of this very copy that nobody can have used"
    FAST_FORWARD = "an earlier state of the source as well"
    REPLACE = "whatever is there, which is lost"


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """The comparison of a table for a tenant.

    digest: SHA-256 over the digests of the rows, in key order
    """

    tenant: str
    table: str
    rows: int
    digest: str
    target_rows: int
    target_digest: str

    @property
    def agree(self) -> bool:
        return (self.rows, self.digest) == (self.target_rows, self.target_digest)


@dataclass(slots=True)
class CopyReport:
    """The result of a copy.

    written, removed: rows that were written to or deleted from the target
    source_changed: whether the source has commits after the copied snapshot
    """

    compared: list[TableChecksum] = field(default_factory=list)
    written: int = 0
    removed: int = 0
    source_changed: bool = False

    @property
    def agree(self) -> bool:
        return all(one.agree for one in self.compared)


async def copy(
    source: CopySource,
    target: CopyTarget,
    overwrite: OverwritePolicy,
    progress: Progress = lambda _: None,
) -> CopyReport:
    """Makes the target identical to the source. `progress` receives the numbers of processed rows.

    Raises ConfigurationError and changes nothing if the policy does not allow to overwrite the
    target.
    """
    if overwrite is OverwritePolicy.EMPTY_ONLY:
        await _refuse_what_is_used(source, target)
    elif overwrite is OverwritePolicy.FAST_FORWARD:
        await _refuse_what_is_ahead(source, target)
    report = CopyReport()
    tenants = await source.tenants()
    others = await _others(target, tenants)
    steps = [
        # A tenant itself is deleted last, so that a repeated copy finds its remaining rows.
        *((table, tenant) for tenant in others for table in reversed(tables())),
        *((table, tenant) for tenant in tenants for table in tables() if table is not API_KEYS),
        # API keys are copied last, so that no client can use an incomplete copy.
        *((API_KEYS, tenant) for tenant in tenants),
    ]
    for table, tenant in steps:
        report.compared.append(await _merge(source, target, table, tenant, report, progress))
    report.source_changed = await source.changed()
    if report.agree:
        await target.finish(
            [TableDigest(one.tenant, one.table, one.rows, one.digest) for one in report.compared]
        )
    return report


async def _others(target: CopySide, tenants: Sequence[str]) -> list[str]:
    """Returns the tenants that only the target has."""
    return sorted(set(await target.tenants()) - set(tenants))


async def count_rows(side: CopySide) -> int:
    """Returns the number of rows to copy."""
    total = 0
    for tenant in await side.tenants():
        for table in tables():
            total += await side.count(table, tenant)
    return total


async def digest_tables(side: CopySide, progress: Progress = lambda _: None) -> list[TableDigest]:
    """Reads every row, and returns the digest of each table that has rows, by tenant and table."""
    found = []
    for tenant in await side.tenants():
        for table in tables():
            digest = _Digest()
            async for page in _Ahead(side, table, tenant).until(None):
                digest.add(page)
                progress(len(page))
            if digest.rows:
                found.append(TableDigest(tenant, table.name, digest.rows, digest.hex()))
    return sorted(found)


async def holds_sealed(side: CopySide) -> bool:
    """Returns whether the store may contain sealed data, which only the key-encryption key
    opens."""
    for tenant in await side.tenants():
        if await side.count(DATA_KEYS, tenant):
            return True
    return False


async def check_key(side: CopySide, keys: MasterKeys) -> None:
    """Raises ConfigurationError if this key-encryption key does not open every data key."""
    cipher = EnvelopeCipher(keys, IdSource(SystemClock()))
    for tenant in await side.tenants():
        for row in await _all_rows(side, DATA_KEYS, tenant):
            named = dict(zip(DATA_KEYS.columns, row, strict=True))
            # The column is older than the field.
            named["owner"] = named.pop("subject")
            named["purpose"] = KeyPurpose(named["purpose"] or KeyPurpose.SEALING)
            cipher.check_opens(DataKey(**named))


async def _refuse_what_is_ahead(source: CopySide, target: CopySide) -> None:
    """Raises ConfigurationError unless the target is an earlier state of the source."""
    for tenant in await target.tenants():
        why = await _what_is_ahead(source, target, tenant)
        if why is not None:
            raise ConfigurationError(
                f"the target is not an earlier state of the source: of the tenant {tenant}, {why}."
                " Are the two the right way round? --replace gives up what the target holds"
            )


async def _refuse_what_is_used(source: CopySide, target: CopyTarget) -> None:
    """Raises ConfigurationError if clients may use the target, which must be empty. Keys are copied
    last, so the target of an interrupted copy has none. No server opens an unfinished restore."""
    if target.is_unfinished:
        return
    for tenant in await target.tenants():
        if (
            await target.count(API_KEYS, tenant)
            or await _what_is_ahead(source, target, tenant) is not None
        ):
            raise ConfigurationError(
                f"the target is not empty: it holds something of the tenant {tenant};"
                " restore into a new data directory or a new database"
            )


async def _what_is_ahead(source: CopySide, target: CopySide, tenant: str) -> str | None:
    """Describes data of a tenant that the target has and the source lacks, or None."""
    end = await target.end_of_log(tenant)
    if await _event(target, tenant, end) != await _event(source, tenant, end):
        return "its log is not the beginning of the source's"
    known = {row[_PREFIX]: row for row in await _all_rows(source, API_KEYS, tenant)}
    for row in await _all_rows(target, API_KEYS, tenant):
        if row[_PREFIX] not in known:
            return "it has an API key that the source has not"
        if row[_REVOKED] is not None and known[row[_PREFIX]][_REVOKED] is None:
            return "it has revoked an API key that the source still takes"
    given = {row[_COUNTER]: row[_VALUE] for row in await _all_rows(source, COUNTERS, tenant)}
    for row in await _all_rows(target, COUNTERS, tenant):
        if row[_VALUE] > given.get(row[_COUNTER], 0):
            return "it has given fencing tokens that the source has not"
    return None


async def _event(side: CopySide, tenant: str, seq: int) -> list[Row]:
    """Returns the envelope of an event; other columns may have been erased on one side."""
    found = await side.rows(EVENTS, tenant, [(seq,)]) if seq else []
    return [tuple(row[place] for place in _ENVELOPE) for row in found]


async def _merge(
    source: CopySide,
    target: CopyTarget,
    table: Table,
    tenant: str,
    report: CopyReport,
    progress: Progress,
) -> TableChecksum:
    """Makes a tenant's rows of a table in the target identical to those of the source."""
    wanted, found = _Digest(), _Digest()
    touched = report.written + report.removed
    ahead = _Ahead(target, table, tenant)
    writer = _Writer(source, target, table, tenant, report)
    after: Key | None = None
    while page := await source.lines(table, tenant, after):
        after = page[-1].key
        wanted.add(page)
        missing = {line.key: line for line in page}
        async for present in ahead.until(after):
            found.add(present)
            surplus = [line.key for line in present if line.key not in missing]
            for line in present:
                if line == missing.get(line.key):
                    del missing[line.key]
            await writer.remove(surplus)
        await writer.put(missing.values())
        progress(len(page))
    async for present in ahead.until(None):
        await writer.remove([line.key for line in present])
    if report.written + report.removed != touched:
        found = _Digest()
        async for present in _Ahead(target, table, tenant).until(None):
            found.add(present)
    return TableChecksum(tenant, table.name, wanted.rows, wanted.hex(), found.rows, found.hex())


class _Digest:
    """Returns the count and the digest of paged rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._digest = hashlib.sha256()

    def add(self, page: Sequence[CopyRowDigest]) -> None:
        self.rows += len(page)
        self._digest.update(b"".join(line.digest for line in page))

    def hex(self) -> str:
        return self._digest.hexdigest()


class _Ahead:
    """Row digests of one side, read a page ahead."""

    def __init__(self, side: CopySide, table: Table, tenant: str) -> None:
        self._side = side
        self._table = table
        self._tenant = tenant
        self._page: list[CopyRowDigest] = []
        self._last: Key | None = None
        self._over = False

    async def until(self, key: Key | None) -> AsyncIterator[list[CopyRowDigest]]:
        """Yields row digests up to a key, or to the end, in pages. After its end no rows up to the
        key are read again, so rows that are written meanwhile do not appear."""
        while True:
            if not self._page:
                if self._over:
                    return
                self._page = await self._side.lines(self._table, self._tenant, self._last)
                self._over = not self._page
                if self._over:
                    return
                self._last = self._page[-1].key
            if key is None:
                cut = len(self._page)
            else:
                cut = bisect_right(self._page, key, key=_key)
            page, self._page = self._page[:cut], self._page[cut:]
            if page:
                yield page
            if self._page:
                return


def _key(line: CopyRowDigest) -> Any:
    return line.key


class _Writer:
    """Writes to the target in transactions of bounded size."""

    def __init__(
        self, source: CopySide, target: CopyTarget, table: Table, tenant: str, report: CopyReport
    ) -> None:
        self._source = source
        self._target = target
        self._table = table
        self._tenant = tenant
        self._report = report

    async def remove(self, keys: Sequence[Key]) -> None:
        if keys:
            await self._target.apply(self._table, self._tenant, [], keys)
            self._report.removed += len(keys)

    async def put(self, lines: Iterable[CopyRowDigest]) -> None:
        batch: list[Key] = []
        size = 0
        for line in lines:
            if batch and size + line.size > BATCH_BYTES:
                await self._put(batch)
                batch, size = [], 0
            batch.append(line.key)
            size += line.size
        if batch:
            await self._put(batch)

    async def _put(self, keys: Sequence[Key]) -> None:
        rows = await self._source.rows(self._table, self._tenant, keys)
        await self._target.apply(self._table, self._tenant, rows, [])
        self._report.written += len(rows)


async def _all_rows(side: CopySide, table: Table, tenant: str) -> list[Row]:
    """Yields every row of a small table."""
    rows: list[Row] = []
    after: Key | None = None
    while page := await side.lines(table, tenant, after):
        after = page[-1].key
        rows.extend(await side.rows(table, tenant, [line.key for line in page]))
    return rows
