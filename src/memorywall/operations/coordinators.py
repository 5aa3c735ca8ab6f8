"""Coordinators of intents."""

from __future__ import annotations

import msgspec

from memorywall.coordination import coordinators
from memorywall.coordination.coordinators import NewCoordinator
from memorywall.operations.binding import operation
from memorywall.operations.filters import instant_in_body
from memorywall.records.coordinator import Guardrails
from memorywall.records.errors import ValidationError
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.work import CoordinatorResponse, coordinator_view, guardrails_from


@operation("appoint_coordinator")
async def appoint_coordinator(
    context: OperationContext, call: OperationCall
) -> CoordinatorResponse:
    body = call.body
    result = await coordinators.appoint(
        context,
        NewCoordinator(
            intent_id=body.intent_id,
            agent_id=body.agent_id,
            guardrails=_guardrails(body.guardrails),
            heartbeat_interval_seconds=body.heartbeat_interval_seconds,
            ends_at=instant_in_body("expires_at", body.expires_at),
            role=body.role,
            coordinator_type=body.coordinator_type,
            supervisor_id=body.supervisor_id,
            metadata=body.metadata,
        ),
    )
    return coordinator_view(result, context.now)


@operation("get_coordinator")
async def get_coordinator(context: OperationContext, call: OperationCall) -> CoordinatorResponse:
    found = await coordinators.get(context, call.path["coordinator_id"])
    return coordinator_view(found, context.now)


@operation("list_coordinators")
async def list_coordinators(
    context: OperationContext, call: OperationCall
) -> list[CoordinatorResponse]:
    found = await coordinators.list_of_intent(context, call.path["intent_id"])
    now = context.now
    views: list[CoordinatorResponse] = [coordinator_view(one, now) for one in found]
    return views


@operation("send_heartbeat")
async def send_heartbeat(context: OperationContext, call: OperationCall) -> CoordinatorResponse:
    result = await coordinators.heartbeat(context, call.path["coordinator_id"])
    return coordinator_view(result, context.now)


@operation("resign_coordinator")
async def resign_coordinator(context: OperationContext, call: OperationCall) -> None:
    await coordinators.resign(context, call.path["coordinator_id"])


def _guardrails(given: dict[str, object] | None) -> Guardrails | None:
    if given is None:
        return None
    try:
        return guardrails_from(given)
    except msgspec.ValidationError:
        raise ValidationError(
            "`guardrails`: the limits must be whole numbers, the namespaces lists of text"
        ) from None
