"""The access rules, all of them, as one pure function. Default deny."""

from __future__ import annotations

from memorywall.records.decision import Decision, Target, Verb, Work
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Permission, Principal
from memorywall.records.tier import Isolation

_PERMISSION = {
    Verb.READ: Permission.READ,
    Verb.OBSERVE: Permission.READ,
    Verb.CREATE: Permission.WRITE,
    Verb.UPDATE: Permission.WRITE,
    Verb.DELETE: Permission.WRITE,
    Verb.ADMINISTER: Permission.ADMIN,
}
_NAMESPACE_ACCESS = {
    Verb.READ: Access.READ,
    Verb.CREATE: Access.WRITE,
    Verb.UPDATE: Access.WRITE,
    Verb.DELETE: Access.WRITE,
    Verb.ADMINISTER: Access.ADMIN,
}
_LEVEL = {
    Verb.READ: Access.READ,
    Verb.OBSERVE: Access.READ,
    Verb.CREATE: Access.WRITE,
    Verb.UPDATE: Access.WRITE,
    Verb.DELETE: Access.WRITE,
    Verb.ADMINISTER: Access.ADMIN,
}
_FOREIGN = Decision(False, "it belongs to another tenant", hidden=True)
_UNPERMITTED = {
    permission: Decision(False, f"the key lacks the permission {permission}")
    for permission in Permission
}
_OWNER = Decision(True, "the owner")
_NOT_OWNER = Decision(False, "this memory belongs to another agent")
_REASSIGNED = Decision(False, "the task has been given to another agent; this is read-only now")
_TASK_OVER = Decision(False, "the task is over")
_NO_PART = Decision(False, "the task or intent it is bound to is not this agent's to work on")
_COORDINATOR = Decision(True, "the coordinator of the task")
_SUCCESSOR = Decision(True, "the agent the task is assigned to now")
_HEIR = Decision(True, "the agent of a task that inherits this one's memory")
_NAMED = Decision(True, "the intent's access list")
_TAKES_PART = Decision(True, "the intent lets it")
_NOT_LET_IN = Decision(False, "the intent does not allow it")
_BARRED = Decision(False, "the guardrails of a coordinator bar this namespace")
_NOT_FOUNDER = Decision(False, "this scope belongs to another agent")
_NOT_TENANT_ADMIN = Decision(False, "an agent's limits are for an administrator of the tenant")
_TENANT_ADMIN = Decision(True, "an administrator of the tenant")
_FOUNDER = Decision(True, "the first to write to this namespace")
_GRANTED = Decision(True, "the namespace allows it")
_NO_NAMESPACE = Decision(False, "the namespace does not exist")
_NOT_GRANTED = Decision(False, "the namespace does not allow it")


def decide(principal: Principal, verb: Verb, target: Target) -> Decision:
    """Whether `principal` may do `verb` to `target`, and why.

    A permission and the rule of the wall must both hold (RFC-0015 section 6.4): the permission is
    the key's; the rule is ownership behind an agent's wall, which work can open to read (2.1, 2.2,
    8.1, 9.1), the namespace's permissions behind a namespace's (2.3), and the access list behind an
    intent's (RFC-0011). An administrator of the tenant may administer any of its namespaces and
    the limits of its agents, and read none of their memory.
    """
    if principal.tenant != target.tenant:
        return _FOREIGN
    administers = verb is Verb.ADMINISTER and Permission.TENANT_ADMIN in principal.permissions
    if target.isolation is Isolation.INTENT:
        return _decide_in_intent(principal, verb, target.level)
    if administers:
        return _TENANT_ADMIN
    needed = _PERMISSION[verb]
    if needed not in principal.permissions:
        return _UNPERMITTED[needed]
    if target.isolation is Isolation.NAMESPACE:
        return _decide_in_namespace(principal, verb, target)
    if verb is Verb.ADMINISTER:
        return _NOT_TENANT_ADMIN
    if target.owner == principal.id:
        return _OWNER if target.work is None else _decide_as_owner(principal, verb, target.work)
    return _decide_as_other(principal, verb, target)


def _decide_as_owner(principal: Principal, verb: Verb, work: Work) -> Decision:
    """Memory bound to a task is its owner's to write while the task is the owner's (8.2)."""
    if verb is Verb.READ or verb is Verb.OBSERVE:
        return _OWNER
    if work.is_over:
        return _TASK_OVER
    if work.assigned is not None:
        return _OWNER if work.assigned == principal.id else _REASSIGNED
    if work.takes_part:
        return _OWNER
    return _NO_PART if verb is Verb.CREATE or work.of_task else _OWNER


def _decide_as_other(principal: Principal, verb: Verb, target: Target) -> Decision:
    """Another agent's memory can only ever be read, and only as far as work opens it."""
    if verb is not Verb.READ:
        return _NOT_OWNER
    if target.coordinated:
        return _COORDINATOR
    work = target.work
    if work is None or work.is_over:
        return _NOT_OWNER
    if work.coordinates:
        return _COORDINATOR
    if work.assigned == principal.id:
        return _SUCCESSOR
    if work.inherits:
        return _HEIR
    return _NAMED if work.granted else _NOT_OWNER


def _decide_in_intent(principal: Principal, verb: Verb, level: Access) -> Decision:
    """Reading needs `memory.read`; whatever changes an intent or its tasks `memory.write`."""
    needed = Permission.READ if verb in (Verb.READ, Verb.OBSERVE) else Permission.WRITE
    if needed not in principal.permissions:
        return _UNPERMITTED[needed]
    return _TAKES_PART if level.covers(_LEVEL[verb]) else _NOT_LET_IN


def _decide_in_namespace(principal: Principal, verb: Verb, target: Target) -> Decision:
    needed = _NAMESPACE_ACCESS.get(verb)
    if needed is None:
        return _NOT_GRANTED
    namespace = target.namespace
    if target.barred and verb is not Verb.ADMINISTER:
        return _BARRED
    if namespace is None:
        # Nobody is shut out of what does not exist: its first writer founds it and administers it.
        if verb not in (Verb.CREATE, Verb.ADMINISTER):
            return _NO_NAMESPACE
        return _FOUNDER if target.founder in ("", principal.id) else _NOT_FOUNDER
    return _GRANTED if access_to(principal, namespace).covers(needed) else _NOT_GRANTED


def access_to(principal: Principal, namespace: Namespace) -> Access:
    """The level a principal has in a namespace: its own grant, or the default without one.

    An explicit grant stands instead of the default even where it is the lower one, so that an
    agent can be shut out of a namespace the others may read.
    """
    for grant in namespace.grants:
        if grant.agent == principal.id:
            return grant.access
    return namespace.default
