"""Erasure of people and agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from memorywall.operations.binding import multi_transaction_operation
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.service.access.targets import owner_target
from memorywall.service.erasure.entry_erasure import ErasureReport, StepRunner, forget
from memorywall.service.erasure.subject_erasure import SubjectErasure, erase_subject
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationTransactions
from memorywall.wire.erasure import ForgetAgentResponse, ForgetResponse

Result = TypeVar("Result")


@multi_transaction_operation("forget_subject")
async def forget_subject(transactions: OperationTransactions) -> ForgetResponse:
    call, run = transactions.call, _run_as_administrator(transactions)
    tenant, subject = transactions.principal.tenant, call.path["subject"]
    gone = await erase_subject(transactions.service, tenant, subject, run, patience=call.query.wait)
    return subject_view(gone)


@multi_transaction_operation("forget_agent")
async def forget_agent(transactions: OperationTransactions) -> ForgetAgentResponse:
    call, run = transactions.call, _run_as_administrator(transactions)
    tenant, agent = transactions.principal.tenant, call.path["agent_id"]
    return agent_view(
        await forget(transactions.service, tenant, agent, run, patience=call.query.wait)
    )


subject_view = copier(
    SubjectErasure,
    ForgetResponse,
    entries=lambda gone: dict(gone.entries),
    receipt=lambda gone: None if gone.receipt is None else f"evt_{gone.receipt}",
    subject_digest="digest",
)
"""The wire form of the erasure of a person."""


agent_view = copier(
    ErasureReport,
    ForgetAgentResponse,
    entries=lambda gone: {tier.value: number for tier, number in gone.entries.items() if number},
    stored_replies="kept_replies",
)
"""The wire form of the erasure of an agent."""


def _run_as_administrator(transactions: OperationTransactions) -> StepRunner:
    """Returns a runner for the administrator that sends the request."""
    target = owner_target(transactions.principal.tenant, "")

    async def run(step: Callable[[OperationContext], Awaitable[Result]]) -> Result:
        async def authorized(context: OperationContext) -> Result:
            context.authorize(Verb.ADMINISTER, target)
            return await step(context)

        return await transactions.write_long(authorized)

    return run
