"""The access rules, all of them, as one pure function. Default deny."""

from __future__ import annotations

from memorywall.records.decision import Decision, Target, Verb
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
_FOREIGN = Decision(False, "it belongs to another tenant", hidden=True)
_UNPERMITTED = {
    permission: Decision(False, f"the key lacks the permission {permission}")
    for permission in Permission
}
_OWNER = Decision(True, "the owner")
_NOT_OWNER = Decision(False, "this memory belongs to another agent")
_TENANT_ADMIN = Decision(True, "an administrator of the tenant")
_FOUNDER = Decision(True, "the first to write to this namespace")
_GRANTED = Decision(True, "the namespace allows it")
_NO_NAMESPACE = Decision(False, "the namespace does not exist")
_NOT_GRANTED = Decision(False, "the namespace does not allow it")


def decide(principal: Principal, verb: Verb, target: Target) -> Decision:
    """Whether `principal` may do `verb` to `target`, and why.

    A permission and the tier's rule must both hold (RFC-0015 section 6.4): the permission is the
    key's, the rule is ownership behind an agent's wall (2.1, 2.2, 9.1) and the namespace's
    permissions behind a namespace's wall (2.3). An administrator of the tenant may administer any
    of its namespaces and read none of its agents' memory.
    """
    if principal.tenant != target.tenant:
        return _FOREIGN
    administers = verb is Verb.ADMINISTER and Permission.TENANT_ADMIN in principal.permissions
    if administers and target.isolation is Isolation.NAMESPACE:
        return _TENANT_ADMIN
    needed = _PERMISSION[verb]
    if needed not in principal.permissions:
        return _UNPERMITTED[needed]
    if target.isolation is Isolation.AGENT:
        return _OWNER if target.owner == principal.id else _NOT_OWNER
    return _decide_in_namespace(principal, verb, target.namespace)


def _decide_in_namespace(principal: Principal, verb: Verb, namespace: Namespace | None) -> Decision:
    needed = _NAMESPACE_ACCESS.get(verb)
    if needed is None:
        return _NOT_GRANTED
    if namespace is None:
        # Nobody is shut out of what does not exist: its first writer founds it and administers it.
        return _FOUNDER if verb in (Verb.CREATE, Verb.ADMINISTER) else _NO_NAMESPACE
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
