"""Wrong rules about sessions to plant in the system, to see whether the comparison finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from memorywall.policy import decide as policy
from memorywall.recall import filtering
from memorywall.records.decision import VisibilityFilter
from memorywall.records.filter import EntryFilter
from memorywall.records.principal import Principal
from memorywall.service.access import session_binding
from memorywall.service.entries import checks as entry_checks
from memorywall.service.feeds import change_feed
from memorywall.service.requests.operation_context import OperationCall
from memorywall.service.requests.services import SharedServices
from memorywall.service.runner import operation_runner as runner
from memorywall.storage.postgres import search as postgres_search
from memorywall.storage.sqlite import search as sqlite_search

Patch = pytest.MonkeyPatch


def _yes(*_: object) -> bool:
    return True


def decisions_forget_the_session(patch: Patch) -> None:
    """A get by id reaches every session of the agent."""
    patch.setattr(policy, "belongs_to", _yes)


def statements_forget_the_session(patch: Patch) -> None:
    """Lists show every session of the agent."""

    def careless(wanted: EntryFilter, visibility: VisibilityFilter) -> EntryFilter:
        return structs.replace(wanted, only_about=visibility.subjects)

    patch.setattr(sqlite_search, "within_limits", careless)
    patch.setattr(postgres_search, "within_limits", careless)


def recall_forgets_the_session(patch: Patch) -> None:
    """Statistics of a search cover every session; the hits are right."""
    patch.setattr(filtering, "belongs_to", _yes)


def changes_forget_the_session(patch: Patch) -> None:
    """Who follows changes gets those of every session."""
    patch.setattr(change_feed, "_is_inside", _yes)


def participants_stay(patch: Patch) -> None:
    """Who has left a session keeps what a participant may do, as with a cache of bindings."""
    honest, known = session_binding._read, dict[tuple[str, str], Any]()

    async def cached(
        service: SharedServices, transaction: Any, principal: Principal, session: str, moment: int
    ) -> Any:
        name = (principal.id, session)
        if name not in known:
            known[name] = await honest(service, transaction, principal, session, moment)
        return known[name]

    patch.setattr(session_binding, "_read", cached)


def anybody_takes_part(patch: Patch) -> None:
    """Every agent that knows the id of a session is a participant."""
    honest = session_binding._read

    async def careless(
        service: SharedServices, transaction: Any, principal: Principal, session: str, moment: int
    ) -> Any:
        entry = await transaction.entries.get(session, "")
        owner = principal.id if entry is None else entry.owner
        return await honest(service, transaction, replace(principal, id=owner), session, moment)

    patch.setattr(session_binding, "_read", careless)


def readers_append(patch: Patch) -> None:
    """A participant that may read writes as well."""
    honest = session_binding._read

    async def careless(*given: Any) -> Any:
        binding, subject = await honest(*given)
        return structs.replace(binding, may_append=True), subject

    patch.setattr(session_binding, "_read", careless)


def sessions_bind_to_nobody(patch: Patch) -> None:
    """A session does not bind its requests to its subject."""

    async def careless(service: SharedServices, call: OperationCall) -> OperationCall:
        return call

    patch.setattr(session_binding, "bind_subject", careless)


def writes_name_no_session(patch: Patch) -> None:
    """What is written inside a session belongs to none."""
    patch.setattr(entry_checks, "bind_scope", lambda principal, tier, scope: scope)


def writes_name_any_session(patch: Patch) -> None:
    """What is written inside a session may belong to another."""
    honest = session_binding.bind_scope

    def careless(principal: Principal, tier: Any, scope: Any) -> Any:
        return honest(principal, tier, scope) if scope.session_id is None else scope

    patch.setattr(entry_checks, "bind_scope", careless)


def closed_sessions_stay_open(patch: Patch) -> None:
    """A closed session accepts requests."""
    patch.setattr(session_binding, "OPEN", ("active", "checkpointed", "closed"))


def requests_are_not_bound(patch: Patch) -> None:
    """The header is ignored: nothing binds the request."""

    async def careless(service: SharedServices, call: OperationCall) -> OperationCall:
        return call

    patch.setattr(runner, "bind_request", careless)


SESSION_PLANTS = (
    decisions_forget_the_session,
    statements_forget_the_session,
    recall_forgets_the_session,
    changes_forget_the_session,
    participants_stay,
    anybody_takes_part,
    readers_append,
    sessions_bind_to_nobody,
    writes_name_no_session,
    writes_name_any_session,
    closed_sessions_stay_open,
    requests_are_not_bound,
)
