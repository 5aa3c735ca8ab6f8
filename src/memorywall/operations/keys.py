"""API keys, for administrators of the tenant."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.policy.decide import decide_new_key
from memorywall.records.copier import copier
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    ConfigurationError,
    MemoryAccessError,
    ResourceNotFoundError,
    ValidationError,
)
from memorywall.service.access.key_records import NewKey, add_key, check_expiry
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.keys import (
    KeyListResponse,
    KeyRequest,
    KeyResponse,
    NewKeyResponse,
    key_view,
    new_key_view,
)


@operation("list_keys")
async def list_keys(context: OperationContext, call: OperationCall) -> KeyListResponse:
    _authorize(context)
    keys = await context.transaction.identities.keys(context.tenant)
    return KeyListResponse(keys=await context.build(key_view, keys))


_wanted = copier(
    KeyRequest,
    NewKey,
    given=["expires_at"],
    principal="agent_id",
    permissions=lambda asked: frozenset(asked.permissions),
    subjects=lambda asked: tuple(asked.subjects),
    namespaces=lambda asked: tuple(asked.namespaces),
)


@operation("create_key")
async def create_key(context: OperationContext, call: OperationCall) -> NewKeyResponse:
    """Creates a key. Raises MemoryAccessError for a key that would allow more than that of the
    caller, or for longer, ValidationError."""
    _authorize(context)
    asked: KeyRequest = call.body
    expires_at = check_expiry(context, asked.expires_at)
    decision = decide_new_key(context.principal, asked.agent_id, asked.permissions, expires_at)
    if not decision.allowed:
        raise MemoryAccessError(f"not allowed to create this key: {decision.reason}")
    try:
        return new_key_view(*await add_key(context, _wanted(asked, expires_at=expires_at)))
    except ConfigurationError:
        raise ValidationError("`kind` is not the kind of this principal") from None


@operation("revoke_key")
async def revoke_key(context: OperationContext, call: OperationCall) -> KeyResponse:
    """Revokes a key; a repeat changes nothing. Raises ResourceNotFoundError."""
    _authorize(context)
    identities, prefix = context.transaction.identities, call.path["prefix"]
    key = await identities.find_key(prefix)
    if key is None or key.tenant != context.tenant:
        raise ResourceNotFoundError("there is no key with this prefix; see `list_keys`")
    await identities.revoke_key(prefix, context.now)
    revoked = await identities.find_key(prefix)
    return key_view(revoked or key)


def _authorize(context: OperationContext) -> None:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, ""))
