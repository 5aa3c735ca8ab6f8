"""Authorization of writes to a namespace, and creation of the namespace by its first entry."""

from __future__ import annotations

from msgspec import structs

from memorywall.records.decision import Verb
from memorywall.records.namespace import Access, Grant, Namespace
from memorywall.records.tier import Tier
from memorywall.service.access.targets import load_first_target
from memorywall.service.requests.namespace_names import namespace_forms
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.schema_cache import read_schemas
from memorywall.storage.sql.record_table import VALUE_SCHEMAS
from memorywall.tiers import shared as shared_tier


async def enter_namespace(
    context: OperationContext, tier: Tier, stored: str, full_name: str
) -> Namespace:
    """Authorizes a new entry in a namespace, creates the namespace if it is missing, and returns
    it. A further stored form of a name gets the permissions and the schemas of the first.

    stored: the stored form of the name
    Raises MemoryAccessError.
    """
    forms = dict.fromkeys((stored, *await namespace_forms(context, full_name)))
    target = await load_first_target(context, tier, forms)
    context.authorize(Verb.CREATE, target)
    known = target.namespace
    if known is not None and known.name == stored:
        return known
    if known is not None:
        return await copy_namespace(context, known, stored)
    created = new_namespace(context, stored)
    await context.transaction.namespaces.save(created)
    if context.namespaces is not None:
        context.namespaces[stored] = created
    return created


async def copy_namespace(context: OperationContext, known: Namespace, stored: str) -> Namespace:
    """Creates a further stored form of a namespace, with its permissions and its schemas."""
    created = structs.replace(known, name=stored)
    schemas = context.transaction.records(VALUE_SCHEMAS)
    for schema in await read_schemas(context.transaction, known.name):
        await schemas.remove(stored, schema.id)
        await schemas.insert(structs.replace(schema, namespace=stored))
    await context.transaction.namespaces.save(created)
    if context.namespaces is not None:
        context.namespaces[stored] = created
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
