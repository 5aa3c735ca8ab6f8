"""Opens stores and the services over them; the only module that names a backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorywall.configuration.reader import read_configuration
from memorywall.jobs.chain_log import chain_logs
from memorywall.recall.embedders import open_embedder
from memorywall.recall.index import Index
from memorywall.recall.weights import DEFAULT_WEIGHTS, Weights
from memorywall.records.backup_origin import BackupOrigin
from memorywall.records.clock import Clock, SystemClock, instant_to_milliseconds
from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.event import Event
from memorywall.records.identifiers import IdSource
from memorywall.records.principal import Permission, Principal, PrincipalKind
from memorywall.service.access.api_keys import impersonate
from memorywall.service.administration.tenants import create_tenant
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.encryption.key_file import has_keys, load_keys
from memorywall.service.encryption.keyed_store import KeyedStore
from memorywall.service.encryption.ledger_key import open_ledger
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.requests.services import SharedServices
from memorywall.settings import (
    DEFAULT_TENANT,
    Settings,
)
from memorywall.storage.consistency import ConsistencyReader
from memorywall.storage.description import StoreHealth
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall.storage.sqlite.backup import (
    SqliteBackup,
    SqliteBackupReader,
    SqliteRestoredDatabase,
)
from memorywall.storage.sqlite.backup import open_backup as read_backup
from memorywall.storage.sqlite.consistency import SqliteConsistencyReader
from memorywall.storage.sqlite.health import check_health as check_file_health
from memorywall.storage.sqlite.health import is_served as is_file_served
from memorywall.storage.sqlite.store import SqliteStore
from memorywall.storage.sqlite.transfer import SqliteCopySource, SqliteCopyTarget
from memorywall.storage.suppression_ledger import SuppressionLedger
from memorywall.storage.transfer import BackupSource, CopySource, CopyTarget

if TYPE_CHECKING:
    from memorywall.summaries.model import ModelSummarizer


def settings_for(directory: Path, **given: Any) -> Settings:
    """The settings of a server or command for a data directory, or for the PostgreSQL database that
    `database_url`, the environment or the settings file names, with the key of the directory.

    given: settings that override the environment and the settings file, by name
    Raises ConfigurationError; see `read_configuration`.
    """
    return read_configuration({"data": directory, **given}).settings


@asynccontextmanager
async def open_memory(
    settings: Settings,
    *,
    exclusive: bool = True,
    clock: Clock | None = None,
    unfinished: bool = False,
    keys: MasterKeys | None = None,
) -> AsyncIterator[SharedServices]:
    """Opens a store and its services, and closes the store at the end.

    exclusive: whether this process is the server of the store; see `SqliteStore.open`
    clock: by default the system clock
    unfinished: whether this is the restore that has not finished the store. Then erasures are not
        recorded in the suppression ledger.
    keys: the key-encryption keys; by default those of the settings
    Raises StoreLockedError, and ConfigurationError if the database or its key is unusable.
    """
    clock = clock or SystemClock()
    ids = IdSource(clock)
    summarizer = _open_summarizer(settings)
    store = await open_store(settings, exclusive=exclusive, unfinished=unfinished)
    try:
        if keys is None:
            keys = load_keys(settings, may_create=not await store.read(REGISTRY, _has_sealed))
        cipher = EnvelopeCipher(keys, ids)
        keyed = KeyedStore(store, cipher)
        services = SharedServices(
            store=keyed,
            clock=clock,
            ids=ids,
            cipher=cipher,
            settings=settings,
            ledger=None if unfinished else _open_ledger(settings, keys),
            summarizer=summarizer,
        )
        await store.read(REGISTRY, cipher.check_every)
        await chain_logs(keyed, clock)
        await _not_before_the_last_event(store, clock)
        await create_tenant(services, DEFAULT_TENANT)
        if settings.database_url is not None:
            await _agree_on_the_key(services)
        yield services
    finally:
        await store.close()
        if summarizer is not None:
            await summarizer.close()


def weights_for(settings: Settings) -> Weights:
    """The weights of recall; word vectors have a lower weight than a sentence model."""
    weights = DEFAULT_WEIGHTS
    if settings.embedder == "static":
        weights = replace(weights, dense=0.8, code=1.5)
    if settings.dense_weight is not None:
        weights = replace(weights, dense=settings.dense_weight)
    return weights


@asynccontextmanager
async def open_index(settings: Settings, service: SharedServices) -> AsyncIterator[Index]:
    """The search index of a store, with the embedder of the settings.

    Raises ConfigurationError if the embedder cannot be opened.
    """
    embedder = await asyncio.to_thread(
        open_embedder,
        settings.embedder,
        key=settings.embedder_key,
        query_prefix=settings.embedder_query_prefix,
        document_prefix=settings.embedder_document_prefix,
        threads=settings.embedder_threads,
    )
    index = Index(service, embedder, weights_for(settings))
    try:
        yield index
    finally:
        index.close()


def _open_summarizer(settings: Settings) -> ModelSummarizer | None:
    """The model that writes summaries. Raises ConfigurationError."""
    if settings.summary_model is None:
        return None
    # The HTTP client takes time to import, and few stores have a model.
    from memorywall.summaries.model import ModelSummarizer

    return ModelSummarizer(
        settings.summary_model,
        key=settings.summary_model_key,
        timeout=settings.summary_model_timeout,
    )


def _open_ledger(settings: Settings, keys: MasterKeys) -> SuppressionLedger | None:
    if settings.ledger_directory is None:
        return None
    ledger = open_ledger(settings.ledger_directory, keys)
    # A process that cannot write the ledger may read the store; `rotate-master` tells the rest.
    with suppress(OSError):
        ledger.renew_key()
    return ledger


async def open_store(
    settings: Settings, *, exclusive: bool = True, unfinished: bool = False
) -> Store:
    """The store of the settings; see `open_memory`. Raises ConfigurationError and
    StoreLockedError."""
    if settings.database_url is None:
        return SqliteStore.open(
            settings.sqlite_path, exclusive=exclusive, erasure_deadline=settings.erasure_deadline
        )
    _require_driver()
    from memorywall.storage.postgres.store import PostgresStore

    return await PostgresStore.open(
        settings.database_url,
        connections=settings.pool_size,
        deadline=settings.query_timeout,
        unfinished=unfinished,
    )


async def check_health(settings: Settings) -> StoreHealth:
    """The state of the database of the settings, which is not changed, also beside a server.

    Raises ConfigurationError if there is none, or if it cannot be read.
    """
    if settings.database_url is None:
        return await asyncio.to_thread(check_file_health, settings.sqlite_path)
    _require_driver()
    from memorywall.storage.postgres.health import check_health as check_database_health

    return await check_database_health(settings.database_url)


async def is_served(settings: Settings) -> bool:
    """Whether a server uses the store of the settings. Raises ConfigurationError."""
    if settings.database_url is None:
        return is_file_served(settings.sqlite_path)
    _require_driver()
    from memorywall.storage.postgres.health import is_served as is_database_served

    return await is_database_served(settings.database_url)


async def migrate_store(url: str) -> list[str]:
    """Migrates the schema of a PostgreSQL database; returns the names of applied migrations."""
    _require_driver()
    from memorywall.storage.postgres.migrate import migrate

    return await migrate(url)


def _require_driver() -> None:
    """Raises ConfigurationError if the driver of PostgreSQL, an extra, is missing."""
    if find_spec("asyncpg") is None:
        raise ConfigurationError(
            "PostgreSQL needs its driver: pip install '.[postgres]' in a clone of memorywall"
        )


async def _agree_on_the_key(service: SharedServices) -> None:
    """Commits a data key, so that all servers of the store use the key of the first server."""
    with suppress(KeyUnavailableError):
        await service.cipher.prepare(service.store, DEFAULT_TENANT, service.now())
    await service.store.read(REGISTRY, service.cipher.check)


def for_calling_threads(service: SharedServices) -> SharedServices | None:
    """The same service for threads that have no event loop, over a store that does all in the
    calling thread; None where the store cannot. Called on the loop that the store was opened on."""
    store = service.store.unkeyed if isinstance(service.store, KeyedStore) else service.store
    if not isinstance(store, SqliteStore):
        return None
    return replace(service, store=KeyedStore(store.for_calling_threads(), service.cipher))


def open_inspection(settings: Settings) -> ConsistencyReader:
    """A snapshot of a store for `verify`, also beside a running server."""
    if settings.database_url is not None:
        _require_driver()
        from memorywall.storage.postgres.consistency import PostgresConsistencyReader

        return PostgresConsistencyReader(settings.database_url)
    if not settings.sqlite_path.exists():
        raise ConfigurationError(f"there is no database at {settings.sqlite_path}")
    return SqliteConsistencyReader(settings.sqlite_path)


def open_vault(settings: Settings) -> EnvelopeCipher | None:
    """Returns the cipher for the digest keys of `verify`; None without the key-encryption key."""
    if not has_keys(settings):
        return None
    return EnvelopeCipher(load_keys(settings, may_create=False), IdSource(SystemClock()))


async def open_source(settings: Settings) -> CopySource:
    """A snapshot of a whole store as the source of a copy, also beside a running server."""
    if settings.database_url is None:
        return SqliteCopySource.open(settings.sqlite_path)
    _require_driver()
    from memorywall.storage.postgres.transfer import PostgresCopySource

    return await PostgresCopySource.open(settings.database_url)


async def open_target(settings: Settings) -> CopyTarget:
    """The target of a copy, which no server may use. Raises StoreLockedError and
    ConfigurationError."""
    if settings.database_url is None:
        return SqliteCopyTarget.open(settings.sqlite_path)
    _require_driver()
    from memorywall.storage.postgres.transfer import PostgresCopyTarget

    return await PostgresCopyTarget.open(settings.database_url)


async def open_restore_target(
    settings: Settings, complete: Callable[[Settings], Awaitable[None]]
) -> CopyTarget:
    """The target of a restore: a new database, which no server opens before it is complete.

    complete: is called with the settings that open the copied store, as `unfinished`
    Raises StoreLockedError and ConfigurationError.
    """
    if settings.database_url is not None:
        _require_driver()
        from memorywall.storage.postgres.restore import PostgresRestoredDatabase

        database = await PostgresRestoredDatabase.open(settings.database_url)
        database.complete = lambda: complete(settings)
        return database
    settings.sqlite_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = SqliteRestoredDatabase.create(settings.sqlite_path)
    target.complete = lambda draft: complete(replace(settings, sqlite_path=draft))
    return target


async def create_backup(file: Path, origin: BackupOrigin) -> CopyTarget:
    """A new backup file, as the target of a copy."""
    backup = SqliteBackup.create(file)
    backup.origin = origin
    return backup


async def open_backup(file: Path, *, without_checksums: bool = False) -> BackupSource:
    """A backup file whose checksums match, as the source of a copy.

    without_checksums: whether a backup that has no checksums is accepted; default: false
    Raises BackupDamagedError and ConfigurationError.
    """
    return read_backup(file, without_checksums=without_checksums)


def open_backup_inspection(file: Path, *, without_checksums: bool = False) -> SqliteBackupReader:
    """A backup file whose checksums match, for `verify`; see `open_backup`."""
    return SqliteBackupReader.open(file, without_checksums=without_checksums)


async def _has_sealed(transaction: Transaction) -> bool:
    return await transaction.data_keys.any() is not None


async def _not_before_the_last_event(store: Store, clock: Clock) -> None:
    """Sets the clock to at least the instant of the last event, if the machine's clock was set
    back."""

    async def names(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    for tenant in await store.read(REGISTRY, names):

        async def script(transaction: Transaction, tenant: str = tenant) -> Event | None:
            return await transaction.events.latest()

        event = await store.read(tenant, script)
        if event is not None:
            # One later, because the last id of that millisecond is unknown.
            clock.not_before(instant_to_milliseconds(event.timestamp) + 1)


class LocalAuthenticator:
    """Authenticates requests to a store in this process, which need no key.

    X-Agent-ID names the agent, as for a key with `act_as`.
    """

    issuers: tuple[str, ...] = ()

    def __init__(self, tenant: str, agent: str) -> None:
        self._principal = Principal(
            tenant=tenant,
            id=agent,
            kind=PrincipalKind.AGENT,
            permissions=frozenset(Permission),
        )

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        speaking = impersonate(self._principal, agent)
        return replace(speaking, acting="")
