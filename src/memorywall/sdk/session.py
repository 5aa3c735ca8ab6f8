"""What all calls of one client share."""

from __future__ import annotations

from dataclasses import dataclass, field

from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError, RequestError
from memorywall.sdk.exchange import again
from memorywall.sdk.problems import decode
from memorywall.sdk.shapes import Identity
from memorywall.sdk.steps import Request, Script
from memorywall.sdk.tracking import Tracker
from memorywall.wire.leases import scope_namespace


@dataclass(slots=True)
class Session:
    """A client's state.

    agent: the agent it speaks for; None until that is given, asked or seen in an own write
    task_id: the task that working memory belongs to when a call does not say
    fencing_token: the lease that writes are made under when a call does not say
    """

    agent: str | None = None
    task_id: str | None = None
    fencing_token: int | None = None
    tracker: Tracker = field(default_factory=Tracker)
    untold: bool = False


def whoami(session: Session) -> Script[Identity]:
    """Asks the server who this client is."""
    response = yield from again(Request(method="GET", path="/api/v1/agents/me"))
    identity = decode(response, Identity)
    session.agent = identity.agent_id
    return identity


def own_agent(session: Session) -> Script[str | None]:
    """The client's own agent, asked for at most once; None where the server does not tell."""
    if session.agent is None and not session.untold:
        try:
            yield from whoami(session)
        except (MemoryNotFoundError, MemoryAccessError):
            session.untold = True
    return session.agent


def agent_or_own(session: Session, agent_id: str | None) -> Script[str]:
    """The agent named, or the client's own. Raises RequestError where neither is known."""
    agent = agent_id if agent_id is not None else (yield from own_agent(session))
    if agent is None:
        raise RequestError("give `agent_id`: this server does not tell who its callers are")
    return agent


def shared_namespace(session: Session, scope: str) -> Script[str]:
    """The namespace of shared state that a scope's name stands for."""
    agent = (yield from agent_or_own(session, None)) if scope == "agent" else ""
    return scope_namespace(scope, agent)
