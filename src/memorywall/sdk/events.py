"""`client.events`: the event streams of agents."""

from __future__ import annotations

from memorywall.sdk.client_state import ClientState, agent_or_own
from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.models import EventPage, read_event
from memorywall.sdk.retry import call
from memorywall.sdk.streams import follow_events
from memorywall.wire.events import EventPageResponse as WireEventPage
from memorywall.wire.events import EventResponse


class EventsCore:
    """The operations on an agent's event stream, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def list(
        self,
        after: int = 0,
        limit: int = 100,
        *,
        agent_id: str | None = None,
        entry_id: str | None = None,
    ) -> RequestGenerator[EventPage]:
        """Returns events of an agent's stream after a sequence number.

        agent_id: default: the client's own agent
        entry_id: only events about this entry; the stream ends where `next` is `after`. Default:
            any
        """
        agent = yield from agent_or_own(self._state, agent_id)
        query = {"after": after, "limit": limit, "entry_id": entry_id}
        page = yield from call("list_events", WireEventPage, agent_id=agent, query=query)
        return EventPage(map(read_event, page.events), next=page.next)

    def follow(
        self, after: int = 0, *, agent_id: str | None = None, patience: float = 30.0
    ) -> StreamGenerator[EventResponse]:
        """Iterates over events of an agent's stream as they occur, each once and in order, without
        end.

        After a broken connection the stream resumes after the last received event, for up to
        `patience` seconds of pauses between attempts; then MemoryTransportError is raised. To end
        the stream, stop iterating and call `close()` (or `aclose()`) on the iterator.
        """
        agent = yield from agent_or_own(self._state, agent_id)
        yield from follow_events("list_events", {"agent_id": agent}, after, patience)


class _EventsMethods:
    list = method(EventsCore.list)
    follow = stream_method(EventsCore.follow)


class EventsClient(_EventsMethods, Facade[EventsCore]):
    """Reads and follows agents' event streams."""


class AsyncEventsClient(_EventsMethods, AsyncFacade[EventsCore]):
    """Reads and follows agents' event streams."""
