"""Fencing: only the holder of a live lease can write under the lease.

The runner loads the lease of a request's token at the beginning of each of its transactions, by a
statement that locks the lease until the transaction ends, and commits nothing if there is none. A
late write of a former holder is refused, however late.
"""

from __future__ import annotations

from itertools import product

from memorywall.records.entry import Entry
from memorywall.records.errors import FencedError
from memorywall.records.identifiers import name_forms
from memorywall.records.lease import LeaseKind
from memorywall.records.tier import Admission
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import TIERS

_OVER = "the fencing token belongs to no live lease of this agent; stop, and acquire a new lease"
_TASK = "this task has a lease; send its fencing token as `Fencing-Token`"
_CLAIM = "this key is claimed; send the claim's fencing token as `Fencing-Token`"


async def load_lease(context: OperationContext, token: int) -> None:
    """Gives the context the live lease of a token; none for the token of another or a past
    lease."""
    holder = context.principal.id
    context.lease = await context.transaction.leases.find_held(token, holder, context.now)


def require_lease(context: OperationContext) -> None:
    """Raises FencedError if the request has the token of no live lease."""
    if context.principal.fencing_token is not None and context.lease is None:
        raise FencedError(_OVER)


async def guard(context: OperationContext, entry: Entry) -> None:
    """Raises FencedError unless the request may write `entry` with its lease, or without a
    lease."""
    require_lease(context)
    scope = entry.scope
    admission = TIERS[entry.tier].admission
    if admission is Admission.ASSIGNEE:
        if scope.task_id is not None and scope.intent_id is not None:
            await guard_task(context, scope.intent_id, scope.task_id)
    elif admission is Admission.CLAIM_HOLDER:
        for place, key in product(name_forms(entry.namespace), name_forms(entry.key)):
            claim = await context.transaction.leases.current(LeaseKind.CLAIM, place, key)
            if claim is not None and claim.is_live(context.now) and claim.token != _token(context):
                raise FencedError(_CLAIM)


async def guard_task(context: OperationContext, intent_id: str, task_id: str) -> None:
    """Raises FencedError if the task has a lease that is not that of the request.

    An expired lease also protects the task, until it is ended or acquired again.
    """
    lease = await context.transaction.leases.current(LeaseKind.TASK, intent_id, task_id)
    if lease is not None and lease.token != _token(context):
        raise FencedError(_TASK)


def _token(context: OperationContext) -> int | None:
    return None if context.lease is None else context.lease.token
