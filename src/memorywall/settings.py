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
STORE_ENVIRONMENT = "MEMORYWALL_STORE"
DEFAULT_TENANT = "default"
DEFAULT_PORT = 7377
EPISODIC_CAPACITY = 1_000
WORKING_CAPACITY_PER_TASK = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a memorywall process runs with.

    database: the SQLite file; its key-encryption key and its lock lie beside it
    store: the URL of a PostgreSQL database instead; the key still lies where `database` says
    store_connections: how many connections to PostgreSQL one process opens at most
    store_deadline: seconds after which a request that PostgreSQL has not answered ends with 503
    key: the key-encryption key, 32 bytes as base64, instead of the file
    sweep_interval: seconds between two sweeps of expired entries
    erase_within: seconds until the bytes of something deleted have left the files of SQLite
    idempotency_lifetime: how long the reply to an Idempotency-Key is kept
    namespace_default: what a new namespace allows everyone in its tenant
    attachment_limit: bytes an attachment may have
    embedder: what turns texts into vectors for recall; see `recall.embedders.FORMS`
    embedder_key: what an embedder asks for that is a service
    embedder_threads: how many cores one text may be embedded with
    recall_dense: how much meaning counts where words count 1; None for what suits the embedder
    recall_memory: bytes of entries that are held to search in, besides those being searched
    recall_author_field, recall_date_field: the fields of a value that say who said it, and when
    """

    database: Path
    store: str | None = field(default=None, repr=False)
    store_connections: int = 10
    store_deadline: float = 10.0
    key: str | None = field(default=None, repr=False)
    episodic_capacity: int = EPISODIC_CAPACITY
    working_capacity_per_task: int = WORKING_CAPACITY_PER_TASK
    sweep_interval: float = 60.0
    erase_within: float = 20.0
    idempotency_lifetime: timedelta = timedelta(hours=24)
    namespace_default: str = "read"
    attachment_limit: int = 16 * 1024 * 1024
    embedder: str = "none"
    embedder_key: str | None = field(default=None, repr=False)
    embedder_threads: int = 1
    recall_dense: float | None = None
    recall_memory: int = 512 * 1024 * 1024
    recall_author_field: str = "author"
    recall_date_field: str = "date"

    @property
    def key_file(self) -> Path:
        """Where the key-encryption key is kept when the environment does not give it."""
        return self.database.with_name(self.database.name + ".key")
