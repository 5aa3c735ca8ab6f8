"""Intents, their state and their log."""

from __future__ import annotations

from memorywall.coordination import intents
from memorywall.coordination.access import readable
from memorywall.coordination.intents import NewIntent, Patch
from memorywall.records.errors import MemoryAccessError, RequestError
from memorywall.records.intent import Intent
from memorywall.server.dispatch import Call
from memorywall.server.filters import instant
from memorywall.server.follow import event_stream, start_of, wants_stream
from memorywall.server.once import write_once
from memorywall.server.replies import Reply, Stream, json_reply
from memorywall.wire.agents import EventPage, event_view
from memorywall.wire.work import IntentList, intent_view


async def create_intent(call: Call) -> Reply:
    return await make_intent(call, call.body.parent_intent_id)


async def make_intent(call: Call, parent: str | None) -> Reply:
    """Makes the intent a body describes below another, or below none."""
    body = call.body
    if body.created_by not in (None, call.principal.id):
        raise MemoryAccessError("`created_by` must be the agent this request speaks for")
    constraints = body.constraints
    script = await intents.create(
        call.door,
        call.principal,
        NewIntent(
            title=body.title,
            description=body.description,
            state=body.state,
            constraints={"rules": constraints} if isinstance(constraints, list) else constraints,
            parent_intent_id=parent,
            depends_on=tuple(body.depends_on),
        ),
    )
    return await write_once(
        call,
        script,
        lambda made: intent_reply(made, 201),
        lambda made: (),
        recheck=readable(call.door, call.principal),
    )


async def get_intent(call: Call) -> Reply:
    return intent_reply(await intents.get(call.door, call.principal, call.path["intent_id"]))


async def list_intents(call: Call) -> Reply:
    asked = call.query
    page = await intents.list_intents(
        call.door, call.principal, asked.status, asked.limit, asked.offset
    )
    return json_reply(
        IntentList(
            intents=[intent_view(one) for one in page.intents],
            total=page.total,
            limit=asked.limit,
            offset=asked.offset,
        )
    )


async def patch_intent_state(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    patches = [Patch(op=one.op, path=one.path, value=one.value) for one in call.body.patches]
    script = await intents.patch_state(
        call.door, call.principal, call.path["intent_id"], call.if_match, patches
    )
    return intent_reply(await call.door.store.write(call.principal.tenant, script))


async def set_intent_status(call: Call) -> Reply:
    assert call.if_match is not None  # noqa: S101 - the table requires it
    script = await intents.set_status(
        call.door,
        call.principal,
        call.path["intent_id"],
        call.if_match,
        call.body.status,
        call.body.reason,
    )
    return intent_reply(await call.door.store.write(call.principal.tenant, script))


async def log_intent_event(call: Call) -> Reply:
    body = call.body
    payload = dict(body.payload)
    for name in ("trace_id", "parent_event_id"):
        if getattr(body, name) is not None:
            payload.setdefault(name, getattr(body, name))
    script = await intents.log_event(
        call.door, call.principal, call.path["intent_id"], body.event_type, payload, body.actor
    )
    return await write_once(
        call,
        script,
        lambda event: json_reply(event_view(event), 201),
        lambda event: (),
        recheck=readable(call.door, call.principal, call.path["intent_id"]),
    )


async def list_intent_events(call: Call) -> Reply | Stream:
    asked, intent_id = call.query, call.path["intent_id"]
    if wants_stream(call):
        if asked.event_type is not None or asked.since is not None:
            raise RequestError("a stream tells everything; leave `event_type` and `since` out")
        return await _follow(call, intent_id, start_of(call, asked.after))
    events = await intents.list_events(
        call.door,
        call.principal,
        intent_id,
        asked.after,
        asked.limit,
        kind=asked.event_type,
        since=instant("since", asked.since),
    )
    views = [event_view(event, with_values=True) for event in events]
    return json_reply(EventPage(events=views, next=events[-1].seq if events else asked.after))


async def subscribe_intent(call: Call) -> Stream:
    intent_id = call.path["intent_id"]
    after = call.query.after
    if after is None:
        after = await intents.last_event(call.door, call.principal, intent_id)
    return await _follow(call, intent_id, start_of(call, after))


def intent_reply(intent: Intent, status: int = 200) -> Reply:
    """An intent with its version as ETag."""
    headers = ((b"etag", b'"%d"' % intent.version),)
    return json_reply(intent_view(intent), status, headers)


async def _follow(call: Call, intent_id: str, after: int) -> Stream:
    pages = intents.follow_events(call.door, call.principal, intent_id, after)
    return await event_stream(call, pages, lambda event: event_view(event, with_values=True))
