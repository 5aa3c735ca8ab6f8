"""What stands around entries: namespaces, their permissions, and what holds for an agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memorywall.records.namespace import Grant
from memorywall.sdk import exchange
from memorywall.sdk.filters import without_absent
from memorywall.sdk.problems import decode
from memorywall.sdk.session import Session, agent_or_own
from memorywall.sdk.steps import Request, Script, part
from memorywall.wire.agents import (
    AgentLimitsView,
    NamespaceBrief,
    NamespaceList,
    NamespaceView,
    SummaryView,
)

_NAMESPACES = "/api/v1/memory/namespaces"


class GovernanceLogic:
    """The operations around entries, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def namespaces(self) -> Script[list[NamespaceBrief]]:
        """The shared namespaces this client has access to, and its level in each."""
        response = yield from exchange.again(Request(method="GET", path=_NAMESPACES))
        return decode(response, NamespaceList).namespaces

    def namespace(self, name: str) -> Script[NamespaceView]:
        """A shared namespace and its permissions. Raises MemoryNotFoundError."""
        response = yield from exchange.again(
            Request(method="GET", path=f"{_NAMESPACES}/{part(name)}")
        )
        return decode(response, NamespaceView)

    def set_permissions(
        self,
        name: str,
        *,
        default: str | None = None,
        allow: Iterable[Grant | Mapping[str, str]] | None = None,
        version: int | None = None,
    ) -> Script[NamespaceView]:
        """Replaces the default level of a namespace, its list of grants, or both.

        allow: `{"agent": ..., "access": "none" | "read" | "write" | "admin"}` for each agent
        version: only if the namespace has this one
        """
        permissions = without_absent(
            {"default": default, "allow": None if allow is None else list(allow)}
        )
        response = yield from exchange.if_unsent(
            Request(
                method="PATCH",
                path=f"{_NAMESPACES}/{part(name)}",
                headers={} if version is None else {"If-Match": str(version)},
                body=exchange.encode({"permissions": permissions}),
            )
        )
        return decode(response, NamespaceView)

    def summary(self, agent_id: str | None = None) -> Script[SummaryView]:
        """How much an agent remembers, by default the client's own."""
        agent = yield from agent_or_own(self._session, agent_id)
        response = yield from exchange.again(
            Request(method="GET", path=f"/api/v1/agents/{part(agent)}/memory/summary")
        )
        return decode(response, SummaryView)

    def set_limits(
        self,
        agent_id: str,
        *,
        episodic_capacity: int | None = None,
        pinned_namespaces: Iterable[str] = (),
    ) -> Script[AgentLimitsView]:
        """Sets what holds for one agent; what is left out goes back to the default.

        episodic_capacity: how many episodic entries it may have
        pinned_namespaces: where its episodic entries are pinned when they are made
        """
        limits = {
            "episodic_capacity": episodic_capacity,
            "pinned_namespaces": list(pinned_namespaces),
        }
        response = yield from exchange.if_unsent(
            Request(
                method="PUT",
                path=f"/api/v1/agents/{part(agent_id)}/memory/limits",
                body=exchange.encode(limits),
            )
        )
        return decode(response, AgentLimitsView)
