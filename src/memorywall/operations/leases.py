"""Leases on the scopes of an intent."""

from __future__ import annotations

from memorywall.coordination import intent_leases
from memorywall.operations.binding import operation
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.leases import LeaseListResponse, LeaseResponse, lease_view


@operation("acquire_lease")
async def acquire_lease(context: OperationContext, call: OperationCall) -> LeaseResponse:
    result = await intent_leases.acquire(
        context,
        call.path["intent_id"],
        call.body.scope,
        call.body.duration_seconds,
    )
    return lease_view(result)


@operation("list_leases")
async def list_leases(context: OperationContext, call: OperationCall) -> LeaseListResponse:
    found = await intent_leases.list_leases(context, call.path["intent_id"])
    return LeaseListResponse(leases=[lease_view(one) for one in found])


@operation("renew_lease")
async def renew_lease(context: OperationContext, call: OperationCall) -> LeaseResponse:
    result = await intent_leases.extend(
        context,
        call.path["intent_id"],
        call.path["lease_id"],
        call.body.duration_seconds,
    )
    return lease_view(result)


@operation("release_lease")
async def release_lease(context: OperationContext, call: OperationCall) -> None:
    await intent_leases.release(context, call.path["intent_id"], call.path["lease_id"])
