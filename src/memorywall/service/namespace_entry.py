"""Authorization of writes to a namespace, and creation of the namespace by its first entry."""

from __future__ import annotations

from memorywall.records.decision import Verb
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.tier import Tier
from memorywall.service.operation_context import OperationContext
from memorywall.service.targets import load_namespace_target
from memorywall.tiers import shared as shared_tier


async def enter_namespace(context: OperationContext, tier: Tier, name: str) -> Namespace:
    """Authorizes a new entry in a namespace, creates the namespace if it is missing, and returns
    it.

    Raises MemoryAccessError.
    """
    target = await load_namespace_target(context, tier, name)
    context.authorize(Verb.CREATE, target)
    if target.namespace is not None:
        return target.namespace
    created = new_namespace(context, name)
    await context.transaction.namespaces.save(created)
    return created


def new_namespace(context: OperationContext, name: str) -> Namespace:
    """A new namespace with a grant of `admin` for its creator. A scope of shared state has the
    permissions of its kind."""
    default, own = Access(context.service.settings.namespace_default), Access.ADMIN
    if name.startswith(shared_tier.PREFIX):
        default, own = shared_tier.first_access(name)
    return Namespace(
        tenant=context.tenant,
        name=name,
        default=default,
        grants=() if own is Access.NONE else (Grant(agent=context.principal.id, access=own),),
        created_at=context.now,
        updated_at=context.now,
    )
