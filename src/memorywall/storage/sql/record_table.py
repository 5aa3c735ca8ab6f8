"""The table of declared records. A new record in this table is stored, copied, verified, erased and
tested by the conformance cases on both stores."""

from __future__ import annotations

from typing import Any

from memorywall.records.attachment import Attachment
from memorywall.records.coordinator import Coordinator
from memorywall.records.group import Group, GroupMember
from memorywall.records.intent import Intent, IntentGrant
from memorywall.records.namespace import Namespace
from memorywall.records.query_vector import QueryVector
from memorywall.records.reuse import ReuseHistogram
from memorywall.records.session import SessionCounters
from memorywall.records.task import Task
from memorywall.records.tier import TierLimits
from memorywall.records.value_schema import ValueSchema
from memorywall.storage.sql.record_spec import (
    ColumnType,
    Record,
    RecordColumn,
    RecordIndex,
    RecordParent,
    RecordSpec,
)


def _columns(*names: str) -> tuple[RecordColumn, ...]:
    """Returns text columns. A name that ends in `?` may be NULL."""
    return tuple(
        RecordColumn(name=name.rstrip("?"), required=not name.endswith("?")) for name in names
    )


def _numbers(*names: str, required: bool = True) -> tuple[RecordColumn, ...]:
    """Returns columns of integers."""
    return tuple(
        RecordColumn(name=name, type=ColumnType.INTEGER, required=required) for name in names
    )


_INTENT = RecordParent(noun="intent", table="intents", column="intent_id")
_ENTRY = RecordParent(noun="entry", table="entries", column="entry_id")
_NAMESPACE = RecordParent(noun="namespace", table="namespaces", column="namespace", key="name")

INTENTS = RecordSpec(
    noun="intent",
    table="intents",
    struct=Intent,
    columns=_columns("id", "created_by", "default_policy", "status", "parent_intent_id?"),
    indexes=(
        RecordIndex(name="intents_by_creator", columns=("created_by", "id", "status")),
        RecordIndex(
            name="intents_by_policy", columns=("default_policy", "id", "status"), dialect="sqlite"
        ),
        # A page of intents and their number are read from the indexes alone.
        RecordIndex(
            name="intents_by_policy",
            columns=("default_policy", "id", "status", "created_by"),
            dialect="postgres",
        ),
        RecordIndex(
            name="intents_by_parent",
            columns=("parent_intent_id", "id"),
            where="parent_intent_id IS NOT NULL",
        ),
    ),
    status="status",
    sealed=("state",),
)

INTENT_GRANTS = RecordSpec(
    noun="line of an access list",
    table="intent_grants",
    struct=IntentGrant,
    columns=(
        *_columns("intent_id", "id", "principal_id", "principal_type", "access", "granted_by"),
        *_columns("granted_at", "expires_at?"),
        RecordColumn(name="reason", type=ColumnType.RAW_TEXT, required=False),
    ),
    key=("intent_id", "id"),
    indexes=(
        RecordIndex(name="intent_grants_by_principal", columns=("principal_id", "intent_id", "id")),
    ),
    parents=(_INTENT,),
    has_body=False,
)

_HAS_AGENT = "assigned_agent IS NOT NULL"

TASKS = RecordSpec(
    noun="task",
    table="tasks",
    struct=Task,
    columns=_columns("id", "intent_id", "status", "assigned_agent?"),
    indexes=(
        RecordIndex(name="tasks_by_intent", columns=("intent_id", "id", "status")),
        RecordIndex(
            name="tasks_by_agent", columns=("assigned_agent", "id", "status"), where=_HAS_AGENT
        ),
        RecordIndex(
            name="tasks_open",
            columns=("assigned_agent", "id"),
            where=f"{_HAS_AGENT} AND status NOT IN ('completed', 'failed', 'cancelled', 'skipped')",
        ),
        RecordIndex(
            name="tasks_by_worker", columns=("assigned_agent", "intent_id"), where=_HAS_AGENT
        ),
        RecordIndex(
            name="tasks_unassigned",
            columns=("intent_id", "status", "id"),
            where="assigned_agent IS NULL",
            dialect="sqlite",
        ),
        RecordIndex(
            name="tasks_unassigned",
            columns=("intent_id", "id"),
            where="assigned_agent IS NULL AND status = 'ready'",
            dialect="postgres",
        ),
    ),
    parents=(_INTENT,),
    status="status",
    sealed=("input", "output", "error", "blocked_reason", "metadata", "others"),
)

COORDINATORS = RecordSpec(
    noun="coordinator",
    table="coordinators",
    struct=Coordinator,
    columns=_columns("id", "intent_id"),
    indexes=(RecordIndex(name="coordinators_by_intent", columns=("intent_id", "id")),),
    parents=(_INTENT,),
)

ATTACHMENTS = RecordSpec(
    noun="attachment",
    table="attachments",
    struct=Attachment,
    columns=_columns("id", "intent_id?", "entry_id?"),
    indexes=(
        RecordIndex(
            name="attachments_by_intent",
            columns=("intent_id", "id"),
            where="intent_id IS NOT NULL",
            dialect="sqlite",
        ),
        RecordIndex(name="attachments_by_intent", columns=("intent_id", "id"), dialect="postgres"),
        RecordIndex(
            name="attachments_by_entry",
            columns=("entry_id", "id"),
            where="entry_id IS NOT NULL",
        ),
    ),
    parents=(_INTENT, _ENTRY),
)

NAMESPACES = RecordSpec(
    noun="namespace",
    table="namespaces",
    struct=Namespace,
    columns=(
        *_columns("name"),
        RecordColumn(name="default_access", field="default"),
        RecordColumn(name="version", type=ColumnType.INTEGER),
        *_columns("created_at", "updated_at"),
        RecordColumn(name="last_write_wins", type=ColumnType.INTEGER, required=False),
        *_columns("schemas?", "indexes?"),
    ),
    key=("name",),
    has_body=False,
)

VALUE_SCHEMAS = RecordSpec(
    noun="schema",
    table="value_schemas",
    struct=ValueSchema,
    columns=_columns(
        "namespace", "id", "name", "version", "document", "updated_at", "key_pattern?"
    ),
    key=("namespace", "id"),
    parents=(_NAMESPACE,),
    has_body=False,
)

TIER_LIMITS = RecordSpec(
    noun="limit of a tier",
    table="tier_limits",
    struct=TierLimits,
    columns=(
        *_columns("tier"),
        RecordColumn(name="capacity", type=ColumnType.INTEGER, required=False),
        *_columns("default_ttl?", "eviction?"),
        RecordColumn(name="bytes", type=ColumnType.INTEGER, required=False),
        *_columns("admission?"),
    ),
    key=("tier",),
    has_body=False,
)

GROUPS = RecordSpec(
    noun="group",
    table="principal_groups",
    struct=Group,
    columns=_columns("name", "kind", "created_by", "created_at"),
    key=("name",),
    has_body=False,
)

GROUP_MEMBERS = RecordSpec(
    noun="member of a group",
    table="group_members",
    struct=GroupMember,
    columns=_columns("name", "principal", "added_by", "added_at"),
    key=("name", "principal"),
    indexes=(RecordIndex(name="group_members_by_principal", columns=("principal", "name")),),
    parents=(RecordParent(noun="group", table="principal_groups", column="name", key="name"),),
    has_body=False,
)

SESSION_COUNTERS = RecordSpec(
    noun="counters of a session",
    table="session_counters",
    struct=SessionCounters,
    columns=(
        *_columns("session_id"),
        *_numbers("last_sequence", "turn_count", "token_usage"),
        *_columns("last_activity_at"),
        *_numbers("summarized_through", "summarized_tokens", "checkpoints", "checkpointed_through"),
        *_columns("checkpointed_at"),
        *_numbers("context_tokens", "used_tokens", required=False),
    ),
    key=("session_id",),
    has_body=False,
)

REUSE_HISTOGRAMS = RecordSpec(
    noun="histogram of reuse",
    table="reuse_histograms",
    struct=ReuseHistogram,
    columns=_columns("namespace"),
    key=("namespace",),
)

QUERY_VECTORS = RecordSpec(
    noun="vector of a query",
    table="query_vectors",
    struct=QueryVector,
    columns=_columns("id"),
    sealed=("vector",),
    owner="agent_id",
)

RECORDS: dict[str, RecordSpec[Any]] = {
    spec.table: spec
    for spec in (
        TIER_LIMITS,
        NAMESPACES,
        VALUE_SCHEMAS,
        GROUPS,
        GROUP_MEMBERS,
        SESSION_COUNTERS,
        INTENTS,
        INTENT_GRANTS,
        TASKS,
        COORDINATORS,
        ATTACHMENTS,
        REUSE_HISTOGRAMS,
        QUERY_VECTORS,
    )
}
"""Every declared record by its table, parents before their children."""


def spec_of(record: Record) -> RecordSpec[Record]:
    """Returns the declaration of a record."""
    for spec in RECORDS.values():
        if spec.struct is type(record):
            return spec
    raise LookupError(f"{type(record).__name__} is not declared")
