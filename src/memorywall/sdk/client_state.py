"""The state that all calls of a client share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memorywall.records.clock import check_instant
from memorywall.records.errors import (
    MemoryAccessError,
    MemoryNotFoundError,
    RequestError,
    ValidationError,
)
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import checked_name, instant
from memorywall.sdk.models import Identity
from memorywall.sdk.read_cache import ReadCache
from memorywall.sdk.retry import call
from memorywall.sdk.version_cache import VersionCache
from memorywall.wire.leases import scope_namespace


@dataclass(slots=True)
class ClientState:
    """A client's state.

    agent: the agent that the client acts for; None until it is given, requested, or returned by a
        write
    task_id: the default task of working memory
    fencing_token: the default fencing token of writes
    session: the session that all requests are inside; None for none
    finds_by_name: whether the server may have the operation `find_entry`; older servers do not
    """

    agent: str | None = None
    task_id: str | None = None
    fencing_token: int | None = None
    session: str | None = None
    versions: VersionCache = field(default_factory=VersionCache)
    reads: ReadCache = field(default_factory=ReadCache)
    untold: bool = False
    finds_by_name: bool = True

    def derived(
        self,
        *,
        task_id: str | None,
        fencing_token: int | None = None,
        subject: str | None,
        session: str | None = None,
    ) -> ClientState:
        """Returns the state of a client over the same connections, without seen versions and kept
        reads.

        session: default: that of this client
        """
        state = ClientState(
            agent=self.agent,
            task_id=task_id,
            fencing_token=fencing_token,
            session=session or self.session,
        )
        state.versions.subject = subject
        return state


def subject_header(users: Sequence[str]) -> str:
    """Returns the `X-Subject` header of some people. Raises ValidationError for no person, for an
    empty id, and for an id that a header cannot carry: with a comma, which separates ids, with a
    space at an end, or with a control character."""
    if not users:
        raise ValidationError("`for_user` needs the id of a person")
    for user in users:
        if not checked_name("user", user).strip():
            raise ValidationError("`user` must not be empty: it is the id of a person")
        if user != user.strip() or not user.isprintable():
            raise ValidationError(
                "`user`: the id of a person has no space at its ends and no control character"
            )
        if "," in user:
            raise ValidationError("`user`: the id of a person has no comma; give each id by itself")
    return ",".join(users)


def said_at_header(said_at: datetime | str | None) -> str | None:
    """Returns the `X-Said-At` header of an instant, None for None. Raises ValidationError for what
    is no instant with an offset."""
    return None if said_at is None else check_instant("said_at", instant(said_at))


def whoami(state: ClientState) -> RequestGenerator[Identity]:
    """Requests the principal of the client's key."""
    identity = yield from call("whoami", Identity)
    state.agent = identity.agent_id
    return identity


def own_agent(state: ClientState) -> RequestGenerator[str | None]:
    """Returns the client's own agent, requested at most once; None if the server does not return
    it."""
    if state.agent is None and not state.untold:
        try:
            yield from whoami(state)
        except (MemoryNotFoundError, MemoryAccessError):
            state.untold = True
    return state.agent


def agent_or_own(state: ClientState, agent_id: str | None) -> RequestGenerator[str]:
    """Returns the given agent, or the client's own. Raises RequestError if neither is known."""
    agent = agent_id if agent_id is not None else (yield from own_agent(state))
    if agent is None:
        raise RequestError("give `agent_id`: this server does not tell who its callers are")
    return agent


def shared_namespace(state: ClientState, scope: str) -> RequestGenerator[str]:
    """Returns the namespace of shared state for a scope."""
    agent = (yield from agent_or_own(state, None)) if scope == "agent" else ""
    return scope_namespace(scope, agent)
