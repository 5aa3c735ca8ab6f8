"""Leaks and wrong denials about what agents share to plant in the system, like those in `plants`.

Guardrails over knowledge, scopes of state, claims, and the sources of what is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from memorywall.coordination import claims
from memorywall.coordination.leases import known_lease
from memorywall.policy import decide as policy
from memorywall.records.decision import Decision, Target, Verb
from memorywall.records.entry import Entry
from memorywall.records.errors import MemoryAccessError
from memorywall.records.lease import Lease, LeaseKind
from memorywall.records.namespace import Access, Namespace
from memorywall.records.principal import Principal
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from memorywall.tiers import shared
from memorywall.wall import door, entries, namespaces, queries, sources, summaries
from memorywall.wall.fencing import guard
from tests.oracle.callers import AGENTS
from tests.support.backend import class_of_store

Patch = pytest.MonkeyPatch

_LONG_AGO = "1970-01-01T00:00:00.000Z"
_YES = Decision(True, "planted")


def _yes(*_: Any) -> Decision:
    return _YES


def _unbarred(patch: Patch, module: Any) -> None:
    """Lets a module know nothing of guardrails."""
    name = "namespace_targets"
    honest = getattr(module, name)

    async def lenient(*arguments: Any) -> list[Target]:
        return [replace(target, barred=False) for target in await honest(*arguments)]

    patch.setattr(module, name, lenient)


def _unbarred_alone(patch: Patch, module: Any) -> None:
    """The same, where single namespaces are looked up."""
    name = "namespace_target"
    honest = getattr(module, name)

    async def lenient(*arguments: Any) -> Target:
        target: Target = await honest(*arguments)
        return replace(target, barred=False)

    patch.setattr(module, name, lenient)


def guardrails_are_not_for_gets(patch: Patch) -> None:
    """A barred namespace's entries can be read by their ids."""
    _unbarred_alone(patch, door)


def guardrails_are_not_for_creates(patch: Patch) -> None:
    """A barred namespace can be written to."""
    _unbarred_alone(patch, entries)


def guardrails_are_not_for_queries(patch: Patch) -> None:
    """Queries and exports find what is barred."""
    _unbarred(patch, queries)


def guardrails_are_not_for_the_list(patch: Patch) -> None:
    """The list of namespaces holds what is barred."""
    _unbarred(patch, namespaces)


def guardrails_are_not_for_the_summary(patch: Patch) -> None:
    """The summary names what is barred."""
    _unbarred(patch, summaries)


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
        return honest(principal, verb, replace(target, founder=""))

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
    honest = guard

    async def lenient(
        transaction: Transaction, lease: Lease | None, entry: Entry, now: str
    ) -> None:
        if entry.tier is not Tier.SHARED:
            await honest(transaction, lease, entry, now)

    patch.setattr(entries, "guard", lenient)


def anybodys_token_does(patch: Patch) -> None:
    """A token is good in anybody's hands."""
    honest: Callable[..., Awaitable[Lease | None]] = class_of_store("Leases").held

    async def lenient(self: Any, tenant: str, token: int, holder: str, now: str) -> Lease | None:
        for one in (holder, *AGENTS):
            found = await honest(self, tenant, token, one, now)
            if found is not None:
                return found
        return None

    patch.setattr(class_of_store("Leases"), "held", lenient)


def stale_tokens_do(patch: Patch) -> None:
    """A token is good until its lease is swept."""
    honest: Callable[..., Awaitable[Lease | None]] = class_of_store("Leases").held

    async def lenient(self: Any, tenant: str, token: int, holder: str, now: str) -> Lease | None:
        return await honest(self, tenant, token, holder, _LONG_AGO)

    patch.setattr(class_of_store("Leases"), "held", lenient)


def anybody_ends_claims(patch: Patch) -> None:
    """Who may write to a scope may end the claims in it."""

    async def lenient(
        transaction: Transaction, principal: Principal, claim_id: str, now: str
    ) -> Lease:
        return await known_lease(transaction, principal.tenant, claim_id, LeaseKind.CLAIM)

    patch.setattr(claims, "_own", lenient)


def claims_are_listed_for_all(patch: Patch) -> None:
    """The list of claims leaves none out."""
    patch.setattr(claims, "decide", _yes)


def sources_tell_what_is_there(patch: Patch) -> None:
    """A source that is walled off is refused in other words than one that is not there."""
    honest = policy.decide

    def telling(principal: Principal, verb: Verb, target: Target) -> Decision:
        if not honest(principal, verb, target).allowed:
            raise MemoryAccessError("planted")
        return _YES

    patch.setattr(sources, "decide", telling)


def sources_are_not_checked(patch: Patch) -> None:
    """Anything that is there may be named as a source."""
    patch.setattr(sources, "decide", _yes)


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
