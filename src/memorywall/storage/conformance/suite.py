"""All capabilities as one suite."""

from __future__ import annotations

from memorywall.storage.conformance.attachments import AttachmentsConformance
from memorywall.storage.conformance.company import CompanyConformance
from memorywall.storage.conformance.concurrency import ConcurrencyConformance
from memorywall.storage.conformance.coordinators import CoordinatorsConformance
from memorywall.storage.conformance.data_keys import DataKeysConformance
from memorywall.storage.conformance.entries import EntriesConformance
from memorywall.storage.conformance.events import EventsConformance
from memorywall.storage.conformance.eviction import EvictionConformance
from memorywall.storage.conformance.expiry import ExpiryConformance
from memorywall.storage.conformance.facts import FactsConformance
from memorywall.storage.conformance.fencing import FencingConformance
from memorywall.storage.conformance.grouping import GroupingConformance
from memorywall.storage.conformance.identities import IdentitiesConformance
from memorywall.storage.conformance.intents import IntentsConformance
from memorywall.storage.conformance.leases import LeasesConformance
from memorywall.storage.conformance.model import ModelConformance
from memorywall.storage.conformance.namespaces import NamespacesConformance
from memorywall.storage.conformance.own_changes import OwnChangesConformance
from memorywall.storage.conformance.reach import ReachConformance
from memorywall.storage.conformance.recall import RecallConformance
from memorywall.storage.conformance.recall_reads import RecallReadsConformance
from memorywall.storage.conformance.replies import RepliesConformance
from memorywall.storage.conformance.search import SearchConformance
from memorywall.storage.conformance.tags import TagsConformance
from memorywall.storage.conformance.tasks import TasksConformance
from memorywall.storage.conformance.tenants import TenantsConformance
from memorywall.storage.conformance.transactions import TransactionsConformance
from memorywall.storage.conformance.usage import UsageConformance
from memorywall.storage.conformance.vectors import VectorsConformance


class StoreConformance(
    EntriesConformance,
    SearchConformance,
    ReachConformance,
    TagsConformance,
    UsageConformance,
    EvictionConformance,
    ExpiryConformance,
    EventsConformance,
    NamespacesConformance,
    IdentitiesConformance,
    RepliesConformance,
    DataKeysConformance,
    LeasesConformance,
    IntentsConformance,
    TasksConformance,
    CoordinatorsConformance,
    AttachmentsConformance,
    VectorsConformance,
    RecallConformance,
    RecallReadsConformance,
    TransactionsConformance,
    OwnChangesConformance,
    FactsConformance,
    GroupingConformance,
    CompanyConformance,
    ConcurrencyConformance,
    FencingConformance,
    TenantsConformance,
    ModelConformance,
):
    """Everything `storage/port.py` asks of a store. A backend passes all of it."""
