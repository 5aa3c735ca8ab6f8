"""The event log of an intent: every type there is, and the helpers that write to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from openintent import EventType, OpenIntentError

from tests.published_client.colours import Client, refused

CALL = {"tool_name": "search", "tool_id": "call-1", "arguments": {"query": "ACME"}}
MODEL = {"provider": "local", "model": "small"}
REQUEST = {"request_id": "req-1", "messages_count": 2, **MODEL}
STREAM = {"stream_id": "str-1", **MODEL}
COUNTED = {"chunks_received": 3, "tokens_streamed": 9}
HELPERS: dict[str, dict[str, Any]] = {
    "log_tool_call_started": {**CALL, **MODEL, "parent_request_id": "req-0"},
    "log_tool_call_completed": {**CALL, **MODEL, "result": {"hits": 2}, "duration_ms": 12},
    "log_tool_call_failed": {**CALL, **MODEL, "error": "no answer", "duration_ms": 30},
    "log_llm_request_started": {**REQUEST, "tools_available": ["search"], "temperature": 0.5},
    "log_llm_request_completed": {
        **REQUEST,
        "response_content": "done",
        "finish_reason": "stop",
        "total_tokens": 7,
    },
    "log_llm_request_failed": {**REQUEST, "error": "overloaded", "duration_ms": 5},
    "start_stream": STREAM,
    "log_stream_chunk": {"stream_id": "str-1", "chunk_index": 0, "token_count": 3},
    "complete_stream": {**STREAM, **COUNTED},
    "cancel_stream": {**STREAM, **COUNTED, "reason": "enough"},
}


async def play(ana: Client, ben: Client, name: str) -> dict[str, Any]:
    intent = (await ana.create_intent(f"Log {name}", "")).id
    cause = await ana.log_event(intent, EventType.COMMENT, {"text": "here is why"})
    traced = await ana.log_event(
        intent, EventType.COMMENT, {"text": "and so"}, trace_id="a" * 32, parent_event_id=cause.id
    )
    return {
        "intent": intent,
        "cause": cause,
        "traced": traced,
        "outcomes": await _log_every_type(ana, intent),
        "helpers": {
            helper: await getattr(ana, helper)(intent, **arguments)
            for helper, arguments in HELPERS.items()
        },
        "log": await ana.get_events(intent, limit=1_000),
        "comments": await ana.get_events(intent, event_type=EventType.COMMENT, limit=1_000),
        "first_two": await ana.get_events(intent, limit=2),
        "since_yesterday": len(await ana.get_events(intent, since=_days(-1), limit=1_000)),
        "since_tomorrow": len(await ana.get_events(intent, since=_days(1), limit=1_000)),
        "hidden": await refused(ben.get_events(intent)),
        "forged": await refused(ben.log_event(intent, EventType.COMMENT, {"text": "not mine"})),
    }


def _days(count: int) -> datetime:
    # With microseconds, which the client does not cut off.
    return datetime.now(UTC).replace(microsecond=123_456) + timedelta(days=count)


async def _log_every_type(ana: Client, intent: str) -> dict[str, int]:
    """The status that the client saw for each type it knows, 201 where it was content."""
    outcomes: dict[str, int] = {}
    for kind in EventType:
        try:
            event = await ana.log_event(intent, kind, {"said": kind.value})
        except OpenIntentError as error:
            outcomes[kind.value] = error.status_code or 0
        else:
            assert event.event_type is kind, event
            outcomes[kind.value] = 201
    return outcomes
