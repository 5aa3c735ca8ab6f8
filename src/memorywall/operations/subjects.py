"""Erasure of a person (`POST /api/v1/subjects/{subject}/forget`)."""

from __future__ import annotations

from memorywall.operations.binding import session_operation
from memorywall.records.decision import Verb
from memorywall.service.operation_context import OperationContext
from memorywall.service.runner import OperationSession
from memorywall.service.subject_erasure import Step, SubjectErasure, erase_subject
from memorywall.service.targets import owner_target
from memorywall.wire.kinds import ForgetResponse


@session_operation("forget_subject")
async def forget_subject(session: OperationSession) -> ForgetResponse:
    tenant = session.principal.tenant

    async def run(step: Step) -> SubjectErasure:
        async def authorized(context: OperationContext) -> SubjectErasure:
            context.authorize(Verb.ADMINISTER, owner_target(tenant, ""))
            return await step(context)

        return await session.write_long(authorized)

    gone = await erase_subject(session.service, tenant, session.call.path["subject"], run)
    return ForgetResponse(
        entries=dict(gone.entries),
        derived=gone.derived,
        namespaces=gone.namespaces,
        api_keys=gone.api_keys,
        receipt=None if gone.receipt is None else f"evt_{gone.receipt}",
        subject_digest=gone.digest,
        erased=gone.erased,
        in_ledger=gone.in_ledger,
    )
