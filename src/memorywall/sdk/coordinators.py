"""`client.coordinators`: authority over intents, in no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memorywall.records.errors import FencedError, MemoryNotFoundError
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState, agent_or_own
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.retry import call
from memorywall.wire.work import CoordinatorResponse


class CoordinatorsCore:
    """The operations on coordinators, as scripts for a driver."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def create(
        self,
        intent_id: str,
        agent_id: str | None = None,
        *,
        guardrails: Mapping[str, Any] | None = None,
        heartbeat_interval_seconds: int = 60,
        expires_at: datetime | str | None = None,
        role: str | None = None,
        coordinator_type: str | None = None,
        supervisor_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> RequestGenerator[CoordinatorResponse]:
        """Puts an agent, by default the client's own, in authority over an intent, for as long as
        its heartbeats come. Raises LeaseHeldError while another one is.

        guardrails: what shall bound the memory of the intent's tasks:
            `max_working_memory_per_task`, `max_episodic_memory_per_agent`,
            `allowed_semantic_namespaces`, `denied_semantic_namespaces`,
            `memory_archive_required`, and others, which are kept
        A reply that is lost may leave the agent in authority; `list` tells.
        """
        agent = yield from agent_or_own(self._state, agent_id)
        body = without_absent(
            {
                "intent_id": intent_id,
                "agent_id": agent,
                "guardrails": guardrails,
                "heartbeat_interval_seconds": heartbeat_interval_seconds,
                "expires_at": None if expires_at is None else instant(expires_at),
                "role": role,
                "coordinator_type": coordinator_type,
                "supervisor_id": supervisor_id,
                "metadata": metadata,
            }
        )
        return (yield from call("appoint_coordinator", CoordinatorResponse, body=body))

    def get(self, coordinator_id: str) -> RequestGenerator[CoordinatorResponse]:
        """A coordinator, past or present."""
        return call("get_coordinator", CoordinatorResponse, coordinator_id=coordinator_id)

    def list(self, intent_id: str) -> RequestGenerator[Sequence[CoordinatorResponse]]:
        """The coordinators an intent has had, oldest first."""
        return call("list_coordinators", list[CoordinatorResponse], intent_id=intent_id)

    def heartbeat(self, coordinator_id: str) -> RequestGenerator[CoordinatorResponse]:
        """A sign of life of this client, which keeps its authority. Raises FencedError when that is
        over, however lately."""
        return call("send_heartbeat", CoordinatorResponse, coordinator_id=coordinator_id)

    def resign(self, coordinator_id: str) -> RequestGenerator[None]:
        """Gives this client's authority back. Raises FencedError when it has none any more."""
        return retry.remove(
            "resign_coordinator",
            coordinator_id=coordinator_id,
            gone=(FencedError, MemoryNotFoundError),
        )
