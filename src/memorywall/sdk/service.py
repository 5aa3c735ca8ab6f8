"""`client.events`, and what a client asks of the server itself, in no colour."""

from __future__ import annotations

from typing import TypeVar

from memorywall.sdk import exchange
from memorywall.sdk.problems import decode, raise_for
from memorywall.sdk.session import Session, agent_or_own, whoami
from memorywall.sdk.shapes import EventPage, Identity, read_event
from memorywall.sdk.steps import Request, Script, StreamScript, part
from memorywall.sdk.streams import follow_events
from memorywall.wire.agents import EventPage as WireEventPage
from memorywall.wire.agents import EventView
from memorywall.wire.service import Capabilities, Discovery, Readiness, Status

Shape = TypeVar("Shape")


class EventsLogic:
    """The operations on an agent's event stream, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list(
        self, after: int = 0, limit: int = 100, *, agent_id: str | None = None
    ) -> Script[EventPage]:
        """Events of an agent's stream after a sequence number, by default of the client's own."""
        agent = yield from agent_or_own(self._session, agent_id)
        response = yield from exchange.again(
            Request(
                method="GET",
                path=f"/api/v1/agents/{part(agent)}/events",
                params={"after": str(after), "limit": str(limit)},
                headers={"Accept": "application/json"},
            )
        )
        page = decode(response, WireEventPage)
        return EventPage(map(read_event, page.events), next=page.next)

    def follow(
        self, after: int = 0, *, agent_id: str | None = None, patience: float = 30.0
    ) -> StreamScript[EventView]:
        """Events of an agent's stream as they happen, each once and in order, without end.

        A connection that is cut is taken up again after the last event received, for up to
        `patience` seconds of pauses between attempts; then MemoryTransportError is raised. To end
        it, stop iterating and `close()` (or `aclose()`) the iterator.
        """
        agent = yield from agent_or_own(self._session, agent_id)
        yield from follow_events(f"/api/v1/agents/{part(agent)}/events", after, patience)


class ServiceLogic:
    """What a client asks of the server itself, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def capabilities(self) -> Script[Capabilities]:
        """What the server can do, and its limits."""
        return (yield from _read("/api/v1/capabilities", Capabilities))

    def discover(self) -> Script[Discovery]:
        """The OpenIntent discovery document."""
        return (yield from _read("/.well-known/openintent.json", Discovery))

    def health(self) -> Script[Status]:
        """Whether the server is alive."""
        return (yield from _read("/health", Status))

    def ready(self) -> Script[Readiness]:
        """Whether the server can read its store and open what is sealed, and how far embedding
        is."""
        return (yield from _read("/ready", Readiness))

    def metrics(self) -> Script[str]:
        """What can be measured of the server, in the text format of Prometheus."""
        response = yield from exchange.again(Request(method="GET", path="/metrics"))
        raise_for(response)
        return response.body.decode()

    def whoami(self) -> Script[Identity]:
        """Who the server takes this client for."""
        return (yield from whoami(self._session))


def _read(path: str, shape: type[Shape]) -> Script[Shape]:
    response = yield from exchange.again(Request(method="GET", path=path))
    return decode(response, shape)
