"""What all calls of one client share."""

from __future__ import annotations

from dataclasses import dataclass, field

from memorywall.records.errors import MemoryAccessError, MemoryNotFoundError, RequestError
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.models import Identity
from memorywall.sdk.retry import call
from memorywall.sdk.version_cache import VersionCache
from memorywall.wire.leases import scope_namespace


@dataclass(slots=True)
class ClientState:
    """A client's state.

    agent: the agent it speaks for; None until that is given, asked or seen in an own write
    task_id: the task that working memory belongs to when a call does not say
    fencing_token: the lease that writes are made under when a call does not say
    finds_by_name: whether the server may have the operation `find_entry`; older ones do not
    """

    agent: str | None = None
    task_id: str | None = None
    fencing_token: int | None = None
    versions: VersionCache = field(default_factory=VersionCache)
    untold: bool = False
    finds_by_name: bool = True

    def derived(
        self, *, task_id: str | None, fencing_token: int | None = None, subject: str | None
    ) -> ClientState:
        """The state of a light client over the same connections, which has seen nothing yet."""
        state = ClientState(agent=self.agent, task_id=task_id, fencing_token=fencing_token)
        state.versions.subject = subject
        return state


def whoami(state: ClientState) -> RequestGenerator[Identity]:
    """Asks the server who this client is."""
    identity = yield from call("whoami", Identity)
    state.agent = identity.agent_id
    return identity


def own_agent(state: ClientState) -> RequestGenerator[str | None]:
    """The client's own agent, asked for at most once; None where the server does not tell."""
    if state.agent is None and not state.untold:
        try:
            yield from whoami(state)
        except (MemoryNotFoundError, MemoryAccessError):
            state.untold = True
    return state.agent


def agent_or_own(state: ClientState, agent_id: str | None) -> RequestGenerator[str]:
    """The agent named, or the client's own. Raises RequestError where neither is known."""
    agent = agent_id if agent_id is not None else (yield from own_agent(state))
    if agent is None:
        raise RequestError("give `agent_id`: this server does not tell who its callers are")
    return agent


def shared_namespace(state: ClientState, scope: str) -> RequestGenerator[str]:
    """The namespace of shared state that a scope's name stands for."""
    agent = (yield from agent_or_own(state, None)) if scope == "agent" else ""
    return scope_namespace(scope, agent)
