"""The one table of operations: routes, OpenAPI, the reference and the clients follow from it."""

from __future__ import annotations

from memorywall.wire.graph_operations import GRAPH_OPERATIONS
from memorywall.wire.intent_operations import INTENT_OPERATIONS
from memorywall.wire.memory_operations import MEMORY_OPERATIONS
from memorywall.wire.operation import Operation
from memorywall.wire.service_operations import SERVICE_OPERATIONS
from memorywall.wire.work_operations import WORK_OPERATIONS

OPERATIONS: tuple[Operation, ...] = (
    *MEMORY_OPERATIONS,
    *INTENT_OPERATIONS,
    *GRAPH_OPERATIONS,
    *WORK_OPERATIONS,
    *SERVICE_OPERATIONS,
)

__all__ = ["OPERATIONS", "Operation"]
