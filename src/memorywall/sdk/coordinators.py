"""`client.coordinators`: authority over intents, in no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memorywall.records.errors import FencedError, MemoryNotFoundError
from memorywall.sdk import exchange
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.problems import decode
from memorywall.sdk.session import Session, agent_or_own
from memorywall.sdk.steps import Request, Script, part
from memorywall.wire.work import CoordinatorView

_COORDINATORS = "/api/v1/coordinators"


class CoordinatorsLogic:
    """The operations on coordinators, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

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
    ) -> Script[CoordinatorView]:
        """Puts an agent, by default the client's own, in authority over an intent, for as long as
        its heartbeats come. Raises HeldError while another one is.

        guardrails: what shall bound the memory of the intent's tasks:
            `max_working_memory_per_task`, `max_episodic_memory_per_agent`,
            `allowed_semantic_namespaces`, `denied_semantic_namespaces`,
            `memory_archive_required`, and others, which are kept
        A reply that is lost may leave the agent in authority; `list` tells.
        """
        agent = yield from agent_or_own(self._session, agent_id)
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
        response = yield from exchange.if_unsent(
            Request(method="POST", path=_COORDINATORS, body=exchange.encode(body))
        )
        return decode(response, CoordinatorView)

    def get(self, coordinator_id: str) -> Script[CoordinatorView]:
        """A coordinator, past or present."""
        response = yield from exchange.again(
            Request(method="GET", path=f"{_COORDINATORS}/{part(coordinator_id)}")
        )
        return decode(response, CoordinatorView)

    def list(self, intent_id: str) -> Script[Sequence[CoordinatorView]]:
        """The coordinators an intent has had, oldest first."""
        response = yield from exchange.again(
            Request(method="GET", path=f"/api/v1/intents/{part(intent_id)}/coordinators")
        )
        return decode(response, list[CoordinatorView])

    def heartbeat(self, coordinator_id: str) -> Script[CoordinatorView]:
        """A sign of life of this client, which keeps its authority. Raises FencedError when that is
        over, however lately."""
        response = yield from exchange.again(
            Request(method="POST", path=f"{_COORDINATORS}/{part(coordinator_id)}/heartbeat")
        )
        return decode(response, CoordinatorView)

    def resign(self, coordinator_id: str) -> Script[None]:
        """Gives this client's authority back. Raises FencedError when it has none any more."""
        yield from exchange.remove(
            f"{_COORDINATORS}/{part(coordinator_id)}", gone=(FencedError, MemoryNotFoundError)
        )
