"""All capabilities as one suite."""

from __future__ import annotations

from memorywall_testing.attachments import AttachmentsConformance
from memorywall_testing.cache_coherence import CacheCoherenceConformance
from memorywall_testing.concurrency import ConcurrencyConformance
from memorywall_testing.conditions import ConditionsConformance
from memorywall_testing.coordinators import CoordinatorsConformance
from memorywall_testing.data_keys import DataKeysConformance
from memorywall_testing.entries import EntriesConformance
from memorywall_testing.event_log import EventLogConformance
from memorywall_testing.events import EventsConformance
from memorywall_testing.eviction import EvictionConformance
from memorywall_testing.fencing import FencingConformance
from memorywall_testing.filters import FiltersConformance
from memorywall_testing.group_commit import GroupCommitConformance
from memorywall_testing.groups import GroupsConformance
from memorywall_testing.idempotency import IdempotencyConformance
from memorywall_testing.identities import IdentitiesConformance
from memorywall_testing.intents import IntentsConformance
from memorywall_testing.leases import LeasesConformance
from memorywall_testing.meaning import (
    EdgesConformance,
    HistoryConformance,
    MeaningConformance,
)
from memorywall_testing.model import ModelConformance
from memorywall_testing.namespaces import NamespacesConformance
from memorywall_testing.parallel_callers import ParallelCallersConformance
from memorywall_testing.read_your_writes import ReadYourWritesConformance
from memorywall_testing.recall_data import RecallConformance
from memorywall_testing.recall_reads import RecallReadsConformance
from memorywall_testing.records import RecordsConformance
from memorywall_testing.scheduled_jobs import ScheduledJobsConformance
from memorywall_testing.search import SearchConformance
from memorywall_testing.segments import SegmentsConformance
from memorywall_testing.sessions import SessionsConformance
from memorywall_testing.tasks import TasksConformance
from memorywall_testing.tenants import TenantsConformance
from memorywall_testing.transactions import TransactionsConformance
from memorywall_testing.usage import UsageConformance
from memorywall_testing.vectors import VectorsConformance


class StoreConformance(
    EntriesConformance,
    FiltersConformance,
    SearchConformance,
    SegmentsConformance,
    UsageConformance,
    EvictionConformance,
    MeaningConformance,
    EdgesConformance,
    HistoryConformance,
    EventsConformance,
    EventLogConformance,
    NamespacesConformance,
    GroupsConformance,
    IdentitiesConformance,
    IdempotencyConformance,
    DataKeysConformance,
    LeasesConformance,
    IntentsConformance,
    TasksConformance,
    ConditionsConformance,
    CoordinatorsConformance,
    AttachmentsConformance,
    ScheduledJobsConformance,
    RecordsConformance,
    SessionsConformance,
    VectorsConformance,
    RecallConformance,
    RecallReadsConformance,
    TransactionsConformance,
    ReadYourWritesConformance,
    CacheCoherenceConformance,
    GroupCommitConformance,
    ParallelCallersConformance,
    ConcurrencyConformance,
    FencingConformance,
    TenantsConformance,
    ModelConformance,
):
    """Everything `storage/port.py` asks of a store. A backend passes all of it."""
