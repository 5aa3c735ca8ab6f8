"""`client.coordinators`: coordinators of intents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memorywall.records.errors import FencedError, MemoryNotFoundError
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState, agent_or_own
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.retry import call
from memorywall.wire.coordinators import CoordinatorResponse


class CoordinatorsCore:
    """The operations on coordinators, as request generators."""

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
        """Appoints an agent (default: the client's own) as coordinator of an intent until its
        heartbeats stop. Raises LeaseHeldError while the intent has another coordinator.

        guardrails: limits for memory of the intent's tasks: `max_working_memory_per_task`,
            `max_episodic_memory_per_agent`, `allowed_semantic_namespaces`,
            `denied_semantic_namespaces`, `memory_archive_required`; other guardrails are only
            stored

        If the response is lost, the agent may be coordinator; `list` shows this.
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
        """Returns a current or former coordinator."""
        return call("get_coordinator", CoordinatorResponse, coordinator_id=coordinator_id)

    def list(self, intent_id: str) -> RequestGenerator[Sequence[CoordinatorResponse]]:
        """Returns the coordinators that an intent has had, oldest first."""
        return call("list_coordinators", list[CoordinatorResponse], intent_id=intent_id)

    def heartbeat(self, coordinator_id: str) -> RequestGenerator[CoordinatorResponse]:
        """Sends a heartbeat, which renews the coordinator's lease. Raises FencedError if the lease
        is over."""
        return call("send_heartbeat", CoordinatorResponse, coordinator_id=coordinator_id)

    def resign(self, coordinator_id: str) -> RequestGenerator[None]:
        """Resigns as coordinator. Raises FencedError if the lease is over."""
        return retry.remove(
            "resign_coordinator",
            coordinator_id=coordinator_id,
            gone=(FencedError, MemoryNotFoundError),
        )


class _CoordinatorsMethods:
    create = method(CoordinatorsCore.create)
    get = method(CoordinatorsCore.get)
    list = method(CoordinatorsCore.list)
    heartbeat = method(CoordinatorsCore.heartbeat)
    resign = method(CoordinatorsCore.resign)


class CoordinatorsClient(_CoordinatorsMethods, Facade[CoordinatorsCore]):
    """Appoints coordinators of intents."""


class AsyncCoordinatorsClient(_CoordinatorsMethods, AsyncFacade[CoordinatorsCore]):
    """Appoints coordinators of intents."""
