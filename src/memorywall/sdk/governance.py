"""Namespaces, their permissions, and the limits of agents."""

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
    """The operations on namespaces and agents' limits, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def namespaces(self) -> RequestGenerator[list[NamespaceBrief]]:
        """Returns the shared namespaces that this client has access to, with its level in each."""
        return (yield from call("list_namespaces", NamespaceListResponse)).namespaces

    def namespace(self, name: str) -> RequestGenerator[NamespaceResponse]:
        """Returns a shared namespace and its permissions. Raises MemoryNotFoundError."""
        return call("get_namespace", NamespaceResponse, namespace=name)

    def set_permissions(
        self,
        name: str,
        *,
        default: str | None = None,
        allow: Iterable[Grant | Mapping[str, str]] | None = None,
        last_write_wins: bool | None = None,
        indexed_paths: Iterable[str] | None = None,
        version: int | None = None,
    ) -> RequestGenerator[NamespaceResponse]:
        """Replaces the default level of a namespace, its list of grants, its rule for writes and
        its indexed paths, as far as they are given.

        allow: `{"agent": ..., "access": "none" | "read" | "write" | "admin"}` for each agent, or
            for each group as "group:" and its name; `"episodic": True` lets the members of a group
            read each other's episodic memory in the namespace, for administrators of the tenant
        last_write_wins: whether `PUT` without a precondition replaces an entry of the namespace; it
            concerns semantic and procedural memory
        indexed_paths: paths such as `value.customer.tier`, whose values are indexed for queries
            with `where`; entries of shared memory that exist already follow with their next write
        version: change only if the namespace has this version
        """
        permissions = without_absent(
            {"default": default, "allow": None if allow is None else list(allow)}
        )
        return call(
            "set_namespace_permissions",
            NamespaceResponse,
            namespace=name,
            if_match=version,
            body=without_absent(
                {
                    "permissions": permissions or None,
                    "last_write_wins": last_write_wins,
                    "indexed_paths": None if indexed_paths is None else list(indexed_paths),
                }
            ),
        )

    def summary(self, agent_id: str | None = None) -> RequestGenerator[SummaryResponse]:
        """Returns counts and sizes of an agent's memory. Default: the client's own agent."""
        agent = yield from agent_or_own(self._state, agent_id)
        return (yield from call("summarize_agent", SummaryResponse, agent_id=agent))

    def set_limits(
        self,
        agent_id: str,
        *,
        episodic_capacity: int | None = None,
        pinned_namespaces: Iterable[str] = (),
    ) -> RequestGenerator[AgentLimitsResponse]:
        """Sets the limits of an agent; omitted limits get their default.

        episodic_capacity: the number of episodic entries that the agent may have
        pinned_namespaces: namespaces in which new episodic entries of the agent are pinned
        """
        limits = {
            "episodic_capacity": episodic_capacity,
            "pinned_namespaces": list(pinned_namespaces),
        }
        return call("set_agent_limits", AgentLimitsResponse, agent_id=agent_id, body=limits)
