"""All settings, in one frozen record."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

DATABASE_NAME = "memory.db"
DEFAULT_DATA = "memorywall-data"
EMBEDDER_ENVIRONMENT = "MEMORYWALL_EMBEDDER"
EMBEDDER_KEY_ENVIRONMENT = "MEMORYWALL_EMBEDDER_KEY"
KEY_ENVIRONMENT = "MEMORYWALL_KEY"
LEDGER_ENVIRONMENT = "MEMORYWALL_LEDGER"
STORE_ENVIRONMENT = "MEMORYWALL_STORE"
DEFAULT_TENANT = "default"
DEFAULT_PORT = 7377
EPISODIC_CAPACITY = 1_000
WORKING_CAPACITY_PER_TASK = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of a memorywall process.

    sqlite_path: the SQLite file; the key-encryption key and the lock are files beside it
    database_url: the URL of a PostgreSQL database instead; the key remains beside `sqlite_path`
    pool_size: the most connections to PostgreSQL of one process
    query_timeout: seconds until a request without an answer from PostgreSQL fails with 503
    encryption_key: the key-encryption key, 32 bytes as base64, instead of the file
    ledger: the directory of the suppression ledger; see `ledger_directory` for the default
    episodic_capacity: entries per agent without a capacity of its own
    working_capacity_per_task: entries
    expiry_interval: seconds between two sweeps of expired entries
    erasure_deadline: seconds until deleted bytes are overwritten in the files of SQLite
    idempotency_lifetime: the lifetime of a stored response
    namespace_default: the default level of a new namespace
    attachment_limit: the largest size of an attachment in bytes
    embedder: the embedder of recall; see `recall.embedders.FORMS`
    embedder_key: the API key of an embedding service
    embedder_threads: the number of cores that embed one text
    dense_weight: the weight of meaning, if words have weight 1; None for the embedder's default
    index_cache_bytes: the size of the search index in memory, besides shards in use
    recall_author_field, recall_date_field: the fields of a value with its author and its date
    access_log: whether the server logs each request; the command `serve` does by default
    principal_rate: requests per second of one principal, over a longer time; None for no limit
    tenant_rate: requests per second of one tenant, likewise
    rate_burst: seconds' worth of requests that a principal or tenant may send at once
    tenant_concurrency: requests of one tenant that run at the same time; more wait
    body_limit: bytes of the body of a request, other than a batch or an attachment
    batch_body_limit: bytes of the body of a batch
    client_timeout: seconds that a client may take to send the head of a request, or pause while it
        sends a body or reads a reply
    shutdown_timeout: seconds that a stopping server waits for running requests
    cors_origins: the origins whose pages may call the server from a browser
    tls_cert, tls_key: the PEM files of the server's certificate chain and its private key; None for
        HTTP without TLS
    """

    sqlite_path: Path
    database_url: str | None = field(default=None, repr=False)
    pool_size: int = 10
    query_timeout: float = 10.0
    encryption_key: str | None = field(default=None, repr=False)
    ledger: Path | None = None
    episodic_capacity: int = EPISODIC_CAPACITY
    working_capacity_per_task: int = WORKING_CAPACITY_PER_TASK
    expiry_interval: float = 60.0
    erasure_deadline: float = 20.0
    idempotency_lifetime: timedelta = timedelta(hours=24)
    namespace_default: str = "read"
    attachment_limit: int = 16 * 1024 * 1024
    embedder: str = "none"
    embedder_key: str | None = field(default=None, repr=False)
    embedder_threads: int = 1
    dense_weight: float | None = None
    index_cache_bytes: int = 512 * 1024 * 1024
    recall_author_field: str = "author"
    recall_date_field: str = "date"
    access_log: bool = False
    principal_rate: float | None = None
    tenant_rate: float | None = None
    rate_burst: float = 2.0
    tenant_concurrency: int = 128
    body_limit: int = 1024 * 1024
    batch_body_limit: int = 16 * 1024 * 1024
    client_timeout: float = 30.0
    shutdown_timeout: float = 10.0
    cors_origins: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def key_file(self) -> Path:
        """Where the key-encryption key is kept when the environment does not give it."""
        return self.sqlite_path.with_name(self.sqlite_path.name + ".key")

    @property
    def ledger_directory(self) -> Path | None:
        """The directory of the suppression ledger: beside the SQLite file if the settings name
        none; None for PostgreSQL, because several servers need one directory that they share."""
        if self.ledger is not None or self.database_url is not None:
            return self.ledger
        return self.sqlite_path.with_name(self.sqlite_path.name + ".ledger")
