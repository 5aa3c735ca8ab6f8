"""Coordinators of intents."""

from __future__ import annotations

import msgspec

from memorywall.coordination import coordinators
from memorywall.coordination.coordinators import NewCoordinator
from memorywall.records.coordinator import Guardrails
from memorywall.records.errors import ValidationError
from memorywall.server.dispatch import Call
from memorywall.server.filters import instant_in_body
from memorywall.server.replies import Reply, json_reply
from memorywall.wire.work import CoordinatorView, coordinator_view, guardrails_from


async def appoint_coordinator(call: Call) -> Reply:
    body = call.body
    script = await coordinators.appoint(
        call.door,
        call.principal,
        NewCoordinator(
            intent_id=body.intent_id,
            agent_id=body.agent_id,
            guardrails=_guardrails(body.guardrails),
            heartbeat_interval_seconds=body.heartbeat_interval_seconds,
            ends_at=instant_in_body("expires_at", body.expires_at),
            role=body.role,
            coordinator_type=body.coordinator_type,
            supervisor_id=body.supervisor_id,
            metadata=body.metadata,
        ),
    )
    made = await call.door.store.write(call.principal.tenant, script)
    return json_reply(coordinator_view(made, call.door.now()), 201)


async def get_coordinator(call: Call) -> Reply:
    found = await coordinators.get(call.door, call.principal, call.path["coordinator_id"])
    return json_reply(coordinator_view(found, call.door.now()))


async def list_coordinators(call: Call) -> Reply:
    found = await coordinators.list_of_intent(call.door, call.principal, call.path["intent_id"])
    now = call.door.now()
    views: list[CoordinatorView] = [coordinator_view(one, now) for one in found]
    return json_reply(views)


async def send_heartbeat(call: Call) -> Reply:
    script = await coordinators.heartbeat(call.door, call.principal, call.path["coordinator_id"])
    living = await call.door.store.write(call.principal.tenant, script)
    return json_reply(coordinator_view(living, call.door.now()))


async def resign_coordinator(call: Call) -> Reply:
    script = await coordinators.resign(call.door, call.principal, call.path["coordinator_id"])
    await call.door.store.write(call.principal.tenant, script)
    return Reply(204, b"")


def _guardrails(given: dict[str, object] | None) -> Guardrails | None:
    if given is None:
        return None
    try:
        return guardrails_from(given)
    except msgspec.ValidationError:
        raise ValidationError(
            "`guardrails`: the limits must be whole numbers, the namespaces lists of text"
        ) from None
