"""Every surface of work, compared with the oracle for one caller; and those by which work shows
memory: the logs of intents, the memory of a task, the route of the bridge."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from tests.oracle import work_ledger
from tests.oracle.callers import AGENTS
from tests.oracle.rules import admits, found
from tests.oracle.session import agree
from tests.oracle.surfaces import told
from tests.oracle.wire import server_sent_events
from tests.oracle.work_rules import is_live, may_in_intent, may_see_task
from tests.oracle.work_session import NO_INTENT, NO_TASK, SCOPES, WorkSession, bridged, scope_name
from tests.oracle.world import Body, Caller, Hold, Intent, Job

_API = "/api/v1"
_STATUSES = ("ready", "claimed", "running", "completed")


async def look_at_work(session: WorkSession, caller: Caller, random: Random) -> None:
    """All surfaces of work, one after the other."""
    await look_at_intents(session, caller, random)
    await look_at_tasks(session, caller, random)
    await look_at_coordinators(session, caller)
    await look_at_claims(session, caller, random)
    await look_at_bridge(session, caller, random)


async def look_at_intents(session: WorkSession, caller: Caller, random: Random) -> None:
    """The list of intents, and each with all that hangs on it, in both tenants."""
    world = session.world
    readable = [one for one in world.intents.values() if may_in_intent(world, caller, one, "read")]
    readable.sort(key=lambda one: -one.order)
    limit, offset = random.choice((1, 2, 50)), random.choice((0, 0, 1))
    page = await session.ask(
        caller, "GET", f"{_API}/intents", query={"limit": str(limit), "offset": str(offset)}
    )
    if "memory.read" not in caller.permissions:
        agree(caller, "GET /intents", page.status, 403)
    else:
        shown = ([one["id"] for one in page.json["intents"]], page.json["total"])
        expected = [one.id for one in readable[offset : offset + limit]]
        agree(caller, f"GET /intents {limit} from {offset}", shown, (expected, len(readable)))
    for intent_id in (*world.intents, NO_INTENT):
        await look_at_intent(session, caller, intent_id, random)


async def look_at_intent(
    session: WorkSession, caller: Caller, intent_id: str, random: Random
) -> None:
    """An intent, its access list, its tasks, its coordinators and its log."""
    path = f"{_API}/intents/{intent_id}"
    refusals = work_ledger.intent_refusals(session.world, caller, intent_id, "read")
    if refusals:
        rests = ("/acl", "/tasks", "/coordinators", "/events", "/leases", "/subscribe")
        for rest in ("", *random.sample(rests, 3)):
            answer = await session.ask(caller, "GET", path + rest)
            agree(caller, f"GET {path}{rest} status", {answer.status}, refusals)
        live = await session.ask(caller, "GET", f"{path}/events", headers=_STREAM)
        agree(caller, f"stream of {path} status", {live.status}, refusals)
        return
    intent = session.world.intents[intent_id]
    answer = await session.ask(caller, "GET", path)
    agree(caller, f"GET {path}", (answer.status, answer.json.get("id")), (200, intent_id))
    agree(caller, f"maker of {path}", answer.json["created_by"], intent.creator)
    answer = await session.ask(caller, "GET", f"{path}/acl")
    agree(caller, f"GET {path}/acl", access_list(answer.json), known_access_list(intent))
    answer = await session.ask(caller, "GET", f"{path}/tasks")
    jobs = [job for job in session.world.jobs.values() if job.intent == intent_id]
    shown = [task_shown(one) for one in answer.json]
    agree(caller, f"GET {path}/tasks", shown, [task_known(job) for job in jobs])
    answer = await session.ask(caller, "GET", f"{path}/coordinators")
    ids = [one.id for one in session.world.overseers.values() if one.intent == intent_id]
    agree(caller, f"GET {path}/coordinators", [one["id"] for one in answer.json], ids)
    await look_at_log(session, caller, intent_id, random)


_STREAM = {"Accept": "text/event-stream"}


async def look_at_log(session: WorkSession, caller: Caller, intent_id: str, random: Random) -> None:
    """What an intent's log tells of memory, as a page, by type, and as Server-Sent Events."""
    path = f"{_API}/intents/{intent_id}/events"
    page = await session.ask(caller, "GET", path, query={"limit": "1000"})
    agree(caller, f"GET {path} status", page.status, 200)
    events = page.json["events"]
    agree(caller, f"whose log {path} is", {intent_id, *_intents_of(events)}, {intent_id})
    log = known_log(session, caller, intent_id)
    agree(caller, f"GET {path}", log_of_memory(events), log)
    kind = random.choice(("memory.archived", "memory.created"))
    page = await session.ask(caller, "GET", path, query={"limit": "1000", "event_type": kind})
    of_kind = [event for event in log if event["type"] == kind]
    agree(caller, f"GET {path} {kind}", log_of_memory(page.json["events"]), of_kind)
    after = random.choice([0, *(event["seq"] for event in events)])
    rest = [event for event in events if event["seq"] > after]
    headers = {**_STREAM, "Last-Event-ID": str(after)}
    for place in (path, f"{_API}/intents/{intent_id}/subscribe"):
        live = await session.ask(caller, "GET", place, headers=headers)
        agree(caller, f"stream {place} after {after}", server_sent_events(live.text), rest)


def known_log(session: WorkSession, caller: Caller, intent_id: str) -> list[Body]:
    """What the log must tell of memory."""
    return [
        event["shown"]
        for event in session.world.events
        if event["tenant"] == caller.tenant and event["shown"].get("intent_id") == intent_id
    ]


def log_of_memory(events: list[Body]) -> list[Body]:
    """What a log tells of memory; of a digest only that there is one."""
    told_events = [told(event) for event in events if event["type"].startswith("memory.")]
    shown = copy.deepcopy(told_events)
    for event in shown:
        if "snapshot" not in event["data"]:
            continue
        for kept in event["data"]["snapshot"]:
            if "digest" in kept:
                kept["digest"] = kept["digest"].startswith("hmac-sha256:")
                # The name of the key it was made with, which is not the key.
                kept.pop("digest_key", None)
        event["data"]["snapshot"].sort(key=lambda kept: str(kept["entry_id"]))
    return shown


def _intents_of(events: list[Body]) -> set[str]:
    return {event["intent_id"] for event in events}


def access_list(shown: Body) -> Any:
    """An access list as it is compared."""
    lines = sorted((one["id"], one["principal_id"], one["permission"]) for one in shown["entries"])
    return shown["default_policy"], lines


def known_access_list(intent: Intent) -> Any:
    """The same as the oracle knows it."""
    lines = sorted((line.id, line.agent, line.level) for line in intent.lines)
    return "open" if intent.open else "closed", lines


async def look_at_tasks(session: WorkSession, caller: Caller, random: Random) -> None:
    """Each task by its id, the lists of agents' tasks, and the memory of each task."""
    world = session.world
    for task_id in (*world.jobs, NO_TASK):
        job = world.jobs.get(task_id)
        answer = await session.ask(caller, "GET", f"{_API}/tasks/{task_id}")
        if job is None or job.tenant != caller.tenant:
            agree(caller, f"GET {task_id} status", answer.status, 404)
        elif not may_see_task(world, caller, job):
            agree(caller, f"GET {task_id} status", answer.status, 403)
        else:
            agree(caller, f"GET {task_id} status", answer.status, 200)
            agree(caller, f"GET {task_id}", task_shown(answer.json), task_known(job))
    for task_id in random.sample(session.task_names, min(4, len(session.task_names))):
        await look_at_task_memory(session, caller, task_id)
    for agent in (None, *random.sample(AGENTS, 2)):
        await look_at_agents_tasks(session, caller, agent, random)


async def look_at_task_memory(session: WorkSession, caller: Caller, task_id: str) -> None:
    """The query by which an agent resumes (section 8.1)."""
    wanted = {"scope.task_id": task_id, "memory_type": "working"}
    answer = await session.ask(caller, "GET", f"{_API}/memory", query=wanted)
    expected = [entry.body for _, entry in found(session.world, caller, wanted)]
    agree(caller, f"memory of {task_id}", (answer.status, answer.json["entries"]), (200, expected))
    agree(caller, f"size of the memory of {task_id}", answer.json["total"], len(expected))


async def look_at_agents_tasks(
    session: WorkSession, caller: Caller, agent: str | None, random: Random
) -> None:
    """GET /tasks: a page of what the caller may read of an agent's tasks; the rest is left out as
    if it were not there. In one intent, only for who may read that."""
    status = random.choice((None, None, *_STATUSES))
    limit, offset = random.choice((1, 2, 100)), random.choice((0, 0, 1))
    asked = {"limit": str(limit), "offset": str(offset)}
    if agent is not None:
        asked["assigned_agent"] = agent
    if status is not None:
        asked["status"] = status
    intent_id = random.choice((None, None, *session.world.intents))
    if intent_id is not None:
        asked["intent_id"] = intent_id
    answer = await session.ask(caller, "GET", f"{_API}/tasks", query=asked)
    if intent_id is not None:
        refusals = work_ledger.intent_refusals(session.world, caller, intent_id, "read")
        agree(caller, f"GET /tasks {asked} status", {answer.status}, refusals or {200})
        if refusals:
            return
    if "memory.read" not in caller.permissions and answer.status == 403:
        return
    jobs = [
        task_known(job)
        for job in session.world.jobs.values()
        if (job.tenant, job.assigned) == (caller.tenant, agent or caller.id)
        and may_see_task(session.world, caller, job)
        and status in (None, job.status)
        and intent_id in (None, job.intent)
    ]
    shown = [task_shown(one) for one in answer.json]
    agree(caller, f"GET /tasks {asked}", shown, jobs[offset : offset + limit])


def task_shown(view: Body) -> Body:
    """What of a task is compared."""
    present = view["assignments"][-1] if view["assignments"] else {"ended_at": ""}
    return {
        "id": view["id"],
        "intent": view["intent_id"],
        "status": (view["status"], view["state"]),
        "assigned": view.get("assigned_agent"),
        "accepted": "ended_at" not in present and "accepted_at" in present,
        "parent": view.get("parent_task_id"),
    }


def task_known(job: Job) -> Body:
    """The same as the oracle knows it."""
    return {
        "id": job.id,
        "intent": job.intent,
        "status": (job.status, job.status),
        "assigned": job.assigned,
        "accepted": job.accepted,
        "parent": job.parent,
    }


async def look_at_coordinators(session: WorkSession, caller: Caller) -> None:
    """Each coordinator by its id, for who may read its intent."""
    world = session.world
    for overseer in world.overseers.values():
        answer = await session.ask(caller, "GET", f"{_API}/coordinators/{overseer.id}")
        refusals = work_ledger.intent_refusals(world, caller, overseer.intent, "read")
        where = f"GET /coordinators/{overseer.id}"
        agree(caller, f"{where} status", {answer.status}, refusals or {200})
        if not refusals:
            live = is_live(world, world.holds.get((overseer.tenant, overseer.token)))
            agree(caller, where, answer.json["status"] == "active", live)


async def look_at_claims(session: WorkSession, caller: Caller, random: Random) -> None:
    """Claims by scope, by agent and by their ids, in both tenants."""
    for namespace in SCOPES:
        if scope_name(namespace) == "agent":
            namespace = f"shared/agent/{caller.id}"
        asked = {"scope": scope_name(namespace)}
        seen = [one for one in seen_claims(session, caller) if one.place == namespace]
        await _compare_claims(session, caller, asked, seen)
    for agent in (caller.id, random.choice(AGENTS)):
        seen = [one for one in seen_claims(session, caller) if one.holder == agent]
        await _compare_claims(session, caller, {"agent_id": agent}, seen)
    for claim_id, (tenant, _, namespace) in session.world.claims.items():
        answer = await session.ask(caller, "GET", f"{_API}/claims/{claim_id}")
        right = 200 if may_see_scope(session, caller, namespace) else 403
        if work_ledger.claim_of(session.world, caller, claim_id) is None:
            right = 404
        agree(caller, f"GET /claims/{claim_id} of {tenant}", answer.status, right)


def may_see_scope(session: WorkSession, caller: Caller, namespace: str) -> bool:
    """Whether the caller may read a scope of shared state."""
    reads = "memory.read" in caller.permissions
    return reads and admits(session.world, caller, namespace, "read")


def seen_claims(session: WorkSession, caller: Caller) -> list[Hold]:
    """The live claims in scopes the caller may read."""
    return [
        hold
        for hold in session.world.holds.values()
        if (hold.tenant, hold.kind) == (caller.tenant, "claim")
        and is_live(session.world, hold)
        and may_see_scope(session, caller, hold.place)
    ]


async def _compare_claims(
    session: WorkSession, caller: Caller, asked: dict[str, str], seen: list[Hold]
) -> None:
    answer = await session.ask(caller, "GET", f"{_API}/claims", query=asked)
    if "memory.read" not in caller.permissions and answer.status == 403:
        return
    shown = sorted(one["id"] for one in answer.json["claims"])
    agree(caller, f"GET /claims {asked}", shown, sorted(one.id for one in seen))


async def look_at_bridge(session: WorkSession, caller: Caller, random: Random) -> None:
    """Working memory by its name: no more than a query would show. The route takes no namespace
    with a slash."""
    bound = [
        entry.body
        for entry in session.world.entries.values()
        if entry.tenant == caller.tenant
        and entry.body["memory_type"] == "working"
        and "/" not in entry.body["namespace"]
    ]
    for body in random.sample(bound, min(3, len(bound))):
        names = {name: body[name] for name in ("agent_id", "namespace", "key")}
        path = f"{body['agent_id']}/memory/{body['namespace']}/{body['key']}"
        hits = found(session.world, caller, {**names, "memory_type": "working"})
        answer = await session.ask(caller, "GET", f"{_API}/agents/{path}")
        # Whether another agent has something of this name is told to nobody: it is the same 403.
        missing = 404 if body["agent_id"] == caller.id else 403
        agree(caller, f"GET of the bridge, {path}", answer.status, 200 if hits else missing)
        if hits:
            agree(caller, f"GET of the bridge, {path}", answer.json, bridged(hits[0][1].body))
