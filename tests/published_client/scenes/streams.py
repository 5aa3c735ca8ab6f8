"""An intent's events as they happen; the asynchronous client has no streams."""

from __future__ import annotations

import threading
import time
from typing import Any

from openintent import EventType, IntentStatus
from openintent.streaming import EventQueue, SSEEvent, SSEStream

from tests.published_client.colours import Client

LIMIT = 30.0


END = {"text": "end"}


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Watch {name}", "")).id
    listener = Listener(await ana.subscribe_sse(intent))
    with await ana.create_event_queue(intent_id=intent) as queue:
        # A stream may begin with what has been or with what comes: speak until both answer.
        await _speak_until(ana, intent, listener, queue)
        await _act(ana, intent)
        queued = _take_all(queue)
    listener.thread.join(LIMIT)
    assert not listener.thread.is_alive(), f"the end did not come; there was {listener.events}"
    return {
        "intent": intent,
        "streamed": [vars(event) for event in listener.events],
        "queued": [vars(event) for event in queued],
        "refused": vars(await _first(await ben.subscribe_sse(intent))),
    }


class Listener:
    """Reads a stream up to the last event, in a thread, for reading waits."""

    def __init__(self, stream: SSEStream) -> None:
        self._stream = stream
        self.events: list[SSEEvent] = []
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        for event in self._stream:
            self.events.append(event)
            if event.data.get("payload") == END:
                break


def _take_all(queue: EventQueue) -> list[SSEEvent]:
    events: list[SSEEvent] = []
    deadline = time.monotonic() + LIMIT
    while not events or events[-1].data.get("payload") != END:
        event = queue.get(timeout=max(deadline - time.monotonic(), 0))
        assert event is not None, f"the queue stayed without the last event; it had {events}"
        events.append(event)
    return events


async def _first(stream: SSEStream) -> SSEEvent:
    """What a stream begins with, which for a refusal is an event of the client's own."""
    with stream:
        return next(iter(stream))


async def _speak_until(ana: Client, intent: str, listener: Listener, queue: EventQueue) -> None:
    deadline = time.monotonic() + LIMIT
    heard = False
    while not (heard and listener.events):
        assert time.monotonic() < deadline, "nothing came from the streams"
        await ana.log_event(intent, EventType.COMMENT, {"text": "is anybody there?"})
        heard = heard or queue.get(timeout=0.2) is not None


async def _act(ana: Client, intent: str) -> None:
    """Does what the streams must tell."""
    await ana.log_event(intent, EventType.COMMENT, {"text": "begin"})
    changed = await ana.update_state(intent, 1, {"phase": "on"})
    lease = await ana.acquire_lease(intent, "desk")
    await ana.release_lease(intent, lease.id)
    await ana.set_status(intent, changed.version, IntentStatus.COMPLETED)
    await ana.log_event(intent, EventType.COMMENT, END)
