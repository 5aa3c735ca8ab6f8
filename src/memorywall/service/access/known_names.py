"""Names of agents and groups in the form in which they are known.

A new name is stored in NFC. An agent or a group that was stored in another form before keeps it,
and a request that names it in any form means it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memorywall.records.group import GROUP_PREFIX, Group, is_group
from memorywall.records.identifiers import LONGEST_AGENT, is_clean, name_forms
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_agent, check_grantee
from memorywall.storage.port import Transaction
from memorywall.tiers import NAMESPACE_TIERS

_TIERS = tuple(tier for tier in Tier if tier not in NAMESPACE_TIERS)


async def known_agent(context: OperationContext, field: str, agent: str) -> str:
    """A valid id of an agent, user or service, in the form in which it is known, or else in NFC.
    Raises ValidationError, which names the field."""
    return await find_agent(context, check_agent(field, agent))


async def find_agent(context: OperationContext, agent: str) -> str:
    """The id of an agent in the form in which it is known, by its entries or its API keys, or else
    as given."""
    forms = name_forms(agent)
    if len(forms) == 1:
        return agent
    owner = await _find_owner(context.transaction, forms, context.now)
    if owner is not None:
        return owner
    holders = context.key_holders
    if holders is None:
        keys = await context.transaction.identities.keys(context.tenant)
        holders = context.key_holders = frozenset(one.principal for one in keys)
    return next((form for form in forms if form in holders), agent)


async def known_grantee(context: OperationContext, field: str, grantee: str) -> str:
    """A valid grantee, likewise: a principal, or `group:` and a group. Raises ValidationError."""
    if not is_group(grantee):
        return await known_agent(context, field, grantee)
    name = check_grantee(field, grantee)
    group = await find_group(context, name.removeprefix(GROUP_PREFIX))
    return name if group is None else GROUP_PREFIX + group.name


async def find_group(context: OperationContext, name: str) -> Group | None:
    """Returns the group of a name in any form, or None."""
    for form in name_forms(name):
        if (group := await context.transaction.groups.get(form)) is not None:
            return group
    return None


async def as_known(service: SharedServices, principal: Principal) -> Principal:
    """The principal of a request that names it, with its id in the form that owns entries.

    Raises ValidationError for an unknown id that is no valid new name.
    """
    forms, now = name_forms(principal.id), service.now()
    if len(forms) == 1 and is_clean(principal.id, LONGEST_AGENT):
        return principal

    async def script(transaction: Transaction) -> str | None:
        return await _find_owner(transaction, forms, now)

    known = await service.store.read(principal.tenant, script)
    return replace(principal, id=known or check_agent("X-Agent-ID", principal.id))


async def _find_owner(transaction: Transaction, forms: Sequence[str], now: str) -> str | None:
    """Returns the form of an id that owns entries, or None."""
    for form in forms:
        for tier in _TIERS:
            if (await transaction.entries.usage(tier, form, now)).entries:
                return form
    return None
