"""The shared services of one open store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from memorywall.records.clock import Clock, format_instant
from memorywall.records.entry import Entry
from memorywall.records.identifiers import IdSource
from memorywall.service.encryption.cipher import EnvelopeCipher
from memorywall.service.requests.job_runs import JobRuns
from memorywall.service.requests.query_notes import QueryNotes
from memorywall.service.requests.request_statistics import (
    ContextTokens,
    FullTiers,
    LoopStatistics,
    RefusalCounter,
    RequestStatistics,
    VerdictCounter,
)
from memorywall.service.requests.run_secrets import RunSecrets
from memorywall.service.requests.running_writes import RunningWrites
from memorywall.service.requests.schema_cache import SchemaCache
from memorywall.service.requests.storage_room import StorageRoom
from memorywall.service.requests.tenant_tiers import TenantTierCache
from memorywall.service.requests.usage_tracker import UsageTracker
from memorywall.settings import Settings
from memorywall.storage.port import Store
from memorywall.storage.rendered_page import RenderedRow
from memorywall.storage.suppression_ledger import SuppressionLedger
from memorywall.summaries.source import Summarizer


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedServices:
    """The shared services of operations; one per open store.

    ledger: records erasures; None without a suppression ledger
    summarizer: the model that writes summaries of sessions; None without one
    feeds: the open feeds of events by tenant and principal, and by tenant and ""
    indexes: the open search indexes, of which this layer does not know the type
    log_readers: the readers of logs by tenant and event loop, see `service/feeds`
    """

    store: Store
    clock: Clock
    ids: IdSource
    cipher: EnvelopeCipher
    settings: Settings
    ledger: SuppressionLedger | None = None
    summarizer: Summarizer | None = None
    usage_tracker: UsageTracker = field(default_factory=UsageTracker)
    refusals: RefusalCounter = field(default_factory=RefusalCounter)
    full_tiers: FullTiers = field(default_factory=FullTiers)
    verdicts: VerdictCounter = field(default_factory=VerdictCounter)
    room: StorageRoom = field(default_factory=StorageRoom)
    writes: RunningWrites = field(default_factory=RunningWrites)
    query_notes: QueryNotes = field(default_factory=QueryNotes)
    job_runs: JobRuns = field(default_factory=JobRuns)
    requests: RequestStatistics = field(default_factory=RequestStatistics)
    loop: LoopStatistics = field(default_factory=LoopStatistics)
    context_tokens: ContextTokens = field(default_factory=ContextTokens)
    tiers: TenantTierCache = field(default_factory=TenantTierCache)
    schemas: SchemaCache = field(default_factory=SchemaCache)
    secrets: RunSecrets = field(default_factory=RunSecrets)
    feeds: Counter[tuple[str, str]] = field(default_factory=Counter)
    log_readers: dict[Any, Any] = field(default_factory=dict)
    indexes: list[Any] = field(default_factory=list)

    def now(self) -> str:
        """The present instant, in the stored form."""
        return format_instant(self.clock.now())

    def record_access(self, entries: Iterable[Entry], now: str) -> None:
        """Records that these entries were read, where their tiers evict by last access.

        now: an instant in the stored form
        """
        for entry in entries:
            if entry.tier in self.tiers.tracked(entry.tenant):
                self.usage_tracker.record_access(entry, now)

    def record_access_of(self, tenant: str, rows: Iterable[RenderedRow], now: str) -> None:
        """Records the same for entries of a tenant that the store has rendered."""
        tracked = self.tiers.tracked(tenant)
        owner_of = {row[0]: row[2] for row in rows if row[1] in tracked}
        self.usage_tracker.record_access_of(tenant, owner_of, now)
