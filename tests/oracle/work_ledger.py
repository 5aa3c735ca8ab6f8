"""What each step of work does to the world the oracle keeps, and why it may be refused.

A step can be wrong for several reasons at once; `*_refusals` gives the statuses of all of them, and
any is right. Nothing else is, and no reason means that it must succeed. What another tenant has is
not there at all: then 404 is the only answer.
"""

from __future__ import annotations

from datetime import datetime

from memorywall.records.clock import format_instant
from tests.oracle.ledger import expire, found_namespace, note, remove
from tests.oracle.rules import STATE, admits, may_create
from tests.oracle.work_rules import (
    UNDER_WAY,
    hold_over,
    is_live,
    is_open,
    may_hand_down,
    may_in_intent,
    may_see_task,
    may_take_up,
)
from tests.oracle.world import Body, Caller, Hold, Job, Overseer, World

NEXT = {
    "ready": {"claimed", "blocked", "cancelled", "skipped"},
    "claimed": {"running", "ready", "blocked", "completed", "failed", "cancelled"},
    "running": {"completed", "failed", "blocked", "ready", "cancelled"},
    "blocked": {"ready", "claimed", "running", "failed", "cancelled", "skipped"},
    "failed": {"ready"},
    "completed": set(),
    "cancelled": set(),
    "skipped": set(),
}
MOST_ATTEMPTS = 3
SEALED = ("confidential", "restricted")
_ABSENT = object()


def intent_refusals(world: World, caller: Caller, intent_id: str, needed: str) -> set[int]:
    """For what is done to an intent."""
    intent = world.intents.get(intent_id)
    if intent is None or intent.tenant != caller.tenant:
        return {404}
    return set() if may_in_intent(world, caller, intent, needed) else {403}


def task_refusals(world: World, caller: Caller, body: Body) -> set[int]:
    """For a task to be made."""
    reasons = intent_refusals(world, caller, body["intent_id"], "write")
    if reasons or "parent_task_id" not in body:
        return reasons
    parent = world.jobs.get(body["parent_task_id"])
    if parent is None or parent.intent != body["intent_id"]:
        return {404}
    hands_down = body["memory_policy"]["inherit_from_parent"]
    return {403} if hands_down and not may_hand_down(world, caller, parent) else set()


def add_task(world: World, caller: Caller, body: Body, task_id: str) -> Job:
    """A new task; its id is the system's choice."""
    world.made += 1
    agent = body.get("assigned_agent")
    job = Job(
        tenant=caller.tenant,
        id=task_id,
        intent=body["intent_id"],
        order=world.made,
        assigned=agent,
        giver=None if agent is None else caller.id,
        parent=body.get("parent_task_id"),
        inherits=body["memory_policy"]["inherit_from_parent"],
        archives=body["memory_policy"]["archive_on_completion"],
    )
    world.jobs[task_id] = job
    return job


def take_up_refusals(world: World, caller: Caller, task_id: str) -> set[int]:
    """For a task to be claimed."""
    job = world.jobs.get(task_id)
    if job is None or job.tenant != caller.tenant:
        return {404}
    reasons = set() if may_take_up(world, caller, job) else {403}
    return reasons if _is_free(world, job) else reasons | {409}


def can_be_next(world: World, caller: Caller) -> list[str]:
    """The tasks that could be handed out to the caller."""
    return [
        job.id
        for job in world.jobs.values()
        if job.tenant == caller.tenant and may_take_up(world, caller, job) and _is_free(world, job)
    ]


def _is_free(world: World, job: Job) -> bool:
    lease = hold_over(world, job.tenant, "task", job.intent, job.id)
    return job.status in ("ready", "claimed", "running") and not is_live(world, lease)


def take_up(world: World, caller: Caller, job: Job, lease: Body) -> None:
    """The caller has claimed a task."""
    if job.assigned is None:
        job.assigned, job.giver = caller.id, caller.id
    if job.status == "ready":
        job.status = "claimed"
    job.accepted = True
    add_hold(world, caller.tenant, "task", job.intent, job.id, caller.id, lease)


def add_hold(
    world: World, tenant: str, kind: str, place: str, name: str, holder: str, shown: Body
) -> Hold:
    """A new hold, in place of a lapsed one; its token is greater than all before."""
    before = hold_over(world, tenant, kind, place, name)
    if before is not None:
        del world.holds[tenant, before.token]
    hold = Hold(
        tenant=tenant,
        id=shown["id"],
        token=shown["fencing_token"],
        kind=kind,
        place=place,
        name=name,
        holder=holder,
        expires=milliseconds(shown["expires_at"]),
    )
    world.holds[tenant, hold.token] = hold
    return hold


def milliseconds(instant: str) -> int:
    """An instant of the wire as the clock counts."""
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def change_refusals(
    world: World, caller: Caller, task_id: str, change: Body, token: int | None, off: int
) -> set[int]:
    """For a task to be moved or given to somebody; `off`: how far the version sent is wrong."""
    job = world.jobs.get(task_id)
    if job is None or job.tenant != caller.tenant:
        return {404}
    reasons: set[int] = set()
    if off or not _may_follow(job, change):
        reasons.add(409)
    held = None if token is None else world.holds.get((caller.tenant, token))
    if token is not None and (held is None or held.holder != caller.id or not is_live(world, held)):
        reasons.add(409)
    if not may_see_task(world, caller, job):
        reasons.add(403)
    if may_in_intent(world, caller, world.intents[job.intent], "admin"):
        return reasons
    return reasons | _worker_refusals(world, caller, job, change, token)


def _worker_refusals(
    world: World, caller: Caller, job: Job, change: Body, token: int | None
) -> set[int]:
    """For a change by somebody who neither administers nor coordinates the intent."""
    reasons: set[int] = set()
    wanted = change.get("assigned_agent", _ABSENT)
    own = job.assigned == caller.id
    takes = job.assigned is None and wanted == caller.id
    if not may_in_intent(world, caller, world.intents[job.intent], "write"):
        reasons.add(403)
    if not (own or takes) or wanted not in (_ABSENT, None, caller.id):
        reasons.add(403)
    if change.get("status") in ("cancelled", "skipped") or not is_open(job):
        reasons.add(403)
    lease = hold_over(world, job.tenant, "task", job.intent, job.id)
    if lease is not None and lease.token != token:
        reasons.add(409)
    return reasons


def _moves_to(job: Job, change: Body) -> str:
    """Where the change brings the task: what is given away while under way is ready again."""
    given_away = change.get("assigned_agent", job.assigned) != job.assigned
    here = "ready" if given_away and job.status in UNDER_WAY else job.status
    return str(change.get("status", here))


def _may_follow(job: Job, change: Body) -> bool:
    status = _moves_to(job, change)
    given_away = change.get("assigned_agent", job.assigned) != job.assigned
    if status == job.status and (given_away or "status" not in change):
        return True
    if job.status == "ready" and status == "running" and change.get("assigned_agent") is not None:
        # One request may claim a task and start it.
        return True
    tired = job.status == "failed" and job.attempt >= MOST_ATTEMPTS
    return status in NEXT[job.status] and not tired


def change_task(world: World, caller: Caller, job: Job, change: Body) -> None:
    """Moves a task and gives it to somebody else, as far as the change says so."""
    was_open, was_under_way = is_open(job), job.status in UNDER_WAY
    status = _moves_to(job, change)
    given_away = change.get("assigned_agent", job.assigned) != job.assigned
    if given_away:
        job.assigned = change["assigned_agent"]
        job.giver = None if job.assigned is None else caller.id
        job.accepted = False
    if job.status == "failed" and status == "ready":
        job.attempt += 1
    moved, job.status = status != job.status, status
    if change.get("status") in ("claimed", "running") and job.assigned == caller.id:
        job.accepted = True
    if given_away or not is_open(job) or (moved and status == "ready" and was_under_way):
        end_hold(world, hold_over(world, job.tenant, "task", job.intent, job.id))
    if was_open and not is_open(job):
        close_memory(world, caller, job)


def end_hold(world: World, hold: Hold | None) -> None:
    """Nobody holds it any more; its token is good for nothing."""
    if hold is not None:
        del world.holds[hold.tenant, hold.token]


def close_memory(world: World, caller: Caller, job: Job) -> None:
    """What becomes of memory when its task is over (section 2.1): one event keeps working memory,
    with values where they are not confidential, and it is gone from the memory API."""
    guardrails = world.intents[job.intent].guardrails
    required = guardrails is not None and guardrails.get("memory_archive_required", True)
    archives = job.archives or required
    bound = [
        (entry.order, entry_id)
        for entry_id, entry in world.entries.items()
        if entry.tenant == job.tenant and entry.body["scope"].get("task_id") == job.id
    ]
    snapshot = []
    for _, entry_id in sorted(bound):
        entry = world.entries[entry_id]
        if entry.body["memory_type"] != "working":
            continue
        if world.living(entry_id) is None:
            expire(world, entry_id)
            continue
        snapshot.append(_kept(entry.body))
        remove(world, entry_id)
        if not archives:
            note(world, "memory.deleted", entry, caller)
    if archives and snapshot:
        _note_archive(world, caller, job, snapshot)
    for _, entry_id in sorted(bound):
        left = world.entries.get(entry_id)
        if left is not None and left.body["ttl"] == "task_lifetime":
            expire(world, entry_id)


def _kept(body: Body) -> Body:
    """An entry in the archive: without its value where that is confidential (section 9.2), and
    where it is about a person."""
    names = ("agent_id", "namespace", "key", "version", "tags", "sensitivity", "updated_at")
    kept = {"entry_id": body["id"], **{name: body[name] for name in names}}
    if body["sensitivity"] in SEALED or body.get("subjects"):
        return {**kept, "digest": True}
    return {**kept, "value": body["value"]}


def _note_archive(world: World, caller: Caller, job: Job, snapshot: list[Body]) -> None:
    shown = {
        "type": "memory.archived",
        "agent_id": job.assigned or caller.id,
        "actor": caller.actor,
        "data": {"entries_archived": len(snapshot), "snapshot": snapshot},
        "timestamp": format_instant(world.now),
        "task_id": job.id,
        "intent_id": job.intent,
    }
    world.events.append(
        {"tenant": job.tenant, "owner": job.assigned or "", "shared_doer": "", "shown": shown}
    )


def put_back(world: World, job: Job) -> None:
    """A task is given back, or its lease has lapsed: it is ready again, and still assigned, but for
    who had taken it by itself."""
    end_hold(world, hold_over(world, job.tenant, "task", job.intent, job.id))
    if job.status in ("claimed", "running"):
        job.status = "ready"
        if job.giver == job.assigned:
            job.assigned, job.giver, job.accepted = None, None, False


def lapse(world: World) -> None:
    """The server's own round over everything that is held no more."""
    for hold in list(world.holds.values()):
        if is_live(world, hold):
            continue
        job = world.jobs.get(hold.name) if hold.kind == "task" else None
        if job is not None:
            put_back(world, job)
        else:
            end_hold(world, hold)


def held_task_refusals(world: World, caller: Caller, task_id: str, token: int) -> set[int]:
    """For a task lease to be renewed or given back under its token."""
    hold = world.holds.get((caller.tenant, token))
    reasons = set() if "memory.write" in caller.permissions else {403}
    own = hold is not None and hold.holder == caller.id and is_live(world, hold)
    if hold is None or not own or (hold.kind, hold.name) != ("task", task_id):
        # Which of the two is said tells nothing: it is the same for every other task.
        reasons |= {404, 409}
    return reasons


def appoint_refusals(world: World, caller: Caller, intent_id: str) -> set[int]:
    """For a coordinator to be appointed: there is one at a time."""
    reasons = intent_refusals(world, caller, intent_id, "admin")
    live = is_live(world, hold_over(world, caller.tenant, "coordinator", intent_id))
    return reasons | {409} if live and 404 not in reasons else reasons


def appoint(world: World, caller: Caller, body: Body, shown: Body) -> None:
    """A new coordinator; its guardrails stay until another sets others."""
    hold = add_hold(
        world, caller.tenant, "coordinator", body["intent_id"], "", body["agent_id"], shown
    )
    world.overseers[hold.id] = Overseer(
        tenant=caller.tenant,
        id=hold.id,
        intent=body["intent_id"],
        agent=body["agent_id"],
        token=hold.token,
        interval=body["heartbeat_interval_seconds"],
        accepted=body["agent_id"] == caller.id,
    )
    if body.get("guardrails") is not None:
        world.intents[body["intent_id"]].guardrails = body["guardrails"]


def overseer_refusals(world: World, caller: Caller, coordinator_id: str) -> set[int]:
    """For a heartbeat or a resignation: by the coordinator itself, while it is in authority."""
    overseer = world.overseers.get(coordinator_id)
    if overseer is None or overseer.tenant != caller.tenant:
        return {404}
    own = overseer.agent == caller.id and "memory.write" in caller.permissions
    reasons = set() if own else {403}
    live = is_live(world, world.holds.get((overseer.tenant, overseer.token)))
    return reasons if live else reasons | {409}


def claim_refusals(world: World, caller: Caller, namespace: str, key: str) -> set[int]:
    """For a key of a scope to be claimed: by who may write there; nobody re-takes a live claim."""
    reasons = set() if may_create(world, caller, STATE, namespace) else {403}
    live = is_live(world, hold_over(world, caller.tenant, "claim", namespace, key))
    return reasons | {409} if live else reasons


def add_claim(world: World, caller: Caller, namespace: str, key: str, shown: Body) -> None:
    """A claim is taken; a scope may begin with it."""
    if (caller.tenant, namespace) not in world.namespaces:
        found_namespace(world, caller, namespace)
    hold = add_hold(world, caller.tenant, "claim", namespace, key, caller.id, shown)
    world.claims[hold.id] = (caller.tenant, hold.token, namespace)


def claim_of(world: World, caller: Caller, claim_id: str) -> Hold | None:
    """A claim of the caller's tenant that nobody has ended."""
    tenant, token, _ = world.claims.get(claim_id, ("", 0, ""))
    return world.holds.get((tenant, token)) if tenant == caller.tenant else None


def own_claim_refusals(world: World, caller: Caller, claim_id: str, *, live: bool) -> set[int]:
    """For a claim to be renewed, which must be live, or released: by its holder alone."""
    hold = claim_of(world, caller, claim_id)
    if hold is None:
        return {404}
    able = "memory.write" in caller.permissions and admits(world, caller, hold.place, "write")
    reasons = set() if able and hold.holder == caller.id else {403}
    return reasons | {409} if live and not is_live(world, hold) else reasons
