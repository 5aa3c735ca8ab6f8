"""API keys, for administrators of the tenant."""

from __future__ import annotations

from collections.abc import Iterable

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
from memorywall.records.principal import ApiKey, Permission
from memorywall.service.access.key_records import (
    KeyRotation,
    NewKey,
    add_key,
    check_expiry,
    replace_key,
)
from memorywall.service.access.known_names import known_agent
from memorywall.service.access.targets import owner_target
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.keys import (
    KeyListResponse,
    KeyRequest,
    KeyResponse,
    KeyRotationRequest,
    NewKeyResponse,
    RotatedKeyResponse,
    key_view,
    new_key_view,
    rotated_key_view,
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
    subjects=lambda asked: tuple(asked.users),
    namespaces=lambda asked: tuple(asked.namespaces),
)


@operation("create_key")
async def create_key(context: OperationContext, call: OperationCall) -> NewKeyResponse:
    """Creates a key. Raises MemoryAccessError for a key that would allow more than that of the
    caller, or for longer, ValidationError."""
    _authorize(context)
    asked: KeyRequest = call.body
    expires_at = check_expiry(context, asked.expires_at)
    owner = await known_agent(context, "agent", asked.agent_id)
    _check_creation(context, owner, asked.permissions, expires_at)
    try:
        return new_key_view(*await add_key(context, _wanted(asked, expires_at=expires_at)))
    except ConfigurationError:
        raise ValidationError("`kind` is not the kind of this principal") from None


_rotation = copier(KeyRotationRequest, KeyRotation, subject="user")


@operation("rotate_key")
async def rotate_key(context: OperationContext, call: OperationCall) -> RotatedKeyResponse:
    """Replaces a key. Raises MemoryAccessError for a key that the caller may not create,
    ResourceNotFoundError, ResourceConflictError, ValidationError."""
    _authorize(context)
    rotation = _rotation(call.body)
    key = await _find(context, call.path["prefix"])
    expires_at = check_expiry(context, rotation.expires_at) or key.expires_at
    _check_creation(context, key.principal, key.permissions, expires_at)
    text, successor = await replace_key(context, key, rotation)
    return rotated_key_view(text, successor, await _find(context, key.prefix))


@operation("revoke_key")
async def revoke_key(context: OperationContext, call: OperationCall) -> KeyResponse:
    """Revokes a key; a repeat changes nothing. Raises ResourceNotFoundError."""
    _authorize(context)
    key = await _find(context, call.path["prefix"])
    await context.transaction.identities.revoke_key(key.prefix, context.now)
    return key_view(await _find(context, key.prefix))


async def _find(context: OperationContext, prefix: str) -> ApiKey:
    key = await context.transaction.identities.find_key(prefix)
    if key is None or key.tenant != context.tenant:
        raise ResourceNotFoundError("there is no key with this prefix; see `list_keys`")
    return key


def _check_creation(
    context: OperationContext,
    agent: str,
    permissions: Iterable[Permission],
    expires_at: str | None,
) -> None:
    """Raises MemoryAccessError for a key that the caller may not create."""
    decision = decide_new_key(context.principal, agent, permissions, expires_at)
    if not decision.allowed:
        raise MemoryAccessError(f"not allowed to create this key: {decision.reason}")


def _authorize(context: OperationContext) -> None:
    context.authorize(Verb.ADMINISTER, owner_target(context.tenant, ""))
