"""All capabilities as one suite."""

from __future__ import annotations

from memorywall.testing.attachments import AttachmentsConformance
from memorywall.testing.cache_coherence import CacheCoherenceConformance
from memorywall.testing.concurrency import ConcurrencyConformance
from memorywall.testing.conditions import ConditionsConformance
from memorywall.testing.coordinators import CoordinatorsConformance
from memorywall.testing.data_keys import DataKeysConformance
from memorywall.testing.entries import EntriesConformance
from memorywall.testing.event_log import EventLogConformance
from memorywall.testing.events import EventsConformance
from memorywall.testing.eviction import EvictionConformance
from memorywall.testing.expiry import ExpiryConformance
from memorywall.testing.fencing import FencingConformance
from memorywall.testing.group_commit import GroupCommitConformance
from memorywall.testing.groups import GroupsConformance
from memorywall.testing.idempotency import IdempotencyConformance
from memorywall.testing.identities import IdentitiesConformance
from memorywall.testing.intents import IntentsConformance
from memorywall.testing.leases import LeasesConformance
from memorywall.testing.meaning import (
    EdgesConformance,
    HistoryConformance,
    MeaningConformance,
)
from memorywall.testing.model import ModelConformance
from memorywall.testing.namespaces import NamespacesConformance
from memorywall.testing.parallel_callers import ParallelCallersConformance
from memorywall.testing.read_your_writes import ReadYourWritesConformance
from memorywall.testing.recall import RecallConformance
from memorywall.testing.recall_reads import RecallReadsConformance
from memorywall.testing.records import RecordsConformance
from memorywall.testing.scheduled_jobs import ScheduledJobsConformance
from memorywall.testing.search import SearchConformance
from memorywall.testing.segments import SegmentsConformance
from memorywall.testing.session_visibility import SessionVisibilityConformance
from memorywall.testing.sessions import SessionsConformance
from memorywall.testing.tags import TagsConformance
from memorywall.testing.tasks import TasksConformance
from memorywall.testing.tenants import TenantsConformance
from memorywall.testing.transactions import TransactionsConformance
from memorywall.testing.usage import UsageConformance
from memorywall.testing.vectors import VectorsConformance
from memorywall.testing.visibility import VisibilityConformance


class StoreConformance(
    EntriesConformance,
    SearchConformance,
    SegmentsConformance,
    SessionVisibilityConformance,
    VisibilityConformance,
    TagsConformance,
    UsageConformance,
    EvictionConformance,
    ExpiryConformance,
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
