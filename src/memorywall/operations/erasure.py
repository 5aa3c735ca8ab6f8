"""Erasure of people and agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from memorywall.operations.binding import session_operation
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.service.access.targets import owner_target
from memorywall.service.erasure.entry_erasure import ErasureReport, StepRunner, forget
from memorywall.service.erasure.subject_erasure import SubjectErasure, erase_subject
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import OperationSession
from memorywall.wire.erasure import ForgetAgentResponse, ForgetResponse

Result = TypeVar("Result")


@session_operation("forget_subject")
async def forget_subject(session: OperationSession) -> ForgetResponse:
    call, run = session.call, _run_as_administrator(session)
    tenant, subject = session.principal.tenant, call.path["subject"]
    gone = await erase_subject(session.service, tenant, subject, run, patience=call.query.wait)
    return subject_view(gone)


@session_operation("forget_agent")
async def forget_agent(session: OperationSession) -> ForgetAgentResponse:
    call, run = session.call, _run_as_administrator(session)
    tenant, agent = session.principal.tenant, call.path["agent_id"]
    return agent_view(await forget(session.service, tenant, agent, run, patience=call.query.wait))


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


def _run_as_administrator(session: OperationSession) -> StepRunner:
    """Returns a runner for the administrator that sends the request."""
    target = owner_target(session.principal.tenant, "")

    async def run(step: Callable[[OperationContext], Awaitable[Result]]) -> Result:
        async def authorized(context: OperationContext) -> Result:
            context.authorize(Verb.ADMINISTER, target)
            return await step(context)

        return await session.write_long(authorized)

    return run
