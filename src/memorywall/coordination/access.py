"""Authorized access to intents, and access lists (RFC-0011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from memorywall.records.decision import Target, Verb
from memorywall.records.errors import ResourceNotFoundError, ValidationError
from memorywall.records.event import WorkEventType
from memorywall.records.group import is_group
from memorywall.records.intent import DefaultPolicy, Intent, IntentGrant
from memorywall.records.lease import Lease
from memorywall.records.namespace import Access
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation
from memorywall.service.access.authorization_facts import intent_target
from memorywall.service.access.groups import check_groups
from memorywall.service.access.known_names import known_grantee
from memorywall.service.entries.record_writes import replace_record
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.operation_context import OperationContext

MOST_GRANTS = 1_000
_GROUP = "group"
_TYPES = ("agent", "user", "service", _GROUP)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessList:
    """The access list of an intent."""

    intent: Intent
    grants: list[IntentGrant]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewGrant:
    """A new entry of an access list."""

    principal_id: str
    principal_type: str
    access: Access
    reason: str | None
    expires_at: str | None


async def load_authorized_intent(
    context: OperationContext, verb: Verb, intent_id: str
) -> tuple[Intent, Target]:
    """The intent, if the principal may do `verb` to it.

    Raises ResourceNotFoundError, MemoryAccessError.
    """
    intent = await context.transaction.intents.get(intent_id)
    if intent is None:
        raise ResourceNotFoundError("there is no such intent")
    target = await intent_target(context, intent)
    context.authorize(verb, target)
    return intent, target


async def is_allowed(context: OperationContext, verb: Verb, intent: Intent) -> bool:
    """Whether the principal may do `verb` to an intent, for lists that omit others."""
    target = await intent_target(context, intent)
    return context.allows(verb, target)


async def check_readable(context: OperationContext, intent_id: str | None = None) -> object:
    """Raises MemoryAccessError unless the principal may still read the intent that a repeated
    request wrote to. It may use another key now, or may have lost access to the intent.

    intent_id: None for an intent that the principal has created
    """
    await check_writer(context)
    if intent_id is None:
        return None
    return await load_authorized_intent(context, Verb.READ, intent_id)


def anywhere(principal: Principal) -> Target:
    """A target with full access for the principal, so that a decision about it depends only on the
    permissions of the key."""
    return Target(tenant=principal.tenant, isolation=Isolation.INTENT, level=Access.ADMIN)


async def check_writer(context: OperationContext) -> Lease | None:
    """The lease of the request's fencing token, None without a token. For writes that do not
    depend on access to an intent.

    Raises MemoryAccessError for a key without `memory.write`.
    """
    context.authorize(Verb.UPDATE, anywhere(context.principal))
    return context.lease


async def get_access(context: OperationContext, intent_id: str) -> AccessList:
    """The access list of an intent that the caller may read."""
    intent, _ = await load_authorized_intent(context, Verb.READ, intent_id)
    grants = await context.transaction.intents.grants(intent_id)
    return AccessList(intent=intent, grants=grants)


async def set_access(
    context: OperationContext,
    intent_id: str,
    default_policy: DefaultPolicy,
    entries: Sequence[NewGrant],
) -> AccessList:
    """Replaces the whole access list. Raises ValidationError, ResourceNotFoundError,
    MemoryAccessError."""
    if len(entries) > MOST_GRANTS:
        raise ValidationError(f"`entries` may have at most {MOST_GRANTS} elements")
    entries = [await _checked(context, one) for one in entries]
    intent, _ = await load_authorized_intent(context, Verb.ADMINISTER, intent_id)
    before = await context.transaction.intents.grants(intent_id)
    known = {one.principal_id for one in before}
    new = [one.principal_id for one in entries if one.principal_id not in known]
    await check_groups(context, new)
    for old in before:
        await _remove(context, old)
    changed = msgspec.structs.replace(intent, default_policy=default_policy)
    await replace_record(context, changed)
    grants = [await _add(context, intent_id, entry) for entry in entries]
    return AccessList(intent=changed, grants=grants)


async def grant(context: OperationContext, intent_id: str, entry: NewGrant) -> IntentGrant:
    """Adds an entry to the access list. Raises like `set_access`."""
    entry = await _checked(context, entry)
    await load_authorized_intent(context, Verb.ADMINISTER, intent_id)
    await check_groups(context, (entry.principal_id,))
    if len(await context.transaction.intents.grants(intent_id)) >= MOST_GRANTS:
        raise ValidationError(f"an access list may have at most {MOST_GRANTS} entries")
    return await _add(context, intent_id, entry)


async def revoke(context: OperationContext, intent_id: str, grant_id: str) -> None:
    """Removes an entry from the access list. Raises ResourceNotFoundError, MemoryAccessError."""
    await load_authorized_intent(context, Verb.ADMINISTER, intent_id)
    for one in await context.transaction.intents.grants(intent_id):
        if one.id == grant_id:
            await _remove(context, one)
            return
    raise ResourceNotFoundError("the access list has no such entry")


async def _checked(context: OperationContext, entry: NewGrant) -> NewGrant:
    """Returns an entry with its principal in the form in which it is known. Raises
    ValidationError."""
    principal = await known_grantee(context, "principal_id", entry.principal_id)
    if entry.principal_type not in _TYPES or (
        entry.principal_type == _GROUP and not is_group(entry.principal_id)
    ):
        raise ValidationError(
            "`principal_type` must be agent, user or service, or group for a group"
        )
    if entry.access is Access.NONE:
        raise ValidationError("`permission` must be read, write or admin")
    return replace(entry, principal_id=principal)


async def _add(context: OperationContext, intent_id: str, entry: NewGrant) -> IntentGrant:
    made = IntentGrant(
        tenant=context.tenant,
        intent_id=intent_id,
        id=context.service.ids.next("acl"),
        principal_id=entry.principal_id,
        principal_type=_GROUP if is_group(entry.principal_id) else entry.principal_type,
        access=entry.access,
        granted_by=context.principal.id,
        granted_at=context.now,
        expires_at=entry.expires_at,
        reason=entry.reason,
    )
    await context.transaction.intents.add_grant(made)
    await _record(context, WorkEventType.ACCESS_GRANTED, made)
    return made


async def _remove(context: OperationContext, old: IntentGrant) -> None:
    await context.transaction.intents.remove_grant(old.intent_id, old.id)
    await _record(context, WorkEventType.ACCESS_REVOKED, old)


async def _record(context: OperationContext, kind: WorkEventType, line: IntentGrant) -> None:
    await append_work_event(
        context,
        kind,
        intent_id=line.intent_id,
        data={"id": line.id, "principal_id": line.principal_id, "permission": line.access},
    )
