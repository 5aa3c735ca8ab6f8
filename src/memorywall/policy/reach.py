"""How far a listing may reach: the access rules as a filter."""

from __future__ import annotations

from collections.abc import Iterable

from memorywall.policy.decide import decide
from memorywall.records.decision import Reach, Target, Verb
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation


def reach(principal: Principal, verb: Verb, namespaces: Iterable[Namespace]) -> Reach:
    """The reach of `principal` for `verb`, where `namespaces` are the shared ones to consider.

    Every part of it is an answer of `decide`, so a listing can never show what a get would refuse.
    """
    own = Target(tenant=principal.tenant, isolation=Isolation.AGENT, owner=principal.id)
    return Reach(
        owners=(principal.id,) if decide(principal, verb, own).allowed else (),
        namespaces=tuple(
            namespace.name
            for namespace in namespaces
            if decide(principal, verb, shared_target(principal.tenant, namespace)).allowed
        ),
    )


def shared_target(tenant: str, namespace: Namespace | None) -> Target:
    """The target that stands for everything in a namespace."""
    return Target(tenant=tenant, isolation=Isolation.NAMESPACE, namespace=namespace)
