"""Access lists of intents."""

from __future__ import annotations

from memorywall.coordination import access
from memorywall.coordination.access import AccessList, NewGrant
from memorywall.operations.binding import operation
from memorywall.operations.filters import instant_in_body
from memorywall.records.copier import copier
from memorywall.records.namespace import Access
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.intents import AccessResponse, GrantRequest, GrantResponse, grant_view

_FEW = 16
"""Lists with at most this many entries are replaced in short transactions."""


@operation("get_access")
async def get_access(context: OperationContext, call: OperationCall) -> AccessResponse:
    return _access_view(await access.get_access(context, call.path["intent_id"]))


@operation("set_access", is_long=lambda call: len(call.body.entries) > _FEW)
async def set_access(context: OperationContext, call: OperationCall) -> AccessResponse:
    result = await access.set_access(
        context,
        call.path["intent_id"],
        call.body.default_policy,
        [_new_grant(entry) for entry in call.body.entries],
    )
    return _access_view(result)


@operation("grant_access")
async def grant_access(context: OperationContext, call: OperationCall) -> GrantResponse:
    result = await access.grant(context, call.path["intent_id"], _new_grant(call.body))
    return grant_view(result)


@operation("revoke_access")
async def revoke_access(context: OperationContext, call: OperationCall) -> None:
    await access.revoke(context, call.path["intent_id"], call.path["grant_id"])


_new_grant = copier(
    GrantRequest,
    NewGrant,
    access=lambda entry: Access(entry.permission),
    expires_at=lambda entry: instant_in_body("expires_at", entry.expires_at),
)


def _access_view(found: AccessList) -> AccessResponse:
    return AccessResponse(
        intent_id=found.intent.id,
        default_policy=found.intent.default_policy,
        entries=[grant_view(one) for one in found.grants],
    )
