"""Loads the visibility filter of a principal."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from memorywall.policy.visibility_filter import visibility_filter
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.namespace import Namespace
from memorywall.records.tier import ReadAccess, Tier
from memorywall.service.access.authorization_facts import load_work_access
from memorywall.service.access.groups import (
    list_namespaces,
    load_episodic_targets,
    open_episodic,
)
from memorywall.service.access.targets import load_namespace_targets
from memorywall.service.requests.operation_context import OperationContext
from memorywall.tiers import NAMESPACE_TIERS, TIERS

_SHARED = frozenset(NAMESPACE_TIERS)


async def load_visibility(
    context: OperationContext, verb: Verb, wanted: EntryFilter
) -> VisibilityFilter:
    """The visibility filter for the entries that `wanted` could match; loads only needed facts."""
    tiers = wanted.tiers or tuple(Tier)
    has_shared = not _SHARED.isdisjoint(tiers)
    # Reading of other agents' episodic memory may depend on namespaces too.
    by_group = (
        verb is Verb.READ
        and wanted.agent_id != context.principal.id
        and any(TIERS[tier].access is ReadAccess.COORDINATOR for tier in tiers)
    )
    namespaces = await _load_namespaces(context, wanted) if has_shared or by_group else []
    targets = await load_namespace_targets(context, namespaces if has_shared else ())
    context.decide_by_row()
    opened = await load_work_access(context, verb, wanted, tiers)
    if by_group and open_episodic(namespaces):
        opened = replace(opened, by_group=await load_episodic_targets(context, namespaces))
    within = visibility_filter(context.principal, verb, targets, opened)
    return structs.replace(within, owners=()) if _SHARED.issuperset(tiers) else within


async def _load_namespaces(context: OperationContext, wanted: EntryFilter) -> list[Namespace]:
    """The namespaces of the entries that `wanted` could match, with at least the grants of the
    principal and its groups."""
    if wanted.namespace is None:
        namespaces = await list_namespaces(context)
        if wanted.namespace_prefix:
            prefixes = (wanted.namespace_prefix, *wanted.aliases)
            return [one for one in namespaces if one.name.startswith(prefixes)]
        return namespaces
    found = [
        await context.transaction.namespaces.get(name)
        for name in (wanted.namespace, *wanted.aliases)
    ]
    return [namespace for namespace in found if namespace is not None]
