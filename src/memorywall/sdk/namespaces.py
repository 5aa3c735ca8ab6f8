"""Namespaces, their permissions, and the limits of agents."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from memorywall.records.errors import MemoryConflictError, ResourceNotFoundError
from memorywall.records.namespace import Access, Grant
from memorywall.sdk.client_state import ClientState, agent_or_own
from memorywall.sdk.effects import Pause, RequestGenerator
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import backoff, call
from memorywall.wire.agents import AgentLimitsResponse, SummaryResponse
from memorywall.wire.namespaces import NamespaceBrief, NamespaceListResponse, NamespaceResponse

_FIRST_WAIT = 0.01
_LONGEST_WAIT = 0.5


class NamespacesCore:
    """The operations on namespaces and agents' limits, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def namespaces(self) -> RequestGenerator[list[NamespaceBrief]]:
        """Returns the shared namespaces that this client has access to, with its level in each."""
        return (yield from call("list_namespaces", NamespaceListResponse)).namespaces

    def namespace(self, name: str) -> RequestGenerator[NamespaceResponse]:
        """Returns a shared namespace and its permissions. Raises ResourceNotFoundError."""
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
        version: change only if the namespace has this version; 0 if it must not exist
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

    def grant(
        self, name: str, agent: str, access: str, *, episodic: bool = False
    ) -> RequestGenerator[NamespaceResponse]:
        """Gives an agent or a group a level in a namespace; the other grants stay. A namespace that
        does not exist is created, and the client's agent administers it.

        agent: a principal, or "group:" and the name of a group
        access: "none", "read", "write" or "admin"
        episodic: whether the members of the group may read each other's episodic memory in the
            namespace

        Raises MemoryAccessError, ValidationError, MemoryConflictError after several attempts.
        """
        grant = Grant(agent=agent, access=Access(access), episodic=episodic)
        return self._change_grants(name, agent, (grant,))

    def revoke(self, name: str, agent: str) -> RequestGenerator[NamespaceResponse]:
        """Removes the grant of an agent or a group; the default level applies to it from then on.
        Raises ResourceNotFoundError for a namespace that does not exist, and the errors of
        `grant`."""
        return self._change_grants(name, agent, ())

    def _change_grants(
        self, name: str, agent: str, new: tuple[Grant, ...]
    ) -> RequestGenerator[NamespaceResponse]:
        """Replaces the grant of one agent at the version that was read, and repeats this after the
        change of another client."""
        conflict: MemoryConflictError | None = None
        for pause in chain((0.0,), islice(backoff(_FIRST_WAIT, _LONGEST_WAIT, random.random), 16)):
            if pause:
                yield Pause(pause)
            stored: NamespaceResponse | None = None
            try:
                stored = yield from self.namespace(name)
            except ResourceNotFoundError:
                if not new:
                    raise
            if stored is None:
                # The grants of a new namespace replace the one that its creator would get.
                own = yield from agent_or_own(self._state, None)
                allow = [Grant(agent=own, access=Access.ADMIN)]
            else:
                allow = stored.permissions.allow
            try:
                return (
                    yield from self.set_permissions(
                        name,
                        allow=[*(one for one in allow if one.agent != agent), *new],
                        version=0 if stored is None else stored.version,
                    )
                )
            except MemoryConflictError as error:
                conflict = error
        raise conflict or AssertionError("the loop ends with a result or a conflict")

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
