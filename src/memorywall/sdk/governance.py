"""What stands around entries: namespaces, their permissions, and what holds for an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memorywall.records.namespace import Grant
from memorywall.sdk.client_state import ClientState, agent_or_own
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.wire.agents import (
    AgentLimitsResponse,
    NamespaceBrief,
    NamespaceListResponse,
    NamespaceResponse,
    SummaryResponse,
)


class GovernanceCore:
    """The operations around entries, as scripts for a driver."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def namespaces(self) -> RequestGenerator[list[NamespaceBrief]]:
        """The shared namespaces this client has access to, and its level in each."""
        return (yield from call("list_namespaces", NamespaceListResponse)).namespaces

    def namespace(self, name: str) -> RequestGenerator[NamespaceResponse]:
        """A shared namespace and its permissions. Raises MemoryNotFoundError."""
        return call("get_namespace", NamespaceResponse, namespace=name)

    def set_permissions(
        self,
        name: str,
        *,
        default: str | None = None,
        allow: Iterable[Grant | Mapping[str, str]] | None = None,
        version: int | None = None,
    ) -> RequestGenerator[NamespaceResponse]:
        """Replaces the default level of a namespace, its list of grants, or both.

        allow: `{"agent": ..., "access": "none" | "read" | "write" | "admin"}` for each agent
        version: only if the namespace has this one
        """
        permissions = without_absent(
            {"default": default, "allow": None if allow is None else list(allow)}
        )
        return call(
            "set_namespace_permissions",
            NamespaceResponse,
            namespace=name,
            if_match=version,
            body={"permissions": permissions},
        )

    def summary(self, agent_id: str | None = None) -> RequestGenerator[SummaryResponse]:
        """How much an agent remembers, by default the client's own."""
        agent = yield from agent_or_own(self._state, agent_id)
        return (yield from call("summarize_agent", SummaryResponse, agent_id=agent))

    def set_limits(
        self,
        agent_id: str,
        *,
        episodic_capacity: int | None = None,
        pinned_namespaces: Iterable[str] = (),
    ) -> RequestGenerator[AgentLimitsResponse]:
        """Sets what holds for one agent; what is left out goes back to the default.

        episodic_capacity: how many episodic entries it may have
        pinned_namespaces: where its episodic entries are pinned when they are made
        """
        limits = {
            "episodic_capacity": episodic_capacity,
            "pinned_namespaces": list(pinned_namespaces),
        }
        return call("set_agent_limits", AgentLimitsResponse, agent_id=agent_id, body=limits)
