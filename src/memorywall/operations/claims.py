"""Claims of keys of shared state."""

from __future__ import annotations

from memorywall.coordination import claims
from memorywall.operations.binding import operation
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.leases import ClaimListResponse, ClaimResponse, claim_view, scope_namespace


@operation("acquire_claim")
async def acquire_claim(context: OperationContext, call: OperationCall) -> ClaimResponse:
    body = call.body
    result = await claims.acquire(
        context,
        scope_namespace(body.scope, call.principal.id),
        body.key,
        body.ttl_seconds,
        body.purpose,
    )
    return claim_view(result)


@operation("list_claims")
async def list_claims(context: OperationContext, call: OperationCall) -> ClaimListResponse:
    asked = call.query
    scope = None if asked.scope is None else scope_namespace(asked.scope, call.principal.id)
    found = await claims.list_claims(context, scope, asked.agent_id)
    return ClaimListResponse(claims=[claim_view(one) for one in found])


@operation("get_claim")
async def get_claim(context: OperationContext, call: OperationCall) -> ClaimResponse:
    return claim_view(await claims.get(context, call.path["claim_id"]))


@operation("renew_claim")
async def renew_claim(context: OperationContext, call: OperationCall) -> ClaimResponse:
    result = await claims.extend(context, call.path["claim_id"], call.body.ttl_seconds)
    return claim_view(result)


@operation("release_claim")
async def release_claim(context: OperationContext, call: OperationCall) -> None:
    await claims.release(context, call.path["claim_id"])
