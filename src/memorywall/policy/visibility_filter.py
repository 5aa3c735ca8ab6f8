"""The access rules of lists and searches, as a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from memorywall.policy.decide import decide
from memorywall.records.decision import Target, Verb, VisibilityFilter, WorkRelations
from memorywall.records.namespace import Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Isolation, Tier


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkAccess:
    """Relations of a principal to other agents' memory.

    tasks, intents, coordinated: relations to working memory, by the id of the task, the intent, or
        the coordinated intent; see `VisibilityFilter`
    episodic: agents with an accepted task that the principal coordinates
    by_group: episodic memory in namespaces that open it to a group of the principal, one target for
        each namespace and agent
    """

    tasks: Mapping[str, WorkRelations] = field(default_factory=dict)
    intents: Mapping[str, WorkRelations] = field(default_factory=dict)
    coordinated: Mapping[str, WorkRelations] = field(default_factory=dict)
    episodic: tuple[str, ...] = ()
    by_group: tuple[Target, ...] = ()


NO_WORK_ACCESS = WorkAccess()


def visibility_filter(
    principal: Principal,
    verb: Verb,
    namespaces: Iterable[Target],
    opened: WorkAccess = NO_WORK_ACCESS,
) -> VisibilityFilter:
    """The visibility filter of `principal` for `verb`.

    Every part of the filter is a decision of `decide`, so a list never shows an entry that a get
    would refuse.

    namespaces: the targets of the shared namespaces to consider
    opened: relations to other agents' memory; default: none
    """
    tenant = principal.tenant
    limited, limit = principal, principal.namespaces
    if limit is not None:
        # The parts by owner and by work are decided as a whole; `limited_to` then limits them.
        principal = replace(principal, namespaces=None)
    own = Target(tenant=tenant, isolation=Isolation.AGENT, owner=principal.id)

    def allowed(works: Mapping[str, WorkRelations]) -> tuple[str, ...]:
        return tuple(
            name
            for name, work in works.items()
            if decide(
                principal, verb, Target(tenant=tenant, isolation=Isolation.AGENT, work=work)
            ).allowed
        )

    coordinated = Target(tenant=tenant, isolation=Isolation.AGENT, coordinated=True)
    return VisibilityFilter(
        owners=(principal.id,) if decide(principal, verb, own).allowed else (),
        namespaces=tuple(
            target.namespace.name
            for target in namespaces
            if target.namespace is not None and decide(limited, verb, target).allowed
        ),
        tasks=allowed(opened.tasks),
        intents=allowed(opened.intents),
        coordinated=allowed(opened.coordinated),
        episodic=opened.episodic if decide(principal, verb, coordinated).allowed else (),
        by_group=tuple(
            (target.namespace.name, target.owner)
            for target in opened.by_group
            if target.namespace is not None and decide(limited, verb, target).allowed
        ),
        subjects=principal.subject_forms,
        limited_to=limit,
        session=None if principal.session is None else principal.session.id,
        session_owners=_session_owners(principal, verb),
    )


def _session_owners(principal: Principal, verb: Verb) -> tuple[str, ...]:
    """The other agent whose session memory the request reads, as a participant of its session."""
    session = principal.session
    if session is None or session.owner == principal.id:
        return ()
    target = Target(
        tenant=principal.tenant,
        isolation=Isolation.AGENT,
        owner=session.owner,
        tier=Tier.SESSION,
        session=session.id,
    )
    return (session.owner,) if decide(principal, verb, target).allowed else ()


def shared_target(
    tenant: str,
    namespace: Namespace | None,
    *,
    name: str = "",
    creator: str = "",
    denied: bool = False,
) -> Target:
    """The target for all entries of a namespace.

    namespace: None for a namespace that does not exist
    name: the name of a namespace that does not exist
    creator: the only principal that may create it, "" for any principal
    denied: whether guardrails of the principal deny the namespace
    """
    return Target(
        tenant=tenant,
        isolation=Isolation.NAMESPACE,
        namespace=namespace,
        creator=creator,
        denied=denied,
        place=name if namespace is None else namespace.name,
    )
