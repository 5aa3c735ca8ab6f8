"""The operations table: routes, OpenAPI and the reference are made from it, clients are checked."""

from __future__ import annotations

from memorywall.wire.agents import AGENT_OPERATIONS
from memorywall.wire.attachments import ATTACHMENT_OPERATIONS
from memorywall.wire.contexts import CONTEXT_OPERATIONS
from memorywall.wire.coordinators import COORDINATOR_OPERATIONS
from memorywall.wire.episodes import EPISODE_OPERATIONS
from memorywall.wire.erasure import ERASURE_OPERATIONS
from memorywall.wire.facts import FACT_OPERATIONS
from memorywall.wire.graph import GRAPH_OPERATIONS
from memorywall.wire.groups import GROUP_OPERATIONS
from memorywall.wire.intents import INTENT_OPERATIONS
from memorywall.wire.jobs import JOB_OPERATIONS
from memorywall.wire.keys import KEY_OPERATIONS
from memorywall.wire.kinds import KIND_OPERATIONS
from memorywall.wire.leases import CLAIM_OPERATIONS
from memorywall.wire.memory_operations import MEMORY_OPERATIONS
from memorywall.wire.operation import Operation
from memorywall.wire.promotions import PROMOTION_OPERATIONS
from memorywall.wire.quotas import QUOTA_OPERATIONS
from memorywall.wire.service import SERVICE_OPERATIONS
from memorywall.wire.sessions import SESSION_OPERATIONS
from memorywall.wire.tasks import TASK_OPERATIONS
from memorywall.wire.value_schemas import VALUE_SCHEMA_OPERATIONS
from memorywall.wire.working_memory import WORKING_MEMORY_OPERATIONS
from memorywall.wire.worthiness import WORTHINESS_OPERATIONS

OPERATIONS: tuple[Operation, ...] = (
    *MEMORY_OPERATIONS,
    *VALUE_SCHEMA_OPERATIONS,
    *INTENT_OPERATIONS,
    *GRAPH_OPERATIONS,
    *TASK_OPERATIONS,
    *COORDINATOR_OPERATIONS,
    *CLAIM_OPERATIONS,
    *WORKING_MEMORY_OPERATIONS,
    *ATTACHMENT_OPERATIONS,
    *SESSION_OPERATIONS,
    *CONTEXT_OPERATIONS,
    *PROMOTION_OPERATIONS,
    *EPISODE_OPERATIONS,
    *KIND_OPERATIONS,
    *ERASURE_OPERATIONS,
    *QUOTA_OPERATIONS,
    *WORTHINESS_OPERATIONS,
    *FACT_OPERATIONS,
    *GROUP_OPERATIONS,
    *AGENT_OPERATIONS,
    *SERVICE_OPERATIONS,
    *JOB_OPERATIONS,
    *KEY_OPERATIONS,
)

OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS}

__all__ = ["OPERATIONS", "OPERATIONS_BY_NAME", "Operation"]
