"""Operations on compiled contexts."""

from __future__ import annotations

from functools import partial

from memorywall.records.errors import ResourceNotFoundError
from memorywall.records.feature_errors import (
    ContextBudgetError,
    SessionClosedError,
    SessionQuarantinedError,
)
from memorywall.records.principal import Permission
from memorywall.wire.contexts import (
    ContextOutcomeRequest,
    ContextOutcomeResponse,
    ContextQuery,
    ContextRequest,
    ContextResponse,
)
from memorywall.wire.operation import Operation

_ALL = "/api/v1/context"
_operation = partial(Operation, group="Context", source="memory wall 11.2.2")

CONTEXT_OPERATIONS: tuple[Operation, ...] = (
    _operation(
        name="create_context",
        method="POST",
        path=_ALL,
        summary="Compile the context for the next call of a model, within its window.",
        # A stored context needs `memory.write` as well; the function checks it.
        permission=Permission.READ,
        body=ContextRequest,
        reply=ContextResponse,
        raises=(
            ResourceNotFoundError,
            ContextBudgetError,
            SessionClosedError,
            SessionQuarantinedError,
        ),
        shrink="send fewer `tools`, or a shorter `system` or `user`",
    ),
    _operation(
        name="get_context",
        method="GET",
        path=f"{_ALL}/{{context_id}}",
        summary="Show a compiled context again, with the items that were erased or changed since.",
        permission=Permission.READ,
        query=ContextQuery,
        reply=ContextResponse,
        raises=(ResourceNotFoundError,),
    ),
    _operation(
        name="add_context_outcome",
        method="POST",
        path=f"{_ALL}/{{context_id}}/outcome",
        summary="Record which items of a context an answer used, and the outcome.",
        permission=Permission.WRITE,
        body=ContextOutcomeRequest,
        reply=ContextOutcomeResponse,
        raises=(ResourceNotFoundError,),
    ),
)
