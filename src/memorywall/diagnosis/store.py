"""Checks of the store: schema, files, key, clock, background jobs. They change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from memorywall.assembly import open_store
from memorywall.diagnosis.finding import Finding, ok, problem, warning
from memorywall.records.clock import Clock, instant_to_milliseconds
from memorywall.records.errors import ConfigurationError, MemorywallError
from memorywall.records.event import Event
from memorywall.records.identifiers import IdSource
from memorywall.records.scheduled_job import ScheduledJob
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.encryption.key_file import load_keys
from memorywall.settings import Settings
from memorywall.storage.description import StoreHealth
from memorywall.storage.port import REGISTRY, Store, Transaction

_LARGE_LOG = 256 << 20
_TOLERANCE_MILLISECONDS = 1_000


def check_health_of(health: StoreHealth) -> Iterator[Finding]:
    """Yields findings about the schema, the files and the configuration of the database."""
    engine = f"{health.engine} {health.version}"
    yield ok("store", f"{engine}, {'in use by a server' if health.is_served else 'no server runs'}")
    if health.schema == health.newest_schema:
        yield ok("schema", f"schema {health.schema} is the newest")
    elif health.schema > health.newest_schema:
        yield problem(
            "schema",
            f"schema {health.schema} is newer than this memorywall, which knows"
            f" {health.newest_schema}",
            "use the version that wrote the database or a newer one",
        )
    else:
        yield warning(
            "schema",
            f"schema {health.schema} is older than {health.newest_schema}",
            "back up the store; the next start of the server migrates it",
        )
    if health.damage:
        yield problem(
            "integrity",
            f"the database file is damaged: {health.damage[0]}",
            "stop the server, keep a copy of the directory, restore the last good backup",
        )
    elif health.damage is not None:
        yield ok("integrity", "a quick check of the database file found no damage")
    if health.log_bytes is not None:
        megabytes = f"the write-ahead log has {health.log_bytes / (1 << 20):,.1f} MB"
        if health.log_bytes > _LARGE_LOG:
            yield warning(
                "log", megabytes, "start the server, which shortens it; end programs that read long"
            )
        else:
            yield ok("log", megabytes)
    yield from (
        warning("durability", risk, "change the configuration of PostgreSQL")
        for risk in health.risks
    )


async def check_contents(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """Yields findings about the key, the clock and the jobs. The schema must be the newest."""
    async with _open(settings) as store:
        for one in await _check_key(settings, store, clock):
            yield one
        tenants = await store.read(REGISTRY, _tenants)
        yield await _check_clock(store, tenants, clock)
        for one in await _check_jobs(store, tenants):
            yield one


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Store]:
    store = await open_store(settings, exclusive=False)
    try:
        yield store
    finally:
        await store.close()


async def _check_key(settings: Settings, store: Store, clock: Clock) -> list[Finding]:
    """Whether the key is that of the store. A key that cannot be read is reported elsewhere."""
    sealed = await store.read(REGISTRY, _has_sealed)
    try:
        cipher = EnvelopeCipher(load_keys(settings, may_create=False), IdSource(clock))
    except ConfigurationError as error:
        is_missing = settings.encryption_key is None and not settings.key_file.exists()
        return [problem("key", error.detail)] if sealed and is_missing else []
    try:
        await store.read(REGISTRY, cipher.check)
    except MemorywallError as error:
        return [problem("key", error.detail, "put back the key of this store")]
    return [ok("key", "it opens the data keys of the store")] if sealed else []


async def _has_sealed(transaction: Transaction) -> bool:
    return await transaction.data_keys.any() is not None


async def _tenants(transaction: Transaction) -> list[str]:
    return await transaction.identities.tenants()


async def _latest(transaction: Transaction) -> Event | None:
    return await transaction.events.latest()


async def _jobs(transaction: Transaction) -> list[ScheduledJob]:
    return await transaction.jobs.list()


async def _check_clock(store: Store, tenants: list[str], clock: Clock) -> Finding:
    events = [await store.read(tenant, _latest) for tenant in tenants]
    last = max((instant_to_milliseconds(one.timestamp) for one in events if one), default=0)
    ahead = last - clock.now()
    if ahead > _TOLERANCE_MILLISECONDS:
        return warning(
            "clock",
            f"the clock is {ahead / 1000:,.0f} seconds behind the last stored event",
            "synchronize the clock (NTP); until then leases and expiry run late",
        )
    return ok("clock", "the clock is not behind the last stored event")


async def _check_jobs(store: Store, tenants: list[str]) -> list[Finding]:
    jobs = [job for tenant in tenants for job in await store.read(tenant, _jobs)]
    found = []
    for job in jobs:
        of = f"{job.name} of the tenant {job.tenant}"
        if job.error:
            found.append(
                problem(
                    "jobs",
                    f"the last run of {of} failed ({job.error})",
                    f"see the server's log; then `memorywall jobs run {job.name}`",
                )
            )
        if job.paused:
            found.append(warning("jobs", f"{of} is paused", f"`memorywall jobs resume {job.name}`"))
    return found or [ok("jobs", f"no background job of {len(tenants)} tenants fails or is paused")]
