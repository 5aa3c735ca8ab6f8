"""Loads the targets of access decisions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from memorywall.policy.visibility_filter import shared_target
from memorywall.records.decision import Target, Verb
from memorywall.records.entry import EMPTY_SCOPE, Entry
from memorywall.records.errors import MemoryNotFoundError
from memorywall.records.identifiers import is_same_name, normalize_name
from memorywall.records.namespace import Namespace
from memorywall.records.tier import Admission, Isolation, ReadAccess, Tier
from memorywall.service.access.authorization_facts import (
    coordinates_agent,
    is_denied,
    load_guardrails,
    load_relations,
)
from memorywall.service.access.groups import load_episodic_target, load_groups
from memorywall.service.access.session_binding import KINDS_OF_SESSIONS, takes_part_in
from memorywall.service.requests.operation_context import OperationContext, hidden_entry
from memorywall.tiers import TIERS
from memorywall.tiers.shared import AGENT, PREFIX


async def load_target(context: OperationContext, verb: Verb, entry: Entry) -> Target:
    """The target for an entry, with the facts that a decision about `verb` needs."""
    if TIERS[entry.tier].isolation is Isolation.NAMESPACE:
        target = await load_namespace_target(context, entry.tier, entry.namespace)
        session = entry.scope.session_id
        if session is None and not entry.subjects:
            return target
        return replace(target, subjects=entry.subjects, tier=entry.tier, session=session)
    own = entry.owner == context.principal.id
    work, coordinated = None, False
    access = TIERS[entry.tier].access
    if access is ReadAccess.WORK and entry.scope is not EMPTY_SCOPE:
        if not (own and verb is Verb.READ):
            work = await load_relations(context, entry.scope, own=own)
    elif access is ReadAccess.COORDINATOR and not own and verb is Verb.READ:
        coordinated = await coordinates_agent(context, entry.owner)
        by_group = await load_episodic_target(context, entry.owner, entry.namespace)
        if by_group is not None:
            return replace(
                by_group,
                coordinated=coordinated,
                subjects=entry.subjects,
                tier=entry.tier,
                session=entry.scope.session_id,
            )
    return Target(
        tenant=entry.tenant,
        isolation=Isolation.AGENT,
        owner=entry.owner,
        work=work,
        coordinated=coordinated,
        subjects=entry.subjects,
        place=entry.namespace,
        tier=entry.tier,
        session=entry.scope.session_id,
    )


async def load_authorized_entry(context: OperationContext, verb: Verb, entry_id: str) -> Entry:
    """Returns the entry if the principal is allowed `verb` on it.

    Raises MemoryNotFoundError, also for a part of a session in which the principal takes no part,
    MemoryAccessError.
    """
    return (await load_authorized_target(context, verb, entry_id))[0]


async def load_authorized_target(
    context: OperationContext, verb: Verb, entry_id: str
) -> tuple[Entry, Target]:
    """Returns the same with the target of the decision, which contains the entry's namespace."""
    entry = await context.transaction.entries.get(entry_id, context.now)
    if entry is None:
        raise MemoryNotFoundError
    target = await load_target(context, verb, entry)
    is_refused = entry.kind in KINDS_OF_SESSIONS and not context.allows(verb, target)
    if is_refused and not await takes_part_in(context, entry):
        raise hidden_entry()
    context.authorize(verb, target)
    return entry, target


async def load_namespace_target(context: OperationContext, tier: Tier, name: str) -> Target:
    """The target for a namespace of shared memory. That of events and earlier versions from before
    it was renamed is its present form in NFC."""
    namespace = await context.transaction.namespaces.get(name)
    if namespace is None and not name.isascii():
        namespace = await context.transaction.namespaces.get(normalize_name(name))
    if namespace is not None:
        await load_groups(context, (grant.agent for grant in namespace.grants))
    if context.namespaces is None:
        context.namespaces = {}
    context.namespaces[name] = namespace
    if TIERS[tier].admission is Admission.CLAIM_HOLDER:
        creator = name.removeprefix(AGENT) if name.startswith(AGENT) else ""
        if is_same_name(creator, context.principal.id):
            creator = context.principal.id
        return shared_target(context.tenant, namespace, name=name, creator=creator)
    guardrails = await load_guardrails(context, context.principal.id)
    denied = is_denied(guardrails, name)
    return shared_target(context.tenant, namespace, name=name, denied=denied)


async def load_first_target(context: OperationContext, tier: Tier, names: Iterable[str]) -> Target:
    """The target for the first of some stored forms of a name that is a stored namespace, which
    have the same permissions; without one that of the first form."""
    targets = [await load_namespace_target(context, tier, name) for name in names]
    return next((one for one in targets if one.namespace is not None), targets[0])


async def load_namespace_targets(
    context: OperationContext, namespaces: Iterable[Namespace]
) -> list[Target]:
    """The targets for loaded namespaces."""
    known = list(namespaces)
    guardrails = []
    if known:
        await load_groups(context, (grant.agent for one in known for grant in one.grants))
        guardrails = await load_guardrails(context, context.principal.id)

    def target(one: Namespace) -> Target:
        denied = not one.name.startswith(PREFIX) and is_denied(guardrails, one.name)
        return shared_target(context.tenant, one, denied=denied)

    return await context.build(target, known)


def owner_target(tenant: str, agent: str, place: str = "") -> Target:
    """The target for memory that an agent owns.

    place: a namespace; "" for all memory, the default
    """
    return Target(tenant=tenant, isolation=Isolation.AGENT, owner=agent, place=place)
