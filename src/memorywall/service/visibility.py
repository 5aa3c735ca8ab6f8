"""Loads the visibility filter of a principal."""

from __future__ import annotations

from msgspec.structs import replace

from memorywall.policy.visibility_filter import visibility_filter
from memorywall.records.decision import Verb, VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.namespace import Namespace
from memorywall.records.tier import Tier
from memorywall.service.authorization_facts import load_work_access
from memorywall.service.operation_context import OperationContext
from memorywall.service.targets import load_namespace_targets
from memorywall.tiers import NAMESPACE_TIERS

_SHARED = frozenset(NAMESPACE_TIERS)


async def load_visibility(
    context: OperationContext, verb: Verb, wanted: EntryFilter
) -> VisibilityFilter:
    """The visibility filter for the entries that `wanted` could match; loads only needed facts."""
    tiers = wanted.tiers or tuple(Tier)
    namespaces: list[Namespace] = []
    if not _SHARED.isdisjoint(tiers):
        if wanted.namespace is None:
            namespaces = await context.transaction.namespaces.list_for(context.principal.id)
            if wanted.namespace_prefix:
                prefixes = (wanted.namespace_prefix, *wanted.aliases)
                namespaces = [one for one in namespaces if one.name.startswith(prefixes)]
        else:
            for name in (wanted.namespace, *wanted.aliases):
                namespace = await context.transaction.namespaces.get(name)
                if namespace is not None:
                    namespaces.append(namespace)
    targets = await load_namespace_targets(context, namespaces)
    context.decide_by_row()
    opened = await load_work_access(context, verb, wanted, tiers)
    within = visibility_filter(context.principal, verb, targets, opened)
    return replace(within, owners=()) if _SHARED.issuperset(tiers) else within
