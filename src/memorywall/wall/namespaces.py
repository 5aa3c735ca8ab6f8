"""Namespaces of shared memory and their permissions (RFC-0015 section 2.3)."""

from __future__ import annotations

from collections import Counter

import msgspec

from memorywall.policy.decide import access_to, decide
from memorywall.policy.reach import shared_target
from memorywall.records.decision import Target, Verb
from memorywall.records.errors import (
    MemoryConflictError,
    MemoryNotFoundError,
    ValidationError,
)
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.tiers.shared import AGENT, GLOBAL, PREFIX, is_scope
from memorywall.wall.door import Door, authorize, namespace_targets
from memorywall.wall.entries import founded
from memorywall.wall.fencing import held_lease
from memorywall.wall.limits import check_agent, check_namespace

MOST_GRANTS = 1_000
_NOBODY = "/"
"""No agent can be called so."""


async def list_namespaces(door: Door, principal: Principal) -> list[tuple[Namespace, Access]]:
    """The namespaces the caller may read or administer, by name, with its level in each."""
    now = door.now()

    async def script(transaction: Transaction) -> list[tuple[Namespace, Access]]:
        known = await transaction.namespaces.list_for(principal.tenant, principal.id)
        targets = await namespace_targets(transaction, principal, known, now)
        return [
            (one, access_to(principal, one))
            for one, target in zip(known, targets, strict=True)
            if _is_visible(principal, target)
        ]

    return await door.store.read(principal.tenant, script)


async def get_namespace(door: Door, principal: Principal, name: str) -> tuple[Namespace, Access]:
    """A namespace with its permissions. Raises MemoryNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> tuple[Namespace, Access]:
        namespace = await transaction.namespaces.get(principal.tenant, name)
        if namespace is None:
            raise MemoryNotFoundError("no such namespace")
        (target,) = await namespace_targets(transaction, principal, (namespace,), now)
        if not _is_visible(principal, target):
            authorize(principal, Verb.READ, target)
        return namespace, access_to(principal, namespace)

    return await door.store.read(principal.tenant, script)


async def set_permissions(
    door: Door,
    principal: Principal,
    name: str,
    *,
    default: Access | None,
    allow: list[Grant] | None,
    version: int | None = None,
) -> Script[tuple[Namespace, Access]]:
    """A script that replaces a namespace's default, its grants, or both, and founds a new one.

    It returns the namespace and the caller's level in it.

    Raises, here or when run: ValidationError, MemoryAccessError, MemoryConflictError when
    `version` is given and is not the current one.
    """
    check_namespace(name)
    if name.startswith(PREFIX) and (name.startswith(AGENT) or not is_scope(name)):
        raise ValidationError(
            "this scope has no permissions to set: it is one agent's own, or none"
        )
    if default is None and allow is None:
        raise ValidationError("nothing to change: give `default`, `allow` or both")
    _check_grants(allow or [])
    now = door.now()

    async def script(transaction: Transaction) -> tuple[Namespace, Access]:
        old = await transaction.namespaces.get(principal.tenant, name)
        # The global scope of shared state belongs to nobody, so nobody founds it by narrowing it.
        founder = _NOBODY if name == GLOBAL else ""
        target = shared_target(principal.tenant, old, founder=founder)
        authorize(principal, Verb.ADMINISTER, target)
        await held_lease(transaction, principal, now)
        if version is not None and (old is None or old.version != version):
            raise MemoryConflictError(
                "the namespace has another version now; read it and send the current one",
                current_version=None if old is None else old.version,
            )
        before = old or founded(door, principal, name, now)
        new = msgspec.structs.replace(
            before,
            default=before.default if default is None else default,
            grants=before.grants if allow is None else tuple(allow),
            version=before.version if old is None else before.version + 1,
            updated_at=now,
        )
        await transaction.namespaces.save(new)
        return new, access_to(principal, new)

    return script


def _is_visible(principal: Principal, target: Target) -> bool:
    return (
        decide(principal, Verb.READ, target).allowed
        or decide(principal, Verb.ADMINISTER, target).allowed
    )


def _check_grants(allow: list[Grant]) -> None:
    if len(allow) > MOST_GRANTS:
        raise ValidationError(f"`allow` has {len(allow)} grants, at most {MOST_GRANTS} are allowed")
    for agent, times in Counter(grant.agent for grant in allow).items():
        check_agent("agent", agent)
        if times > 1:
            raise ValidationError("`allow` names an agent twice")
