"""Coordinators of intents."""

from __future__ import annotations

import msgspec

from memorywall.coordination import coordinators
from memorywall.coordination.coordinators import NewCoordinator
from memorywall.operations.binding import operation
from memorywall.operations.filters import instant_in_body
from memorywall.records.coordinator import Guardrails
from memorywall.records.copier import copier
from memorywall.records.errors import ValidationError
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.coordinators import (
    CoordinatorRequest,
    CoordinatorResponse,
    coordinator_view,
    guardrails_from,
)


@operation("appoint_coordinator")
async def appoint_coordinator(
    context: OperationContext, call: OperationCall
) -> CoordinatorResponse:
    result = await coordinators.appoint(
        context,
        _wanted(call.body),
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


def _guardrails(body: CoordinatorRequest) -> Guardrails | None:
    if body.guardrails is None:
        return None
    try:
        return guardrails_from(body.guardrails)
    except msgspec.ValidationError:
        raise ValidationError(
            "`guardrails`: the limits must be whole numbers, the namespaces lists of text"
        ) from None


_wanted = copier(
    CoordinatorRequest,
    NewCoordinator,
    guardrails=_guardrails,
    ends_at=lambda body: instant_in_body("expires_at", body.expires_at),
)
