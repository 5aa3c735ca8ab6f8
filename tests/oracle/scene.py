"""A service with work: intents, running tasks, a coordinator, claims, and memory of all kinds.

Every example begins with one, so that there is something to see for everybody from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.oracle.callers import CALLERS
from tests.oracle.rules import AGENT_TIERS, SHARED_TIERS
from tests.oracle.session import NAMESPACES
from tests.oracle.surfaces import KEYS, TAGS
from tests.oracle.work_session import SCOPES, WorkSession, grant_body
from tests.oracle.world import Body, Caller

WORKERS = ("ada", "bob", "carol", "desk", "chief")
SENSITIVITIES = ("public", "internal", "confidential", "restricted")
SECONDS = (30, 60, 600)
Finish = Callable[[Caller, Body], Body]


def some_guardrails(random: Random) -> Body | None:
    """Bounds on namespaces, or none."""
    guardrails: Body = {"memory_archive_required": random.random() < 0.5}
    kind = random.random()
    if kind < 0.45:
        guardrails["denied_semantic_namespaces"] = random.sample(NAMESPACES, 1)
    elif kind < 0.75:
        guardrails["allowed_semantic_namespaces"] = random.sample(NAMESPACES, 2)
    return guardrails if kind < 0.85 else None


def some_task(random: Random, intent_id: str, parent: str | None, agent: str | None) -> Body:
    """A task to be made."""
    body: Body = {
        "intent_id": intent_id,
        "name": "Collect the figures",
        "memory_policy": {
            "inherit_from_parent": parent is not None and random.random() < 0.6,
            "archive_on_completion": random.random() < 0.8,
        },
    }
    if parent is not None:
        body["parent_task_id"] = parent
    if agent is not None:
        body["assigned_agent"] = agent
    return body


async def set_scene(session: WorkSession, random: Random, tenant: str, finish: Finish) -> None:
    """Fills a tenant; `finish` puts a marked value into a draft."""
    cast = [CALLERS[f"{tenant}/{name}"] for name in random.sample(WORKERS, len(WORKERS))]
    boss, lead, one, two, other = cast
    first = await session.create_intent(boss)
    second = await session.create_intent(other)
    assert first is not None
    assert second is not None
    named = random.choice((other.id, "dora", "dora", "dora"))
    life = random.choice((None, 30, 60, 600))
    lines = [grant_body(named, random.choice(("read", "write")), session.world.now, life)]
    await session.set_access(boss, first, random.random() < 0.15, lines)
    await session.set_access(other, second, random.random() < 0.5, [])
    tasks = await _make_tasks(session, random, first, cast)
    await session.create_task(other, some_task(random, second, None, one.id))
    await session.appoint(
        boss,
        {
            "intent_id": first,
            "agent_id": lead.id,
            "heartbeat_interval_seconds": random.choice((10, 10, 200)),
            "guardrails": some_guardrails(random),
        },
    )
    await _take_up(session, random, tasks, cast)
    for worker, task_id in zip((one, two, other), tasks, strict=True):
        for _ in range(2):
            scope = {"task_id": task_id}
            await session.post(worker, finish(worker, _draft(random, "working", scope)), None)
    await session.post(boss, finish(boss, _draft(random, "working", {"intent_id": first})), None)
    for worker in cast:
        for tier in ("episodic", random.choice(AGENT_TIERS), random.choice(SHARED_TIERS)):
            scope = {"intent_id": first} if random.random() < 0.15 else {}
            await session.post(worker, finish(worker, _draft(random, tier, scope)), None)
    await _share(session, random, cast, finish)
    if random.random() < 0.4:
        change = {"assigned_agent": other.id}
        await session.change_task(boss, tasks[0], change, None)
    if random.random() < 0.4:
        await session.change_task(boss, tasks[1], {"status": "failed"}, None)
    for worker, task_id in ((one, tasks[0]), (two, tasks[1])):
        # They may not have heard that the task is another's now, or over.
        scope = {"task_id": task_id}
        await session.post(worker, finish(worker, _draft(random, "working", scope)), None)
        await _write_on(session, random, worker, task_id, finish)
    below = some_task(random, first, tasks[0], other.id)
    await session.create_task(random.choice((two, other)), below)
    if random.random() < 0.5:
        session.advance(random.choice((31, 61)))
    await _meddle(session, random, cast, finish)
    for overseer in list(session.world.overseers.values()):
        if overseer.tenant == tenant and random.random() < 0.6:
            await session.heartbeat(lead, overseer.id)


async def _write_on(
    session: WorkSession, random: Random, worker: Caller, task_id: str, finish: Finish
) -> None:
    """Somebody changes what it has written for a task."""
    for entry_id, entry in list(session.world.entries.items()):
        mine = (entry.tenant, entry.owner) == (worker.tenant, worker.id)
        if mine and entry.body["scope"].get("task_id") == task_id:
            value = finish(worker, _draft(random, "working", {}))["value"]
            await session.update(worker, entry_id, entry.body["version"], {"value": value})
            return


async def _meddle(session: WorkSession, random: Random, cast: list[Caller], finish: Finish) -> None:
    """Everybody tries what is not everybody's: shared state, claims, sources one cannot read."""
    for worker in cast:
        draft = {**_draft(random, "shared", {}), "namespace": random.choice(SCOPES)}
        await session.post(worker, finish(worker, draft), None)
        draft = _draft(random, random.choice(SHARED_TIERS), {})
        draft["derived_from"] = [{"id": random.choice(session.ids), "version": 1}]
        await session.post(worker, finish(worker, draft), None)
    state = [
        (entry_id, entry)
        for entry_id, entry in session.world.entries.items()
        if entry.tenant == cast[0].tenant and entry.body["memory_type"] == "shared"
    ]
    for worker in cast:
        entry_id, entry = random.choice(state)
        draft = {**_draft(random, "shared", {}), "namespace": entry.body["namespace"]}
        value = finish(worker, draft)["value"]
        await session.update(worker, entry_id, entry.body["version"], {"value": value})
    for claim_id in list(session.world.claims):
        if random.random() < 0.3:
            await session.release_claim(random.choice(cast), claim_id)


async def _make_tasks(
    session: WorkSession, random: Random, intent_id: str, cast: list[Caller]
) -> list[str]:
    """Three tasks under one another, and one of nobody."""
    boss, _, *workers = cast
    made: list[str] = []
    for worker in workers:
        body = some_task(random, intent_id, made[-1] if made else None, worker.id)
        task_id = await session.create_task(boss, body)
        assert task_id is not None
        made.append(task_id)
    await session.create_task(boss, some_task(random, intent_id, None, None))
    return made


async def _take_up(
    session: WorkSession, random: Random, tasks: list[str], cast: list[Caller]
) -> None:
    """Some take up what they are given, with a lease or without; some have it said of them."""
    boss = cast[0]
    for worker, task_id in zip(cast[2:], tasks, strict=True):
        kind = random.random()
        if kind < 0.4:
            await session.claim_task(worker, task_id, random.choice(SECONDS))
        elif kind < 0.6:
            await session.change_task(worker, task_id, {"status": "claimed"}, None)
        elif kind < 0.85:
            await session.change_task(boss, task_id, {"status": "claimed"}, None)


async def _share(session: WorkSession, random: Random, cast: list[Caller], finish: Finish) -> None:
    """State in every kind of scope, and a claim on some."""
    for worker, scope in (
        (cast[0], "shared/global"),
        (cast[1], "shared/team/red"),
        (cast[2], f"shared/agent/{cast[2].id}"),
    ):
        draft = {**_draft(random, "shared", {}), "namespace": scope}
        await session.post(worker, finish(worker, draft), None)
        if random.random() < 0.6:
            await session.claim_key(worker, scope, draft["key"], random.choice(SECONDS))


def _draft(random: Random, tier: str, scope: Body) -> Body:
    return {
        "namespace": random.choice(NAMESPACES),
        "key": random.choice(KEYS),
        "memory_type": tier,
        "tags": random.sample(TAGS, random.randrange(3)),
        "ttl": random.choice((None, None, None, 60)),
        "sensitivity": random.choice(SENSITIVITIES),
        "scope": scope,
    }
