"""The access rules told a second time, as sentences, and the cases to ask both about."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator

from memorywall.records.clock import format_instant
from memorywall.records.decision import Target, WorkRelations
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.principal import Permission, Principal, PrincipalKind
from tests.support.service import START

NOW = format_instant(START)
EITHER = (False, True)
PERMISSION_SETS = [
    frozenset(subset)
    for size in range(len(Permission) + 1)
    for subset in itertools.combinations(Permission, size)
]
_NEEDS = {
    "read": "memory.read",
    "observe": "memory.read",
    "create": "memory.write",
    "update": "memory.write",
    "delete": "memory.write",
    "administer": "memory.admin",
}
_LEVELS_THAT_ALLOW = {
    "read": {"read", "write", "admin"},
    "create": {"write", "admin"},
    "update": {"write", "admin"},
    "delete": {"write", "admin"},
    "administer": {"admin"},
    "observe": set[str](),
    "maintain": set[str](),
}


# Every case there is, or nearly


def make_principal(permissions: frozenset[Permission], **fields: str) -> Principal:
    """Ada of acme, unless said otherwise."""
    return Principal(
        tenant=fields.get("tenant", "acme"),
        id=fields.get("id", "ada"),
        kind=PrincipalKind(fields.get("kind", "agent")),
        permissions=permissions,
        acting=fields.get("acting", ""),
    )


def make_namespace(
    default: Access,
    own: Access | None,
    other: Access | None,
    tenant: str = "acme",
    name: str = "policies",
) -> Namespace:
    """A namespace with a line for ada, one for grace, or neither."""
    grants = [Grant(agent="grace", access=other)] if other is not None else []
    if own is not None:
        grants.append(Grant(agent="ada", access=own))
    return Namespace(
        tenant=tenant,
        name=name,
        default=default,
        grants=tuple(grants),
        created_at=NOW,
        updated_at=NOW,
    )


def every_namespace() -> Iterator[Namespace | None]:
    """Each default with each line for ada and for grace; None for one that is yet to be founded."""
    yield None
    levels: list[Access | None] = [None, *Access]
    for default, own, other in itertools.product(Access, levels, levels):
        yield make_namespace(default, own, other)


def every_work() -> Iterator[WorkRelations]:
    """All that can be known about what working memory is bound to."""
    holders: list[str | None] = [None, "ada", "grace", "Ada"]
    for assigned in holders:
        for facts in itertools.product(EITHER, repeat=5):
            is_over, coordinates, inherits, granted, takes_part = facts
            yield WorkRelations(
                is_terminal=is_over,
                assigned=assigned,
                coordinates=coordinates,
                inherits=inherits,
                granted=granted,
                takes_part=takes_part,
            )


BINDINGS: list[WorkRelations | None] = [None, *every_work()]


# The rules, told once more


def _own_memory(verb: str, work: WorkRelations | None) -> bool:
    """What I may do with my own memory, once the key may do it.

    I may always look at it. What is bound to no work I may do anything with. When the work is over
    nobody writes; while a task is somebody's only its agent does; and to begin with something for
    a task that is nobody's, or for an intent, I must take part in the intent.
    """
    if verb in ("read", "observe"):
        return True
    if work is None:
        return True
    writes = {"update", "delete"}
    if work.takes_part or work.assigned == "ada":
        writes.add("create")
    mine_or_nobodys = work.assigned in (None, "ada")
    return verb in writes and mine_or_nobodys and not work.is_terminal


def _another_agents_memory(verb: str, work: WorkRelations | None, coordinated: bool) -> bool:
    """What I may do with another agent's: read it at most. Its past I may read as a coordinator
    of what it has taken up; what it works with, while the work lasts, for one of four reasons."""
    reasons = {coordinated}
    if work is not None and not work.is_terminal:
        reasons |= {work.coordinates, work.inherits, work.granted, work.assigned == "ada"}
    return verb == "read" and True in reasons


def behind_an_agents_wall(
    verb: str,
    permissions: Container[str],
    owner: str,
    work: WorkRelations | None,
    coordinated: bool,
) -> bool:
    """The limits of agents are set by who administers the tenant and by nobody else. For all else
    the key must have its permission. No key maintains the tenant: the server does."""
    if verb == "maintain":
        return False
    if verb == "administer":
        return "tenant.admin" in permissions
    if _NEEDS[verb] not in permissions:
        return False
    if owner == "ada":
        return _own_memory(verb, work)
    return _another_agents_memory(verb, work, coordinated)


def behind_a_namespaces_wall(verb: str, permissions: Container[str], target: Target) -> bool:
    """Whoever administers the tenant may administer its namespaces. Everyone else, and for
    everything else, needs the permission of the key; then guardrails may keep it from all but
    administering, and a namespace is open to those it names, at the level it names them with, and
    to all others at its default. What does not exist yet can be founded, by whom it is meant for.
    No key maintains a namespace.
    """
    if verb == "maintain":
        return False
    if verb == "administer" and "tenant.admin" in permissions:
        return True
    if _NEEDS[verb] not in permissions or (target.denied and verb != "administer"):
        return False
    if target.namespace is None:
        founds = not target.creator or target.creator == "ada"
        return founds and verb in ("create", "administer")
    named = [grant.access.value for grant in target.namespace.grants if grant.agent == "ada"]
    level = named[0] if named else target.namespace.default.value
    return level in _LEVELS_THAT_ALLOW[verb]


def in_an_intent(verb: str, permissions: Container[str], level: str) -> bool:
    """To look takes `memory.read` and any part in it; to write, `memory.write` and a writer's
    part; to administer it, `memory.write` too, and an administrator's part."""
    looks = verb in ("read", "observe")
    # No part in an intent is a part in maintenance: `_LEVELS_THAT_ALLOW` names no level for it.
    if ("memory.read" if looks else "memory.write") not in permissions:
        return False
    return level in _LEVELS_THAT_ALLOW["read" if looks else verb]
