"""How far a listing may reach: the access rules as a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memorywall.policy.decide import decide
from memorywall.records.decision import Reach, Target, Verb, Work
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """Other agents' memory that may be open to the asker: what is known of each piece.

    tasks, intents, coordinated: working memory, by what it is bound to; see `Reach`
    episodic: agents of whom the asker coordinates a task they have taken up
    """

    tasks: Mapping[str, Work] = field(default_factory=dict)
    intents: Mapping[str, Work] = field(default_factory=dict)
    coordinated: Mapping[str, Work] = field(default_factory=dict)
    episodic: tuple[str, ...] = ()


NOTHING_OPENED = Opened()


def reach(
    principal: Principal,
    verb: Verb,
    namespaces: Iterable[Target],
    opened: Opened = NOTHING_OPENED,
) -> Reach:
    """The reach of `principal` for `verb`, where `namespaces` are the shared ones to consider.

    Every part of it is an answer of `decide`, so a listing can never show what a get would refuse.
    """
    tenant = principal.tenant
    own = Target(tenant=tenant, isolation=Isolation.AGENT, owner=principal.id)

    def allowed(works: Mapping[str, Work]) -> tuple[str, ...]:
        return tuple(
            name
            for name, work in works.items()
            if decide(
                principal, verb, Target(tenant=tenant, isolation=Isolation.AGENT, work=work)
            ).allowed
        )

    coordinated = Target(tenant=tenant, isolation=Isolation.AGENT, coordinated=True)
    return Reach(
        owners=(principal.id,) if decide(principal, verb, own).allowed else (),
        namespaces=tuple(
            target.namespace.name
            for target in namespaces
            if target.namespace is not None and decide(principal, verb, target).allowed
        ),
        tasks=allowed(opened.tasks),
        intents=allowed(opened.intents),
        coordinated=allowed(opened.coordinated),
        episodic=opened.episodic if decide(principal, verb, coordinated).allowed else (),
    )


def shared_target(
    tenant: str, namespace: Namespace | None, *, founder: str = "", barred: bool = False
) -> Target:
    """The target that stands for everything in a namespace."""
    return Target(
        tenant=tenant,
        isolation=Isolation.NAMESPACE,
        namespace=namespace,
        founder=founder,
        barred=barred,
    )
