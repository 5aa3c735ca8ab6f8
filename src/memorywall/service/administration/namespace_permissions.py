"""Namespaces of shared memory and their permissions (RFC-0015 section 2.3)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memorywall.policy.decide import access_to
from memorywall.policy.visibility_filter import shared_target
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import MemoryConflictError, ResourceNotFoundError, ValidationError
from memorywall.records.group import is_group
from memorywall.records.identifiers import normalize_name
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.service.access.groups import check_groups, list_namespaces, load_groups
from memorywall.service.access.known_names import known_grantee
from memorywall.service.access.targets import load_namespace_targets, owner_target
from memorywall.service.entries.namespace_entry import new_namespace
from memorywall.service.entries.value_index import declare_paths
from memorywall.service.requests.namespace_names import find_namespaces, namespace_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_namespace
from memorywall.tiers.shared import AGENT, GLOBAL, PREFIX, is_scope

MOST_GRANTS = 1_000
_NOBODY = "/"
"""A name that no agent can have."""


async def list_visible(context: OperationContext) -> list[tuple[Namespace, Access]]:
    """Returns the namespaces that the caller may read or administer, by name, with its level in
    each. Of the stored forms of a name it has the one in NFC, or else any in clear text."""
    context.decide_by_row()
    known = await list_namespaces(context)
    targets = await load_namespace_targets(context, known)

    def access(place: tuple[Namespace, Target]) -> tuple[Namespace, Access] | None:
        one, target = place
        return (one, access_to(context.principal, one)) if _is_visible(context, target) else None

    found = await context.build(access, zip(known, targets, strict=True))
    visible = [one for one in found if one is not None]
    others = set[str]()
    names = (one.name for one, _ in visible)
    for name in sorted(names, key=lambda one: one != normalize_name(one)):
        if name not in others:
            others.update((await namespace_forms(context, name))[1:])
    return [(one, level) for one, level in visible if one.name not in others]


async def get(context: OperationContext, name: str) -> tuple[Namespace, Access]:
    """Returns a namespace with its permissions. Raises ResourceNotFoundError, MemoryAccessError."""
    stored = await find_namespaces(context, name)
    if not stored:
        raise ResourceNotFoundError("there is no namespace of this name")
    namespace = stored[0]
    (target,) = await load_namespace_targets(context, (namespace,))
    if not _is_visible(context, target):
        context.authorize(Verb.READ, target)
    return namespace, access_to(context.principal, namespace)


async def set_permissions(
    context: OperationContext,
    name: str,
    *,
    default: Access | None,
    allow: list[Grant] | None,
    last_write_wins: bool | None = None,
    indexed_paths: list[str] | None = None,
    version: int | None = None,
) -> tuple[Namespace, Access]:
    """Replaces a namespace's default, its grants, its rule for writes and its indexed paths, as far
    as they are given, and creates a new namespace.

    version: the version to replace, 0 for a namespace that must not exist; None for any

    Returns the namespace and the caller's level in it.

    Raises ValidationError, MemoryAccessError, MemoryConflictError if `version` is given and is not
    the current one.
    """
    name = check_administered(name)
    if default is None and allow is None and last_write_wins is None and indexed_paths is None:
        raise ValidationError(
            "nothing to change: give `default`, `allow`, `last_write_wins` or `indexed_paths`"
        )
    if last_write_wins and name.startswith(PREFIX):
        raise ValidationError("shared state is never replaced without a precondition")
    if allow is not None:
        allow = await _checked_grants(context, allow)
    forms = await _authorized(context, name, allow or ())
    old = forms[0] if forms else None
    _authorize_episodic(context, old, allow or [])
    known = {grant.agent for grant in (() if old is None else old.grants)}
    await check_groups(context, [one.agent for one in allow or () if one.agent not in known])
    if version is not None and version != (0 if old is None else old.version):
        raise MemoryConflictError(
            "the namespace has another version now; read it and send the current one",
            current_version=None if old is None else old.version,
        )
    before = old or new_namespace(context, check_namespace(name))
    indexes = before.indexes
    if indexed_paths is not None:
        indexes = await declare_paths(context, before, indexed_paths)
    new = msgspec.structs.replace(
        before,
        indexes=indexes,
        default=before.default if default is None else default,
        grants=before.grants if allow is None else tuple(allow),
        version=before.version if old is None else before.version + 1,
        updated_at=context.now,
        last_write_wins=before.last_write_wins if last_write_wins is None else last_write_wins,
    )
    for one in forms or (new,):
        await context.transaction.namespaces.save(msgspec.structs.replace(new, name=one.name))
    return new, access_to(context.principal, new)


def check_administered(name: str) -> str:
    """A namespace that an administrator may change, in NFC. Raises ValidationError."""
    name = normalize_name(name)
    if name.startswith(PREFIX) and (name.startswith(AGENT) or not is_scope(name)):
        raise ValidationError("this scope has no administrator: it is one agent's own, or none")
    return name


async def load_administered(context: OperationContext, name: str) -> list[Namespace]:
    """Returns a namespace that the caller administers, once for each of its stored forms, or a new
    one, which is not stored. Raises MemoryAccessError."""
    return await _authorized(context, name) or [new_namespace(context, check_namespace(name))]


async def _authorized(
    context: OperationContext, name: str, allow: Iterable[Grant] = ()
) -> list[Namespace]:
    """Returns a stored namespace, once for each of its stored forms, which have the same
    permissions. Raises MemoryAccessError unless the caller administers it, or may create it.

    allow: new grants; the memberships in their groups are loaded
    """
    stored = await find_namespaces(context, name)
    grants = (*(grant for one in stored for grant in one.grants), *allow)
    await load_groups(context, (grant.agent for grant in grants))
    # The global scope of shared state has no creator, so a change of its permissions grants
    # nothing.
    creator = _NOBODY if name == GLOBAL else ""
    for one in stored or (None,):
        target = shared_target(context.tenant, one, name=name, creator=creator)
        context.authorize(Verb.ADMINISTER, target)
    return stored


def _is_visible(context: OperationContext, target: Target) -> bool:
    return context.allows(Verb.READ, target) or context.allows(Verb.ADMINISTER, target)


def _authorize_episodic(
    context: OperationContext, old: Namespace | None, allow: list[Grant]
) -> None:
    """Raises MemoryAccessError if the caller opens episodic memory to a group and does not
    administer the tenant. An administrator of the namespace administers no agent's memory."""
    opened = {grant.agent for grant in (() if old is None else old.grants) if grant.episodic}
    if any(grant.episodic and grant.agent not in opened for grant in allow):
        context.authorize(Verb.ADMINISTER, owner_target(context.tenant, ""))


async def _checked_grants(context: OperationContext, allow: list[Grant]) -> list[Grant]:
    """Returns valid grants with their agents in the form in which they are known. Raises
    ValidationError."""
    if len(allow) > MOST_GRANTS:
        raise ValidationError(f"`allow` has {len(allow)} grants, at most {MOST_GRANTS} are allowed")
    allow = [
        msgspec.structs.replace(one, agent=await known_grantee(context, "agent", one.agent))
        for one in allow
    ]
    if len({grant.agent for grant in allow}) < len(allow):
        raise ValidationError("`allow` names an agent or a group twice")
    for grant in allow:
        if grant.episodic and (not is_group(grant.agent) or grant.access is Access.NONE):
            raise ValidationError("`episodic` is only for a grant of a group with read access")
    return allow
