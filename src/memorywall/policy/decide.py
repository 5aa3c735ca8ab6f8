"""All access rules, as one pure function. The default is refusal."""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.records.decision import Decision, Target, Verb, WorkRelations
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Permission, Principal
from memorywall.records.session import SESSION_TIERS, belongs_to
from memorywall.records.tier import Isolation, Tier

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
_ABOUT_OTHERS = Decision(False, "it is about somebody the request is not bound to", hidden=True)
_OUTSIDE = Decision(False, "the key is limited to other namespaces")
_OTHER_SESSION = Decision(False, "it is outside of the session of the request", hidden=True)
_SESSION_READER = Decision(
    False, "it needs the access `append` to the session of the request; the owner gives it"
)
_UNPERMITTED = {
    permission: Decision(False, f"the key lacks the permission {permission}; use a key that has it")
    for permission in Permission
}
_OWNER = Decision(True, "the owner")
_NOT_OWNER = Decision(False, "this memory belongs to another agent")
_REASSIGNED = Decision(False, "the task has been given to another agent; this is read-only now")
_TASK_OVER = Decision(False, "the task is over")
_NO_PART = Decision(False, "this agent does not work on the task or intent of the entry")
_COORDINATOR = Decision(True, "the coordinator of the task")
_SUCCESSOR = Decision(True, "the agent the task is assigned to now")
_INHERITS = Decision(True, "the agent of a task that inherits this one's memory")
_NAMED = Decision(True, "the intent's access list")
_SAME_GROUP = Decision(True, "the namespace opens episodic memory to a group of both agents")
_SAME_SESSION = Decision(True, "a participant of the session")
_TAKES_PART = Decision(True, "allowed by intent access level")
_NO_INTENT_ACCESS = Decision(False, "the intent does not allow it")
_DENIED = Decision(False, "guardrails of a coordinator deny this namespace")
_NOT_CREATOR = Decision(False, "this scope belongs to another agent")
_NOT_TENANT_ADMIN = Decision(
    False,
    "only an administrator of the tenant may; use a key with the permission tenant.admin",
)
_TENANT_ADMIN = Decision(True, "an administrator of the tenant")
_MAINTENANCE = Decision(True, "maintenance by the server")
_NOT_MAINTENANCE = Decision(False, "only the server maintains a tenant, and does nothing else")
_CREATOR = Decision(True, "the first to write to this namespace")
_GRANTED = Decision(True, "the namespace allows it")
_NO_NAMESPACE = Decision(False, "the namespace does not exist")
_NOT_GRANTED = Decision(False, "the namespace does not allow it")


def decide(principal: Principal, verb: Verb, target: Target) -> Decision:
    """Whether `principal` may do `verb` to `target`, and why.

    The key must have the permission, and the rule of the isolation boundary must allow the verb
    (RFC-0015 section 6.4):

    - isolation by agent: ownership, and read access through work (2.1, 2.2, 8.1, 9.1) or a group
    - isolation by namespace: the permissions of the namespace (2.3)
    - isolation by intent: the access list (RFC-0011)

    An administrator of the tenant may administer its namespaces, its groups and the limits of its
    agents, and may not read their memory. A key that is limited to namespaces reaches only memory
    in them. A request inside a session reaches the session and working memory of that session, as
    far as the rules allow it, and no memory of other tiers that belongs to another session.
    """
    if principal.tenant != target.tenant:
        return _FOREIGN
    if principal.subject_forms is not None or principal.session is not None:
        outside = _decide_as_bound(principal, verb, target)
        if outside is not None:
            return outside
    limit = principal.namespaces
    if limit is not None and target.place not in limit and not target.is_filtered:
        return _OUTSIDE
    if principal.maintenance is not None or verb is Verb.MAINTAIN:
        return _decide_as_system(principal, verb, target)
    administers = verb is Verb.ADMINISTER and Permission.TENANT_ADMIN in principal.permissions
    if target.isolation is Isolation.INTENT:
        return _decide_in_intent(principal, verb, target.level)
    if administers:
        return _TENANT_ADMIN
    if verb is Verb.ADMINISTER and target.isolation is Isolation.AGENT:
        return _NOT_TENANT_ADMIN
    needed = _PERMISSION[verb]
    if needed not in principal.permissions:
        return _UNPERMITTED[needed]
    if target.isolation is Isolation.NAMESPACE:
        return _decide_in_namespace(principal, verb, target)
    if target.owner == principal.id:
        return _OWNER if target.work is None else _decide_as_owner(principal, verb, target.work)
    return _decide_as_other(principal, verb, target)


def _decide_as_bound(principal: Principal, verb: Verb, target: Target) -> Decision | None:
    """The refusal of a request that is bound to a subject or to a session; None if the other rules
    decide (memory wall 11.8.2, rule 2)."""
    bound, session = principal.subject_forms, principal.session
    if bound is not None and not set(target.subjects) <= set(bound):
        return _ABOUT_OTHERS
    if session is None:
        return None
    if not belongs_to(session.id, target.tier, target.session):
        return _OTHER_SESSION
    reads = verb is Verb.READ or verb is Verb.OBSERVE
    if not (reads or session.may_append) and target.tier in SESSION_TIERS:
        return _SESSION_READER
    return None


def _decide_as_system(principal: Principal, verb: Verb, target: Target) -> Decision:
    """A system principal may only do its own maintenance."""
    wanted = target.maintenance
    if verb is Verb.MAINTAIN and wanted is not None and principal.maintenance is wanted:
        return _MAINTENANCE
    return _NOT_MAINTENANCE


def _decide_as_owner(principal: Principal, verb: Verb, work: WorkRelations) -> Decision:
    """An owner may write memory of a task only while the task is assigned to it (8.2)."""
    if verb is Verb.READ or verb is Verb.OBSERVE:
        return _OWNER
    if work.is_terminal:
        return _TASK_OVER
    if work.assigned is not None:
        return _OWNER if work.assigned == principal.id else _REASSIGNED
    if work.takes_part:
        return _OWNER
    return _NO_PART if verb is Verb.CREATE or work.of_task else _OWNER


def _decide_as_other(principal: Principal, verb: Verb, target: Target) -> Decision:
    """Another agent's memory can only be read, and only with access through work, a group or a
    session of both agents."""
    if verb is not Verb.READ:
        return _NOT_OWNER
    session = principal.session
    if session is not None and target.tier is Tier.SESSION and target.owner == session.owner:
        return _SAME_SESSION
    if target.coordinated:
        return _COORDINATOR
    if target.namespace is not None and _opens_episodic(principal, target.namespace, target):
        return _SAME_GROUP
    work = target.work
    if work is None or work.is_terminal:
        return _NOT_OWNER
    if work.coordinates:
        return _COORDINATOR
    if work.assigned == principal.id:
        return _SUCCESSOR
    if work.inherits:
        return _INHERITS
    return _NAMED if work.granted else _NOT_OWNER


def _decide_in_intent(principal: Principal, verb: Verb, level: Access) -> Decision:
    """Reading requires `memory.read`; changes of an intent or its tasks require `memory.write`."""
    needed = Permission.READ if verb in (Verb.READ, Verb.OBSERVE) else Permission.WRITE
    if needed not in principal.permissions:
        return _UNPERMITTED[needed]
    return _TAKES_PART if level.covers(_LEVEL[verb]) else _NO_INTENT_ACCESS


def _decide_in_namespace(principal: Principal, verb: Verb, target: Target) -> Decision:
    needed = _NAMESPACE_ACCESS.get(verb)
    if needed is None:
        return _NOT_GRANTED
    namespace = target.namespace
    if target.denied and verb is not Verb.ADMINISTER:
        return _DENIED
    if namespace is None:
        # The first writer creates a missing namespace and administers it.
        if verb not in (Verb.CREATE, Verb.ADMINISTER):
            return _NO_NAMESPACE
        return _CREATOR if target.creator in ("", principal.id) else _NOT_CREATOR
    return _GRANTED if access_to(principal, namespace).covers(needed) else _NOT_GRANTED


def access_to(principal: Principal, namespace: Namespace) -> Access:
    """The level of a principal in a namespace: its own grant, without one the highest grant of its
    groups, without any the default.

    A grant replaces the default even if the grant is lower, so that a grant can deny an agent or a
    group a namespace that others may read.
    """
    by_group: Access | None = None
    for grant in namespace.grants:
        if grant.agent == principal.id:
            return grant.access
        if principal.is_in(grant.agent) and (by_group is None or grant.access.covers(by_group)):
            by_group = grant.access
    return namespace.default if by_group is None else by_group


def _opens_episodic(principal: Principal, namespace: Namespace, target: Target) -> bool:
    """Whether a grant opens episodic memory in the namespace to a group that both the principal and
    the owner belong to (memory wall 11.8.2, rule 3). A principal that may not read the namespace
    reads no memory in it."""
    return access_to(principal, namespace).covers(Access.READ) and any(
        grant.episodic and grant.agent in target.owner_groups and principal.is_in(grant.agent)
        for grant in namespace.grants
    )


_ISSUED = Decision(True, "the key allows no more than the key of its creator")
_FOR_OTHERS = Decision(False, "a key for another principal requires `act_as`")
_EXCESSIVE = Decision(False, "the new key would have permissions that this key lacks")


def decide_new_key(
    principal: Principal, owner: str, permissions: Iterable[Permission], expires_at: str | None
) -> Decision:
    """Whether an administrator of the tenant may create a key with these permissions.

    A key never creates a key that allows more, or for longer: administration of a tenant does not
    allow reading the memory of its agents.

    owner: the principal of the new key
    expires_at: the instant from which the new key is refused, in the stored form; None for no
        expiry
    """
    if owner != principal.id and Permission.ACT_AS not in principal.permissions:
        return _FOR_OTHERS
    if not frozenset(permissions) <= principal.permissions:
        return _EXCESSIVE
    latest = principal.key_expires_at
    if latest is not None and (expires_at is None or expires_at > latest):
        return Decision(False, f"send an `expires_at` of at most {latest}, the expiry of this key")
    return _ISSUED
