"""Leaks and wrong denials about what agents share to plant in the system, like those in `plants`.

Guardrails over knowledge, scopes of state, claims, and the sources of what is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import structs

from memorywall.coordination import claims
from memorywall.coordination.leases import known_lease
from memorywall.operations import agents
from memorywall.policy import decide as policy
from memorywall.records.decision import Decision, Target, Verb
from memorywall.records.entry import Entry, Source
from memorywall.records.errors import MemoryAccessError
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.service.access import targets, visibility
from memorywall.service.administration import namespace_permissions
from memorywall.service.entries import create, namespace_entry, update
from memorywall.service.requests.operation_context import OperationContext
from memorywall.storage.sql.leases import SqlLeaseRepository
from memorywall.tiers import shared
from tests.oracle.callers import AGENTS

Patch = pytest.MonkeyPatch

_LONG_AGO = "1970-01-01T00:00:00.000Z"


class _AllowsAll(OperationContext):
    """A context in which every question that does not raise is answered with yes."""

    __slots__ = ()

    def allows(self, verb: Verb, target: Target) -> bool:
        return True


class _TellsRefusals(OperationContext):
    """A context in which a question that is answered with no raises instead."""

    __slots__ = ()

    def allows(self, verb: Verb, target: Target) -> bool:
        if not super().allows(verb, target):
            raise MemoryAccessError("planted")
        return True


def _as(kind: type[OperationContext], context: OperationContext) -> OperationContext:
    """The same context, deciding otherwise."""
    return kind(context.service, context.transaction, context.principal, context.moment)


def _unbarred(patch: Patch, module: Any) -> None:
    """Lets a module know nothing of guardrails."""
    name = "load_namespace_targets"
    honest = getattr(module, name)

    async def lenient(*arguments: Any) -> list[Target]:
        return [structs.replace(target, denied=False) for target in await honest(*arguments)]

    patch.setattr(module, name, lenient)


def _unbarred_alone(patch: Patch, module: Any, name: str = "load_namespace_target") -> None:
    """The same, where single namespaces are looked up."""
    honest = getattr(module, name)

    async def lenient(*arguments: Any) -> Target:
        target: Target = await honest(*arguments)
        return structs.replace(target, denied=False)

    patch.setattr(module, name, lenient)


def guardrails_are_not_for_gets(patch: Patch) -> None:
    """A barred namespace's entries can be read by their ids."""
    _unbarred_alone(patch, targets)


def guardrails_are_not_for_creates(patch: Patch) -> None:
    """A barred namespace can be written to."""
    _unbarred_alone(patch, namespace_entry, "load_first_target")


def guardrails_are_not_for_queries(patch: Patch) -> None:
    """Queries and exports find what is barred."""
    _unbarred(patch, visibility)


def guardrails_are_not_for_the_list(patch: Patch) -> None:
    """The list of namespaces holds what is barred."""
    _unbarred(patch, namespace_permissions)


def guardrails_are_not_for_the_summary(patch: Patch) -> None:
    """The summary names what is barred."""
    _unbarred(patch, agents)


def teams_begin_open(patch: Patch) -> None:
    """Everybody reads a team's state until its founder shuts them out."""
    honest = shared.first_access

    def lenient(name: str) -> tuple[Access, Access]:
        default, own = honest(name)
        return (Access.READ, own) if name.startswith(shared.TEAM) else (default, own)

    patch.setattr(shared, "first_access", lenient)


def anybody_founds_anybodys_scope(patch: Patch) -> None:
    """The first to write to an agent's scope has it."""
    honest = policy._decide_in_namespace

    def lenient(principal: Principal, verb: Verb, target: Target) -> Decision:
        return honest(principal, verb, structs.replace(target, creator=""))

    patch.setattr(policy, "_decide_in_namespace", lenient)


def agents_scopes_can_be_written(patch: Patch) -> None:
    """An agent's own scope takes what others write, once it is there."""
    honest = policy.access_to

    def lenient(principal: Principal, namespace: Namespace) -> Access:
        if namespace.name.startswith(shared.AGENT):
            return Access.WRITE
        return honest(principal, namespace)

    patch.setattr(policy, "access_to", lenient)


def claims_guard_nothing(patch: Patch) -> None:
    """A claimed key can be written without the claim's token."""
    honest = create.guard

    async def lenient(context: OperationContext, entry: Entry) -> None:
        if entry.tier is not Tier.SHARED:
            await honest(context, entry)

    for module in (create, update):
        patch.setattr(module, "guard", lenient)


def anybodys_token_does(patch: Patch) -> None:
    """A token is good in anybody's hands."""
    honest: Callable[..., Awaitable[Lease | None]] = SqlLeaseRepository.find_held

    async def lenient(self: Any, token: int, holder: str, now: str) -> Lease | None:
        for one in (holder, *AGENTS):
            found = await honest(self, token, one, now)
            if found is not None:
                return found
        return None

    patch.setattr(SqlLeaseRepository, "find_held", lenient)


def stale_tokens_do(patch: Patch) -> None:
    """A token is good until its lease is swept."""
    honest: Callable[..., Awaitable[Lease | None]] = SqlLeaseRepository.find_held

    async def lenient(self: Any, token: int, holder: str, now: str) -> Lease | None:
        return await honest(self, token, holder, _LONG_AGO)

    patch.setattr(SqlLeaseRepository, "find_held", lenient)


def anybody_ends_claims(patch: Patch) -> None:
    """Who may write to a scope may end the claims in it."""

    async def lenient(context: OperationContext, claim_id: str) -> Lease:
        context.decide_by_row()
        return await known_lease(context, claim_id, LeaseKind.CLAIM)

    patch.setattr(claims, "_own", lenient)


def claims_are_listed_for_all(patch: Patch) -> None:
    """The list of claims leaves none out."""
    honest = claims.list_claims

    async def lenient(
        context: OperationContext, scope: str | None, agent: str | None
    ) -> list[Lease]:
        context.decide_by_row()
        return await honest(_as(_AllowsAll, context), scope, agent)

    patch.setattr(claims, "list_claims", lenient)


def sources_tell_what_is_there(patch: Patch) -> None:
    """A source that is walled off is refused in other words than one that is not there."""
    _plant_sources(patch, _TellsRefusals)


def sources_are_not_checked(patch: Patch) -> None:
    """Anything that is there may be named as a source."""
    _plant_sources(patch, _AllowsAll)


def _plant_sources(patch: Patch, kind: type[OperationContext]) -> None:
    honest = create.add_sources

    async def planted(
        context: OperationContext, entry: Entry, sources: tuple[Source, ...]
    ) -> Entry:
        return await honest(_as(kind, context), entry, sources)

    patch.setattr(create, "add_sources", planted)


SHARED_PLANTS: tuple[Callable[[Patch], None], ...] = (
    guardrails_are_not_for_gets,
    guardrails_are_not_for_creates,
    guardrails_are_not_for_queries,
    guardrails_are_not_for_the_list,
    guardrails_are_not_for_the_summary,
    teams_begin_open,
    anybody_founds_anybodys_scope,
    agents_scopes_can_be_written,
    claims_guard_nothing,
    anybodys_token_does,
    stale_tokens_do,
    anybody_ends_claims,
    claims_are_listed_for_all,
    sources_tell_what_is_there,
    sources_are_not_checked,
)
