"""Fencing: only the holder of a live lease can write under the lease.

The runner checks the token of a request at the beginning of each of its writing transactions, by a
statement that locks the lease until the transaction ends. A late write of a former holder is
refused, however late.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from memorywall.records.entry import Entry
from memorywall.records.errors import FencedError
from memorywall.records.lease import LeaseKind
from memorywall.records.tier import Admission
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")
_OVER = "the fencing token belongs to no live lease of this agent; stop, and acquire a new lease"
_TASK = "this task has a lease; send its fencing token as `Fencing-Token`"
_CLAIM = "this key is claimed; send the claim's fencing token as `Fencing-Token`"


def fenced(
    function: Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]], token: int
) -> Callable[Concatenate[OperationContext, Parameters], Awaitable[Result]]:
    """Returns the function preceded by the check of a fencing token, which raises FencedError."""

    async def checked(
        context: OperationContext, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        holder = context.principal.id
        context.lease = await context.transaction.leases.find_held(token, holder, context.now)
        if context.lease is None:
            raise FencedError(_OVER)
        return await function(context, *args, **kwargs)

    return checked


async def guard(context: OperationContext, entry: Entry) -> None:
    """Raises FencedError unless the request may write `entry` with its lease, or without a
    lease."""
    scope = entry.scope
    token = None if context.lease is None else context.lease.token
    admission = TIERS[entry.tier].admission
    if admission is Admission.ASSIGNEE:
        if scope.task_id is not None and scope.intent_id is not None:
            await guard_task(context, scope.intent_id, scope.task_id, token)
    elif admission is Admission.CLAIM_HOLDER:
        claim = await context.transaction.leases.current(
            LeaseKind.CLAIM, entry.namespace, entry.key
        )
        if claim is not None and claim.is_live(context.now) and claim.token != token:
            raise FencedError(_CLAIM)


async def guard_task(
    context: OperationContext, intent_id: str, task_id: str, token: int | None
) -> None:
    """Raises FencedError if the task has a lease and `token` is not its token.

    An expired lease also protects the task, until it is ended or acquired again.

    token: the fencing token of the request, None without one
    """
    lease = await context.transaction.leases.current(LeaseKind.TASK, intent_id, task_id)
    if lease is not None and lease.token != token:
        raise FencedError(_TASK)
