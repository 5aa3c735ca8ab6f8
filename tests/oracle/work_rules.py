"""Who has what part in work and what that opens, as the texts tell it.

RFC-0015 sections 2.1, 2.2, 6.4 to 6.6, 8 and 9.1, chapter 12 for claims, and the table of
decisions. Like `rules`, written from those texts and not from the system's own policy.
"""

from __future__ import annotations

from tests.oracle.world import Body, Caller, Hold, Intent, Job, Remembered, World

LEVELS = ("none", "read", "write", "admin")
OVER = ("completed", "failed", "cancelled", "skipped")
UNDER_WAY = ("claimed", "running", "blocked")


def reaches(level: str, needed: str) -> bool:
    """Each level holds the ones before it."""
    return LEVELS.index(level) >= LEVELS.index(needed)


def hold_over(world: World, tenant: str, kind: str, place: str, name: str = "") -> Hold | None:
    """The hold over something, lapsed or not, that nobody has ended."""
    for hold in world.holds.values():
        if (hold.tenant, hold.kind, hold.place, hold.name) == (tenant, kind, place, name):
            return hold
    return None


def is_live(world: World, hold: Hold | None) -> bool:
    """Whether it holds at this moment."""
    return hold is not None and world.now < hold.expires


def coordinates(world: World, caller: Caller, intent_id: str) -> bool:
    """Whether the caller is the intent's coordinator, with heartbeats up to now."""
    hold = hold_over(world, caller.tenant, "coordinator", intent_id)
    return hold is not None and hold.holder == caller.id and is_live(world, hold)


def jobs_of(world: World, tenant: str, agent: str) -> list[Job]:
    """The tasks assigned to an agent at present, open or over."""
    return [job for job in world.jobs.values() if (job.tenant, job.assigned) == (tenant, agent)]


def is_open(job: Job) -> bool:
    """Whether something is still to be done on it."""
    return job.status not in OVER


def is_named(world: World, caller: Caller, intent: Intent) -> bool:
    """Whether an unexpired line of the intent's access list names the caller, at any level."""
    return any(
        line.agent == caller.id and (line.expires is None or world.now < line.expires)
        for line in intent.lines
    )


def level_in_intent(world: World, caller: Caller, intent: Intent) -> str:
    """The highest level the caller has a reason for."""
    if caller.tenant != intent.tenant:
        return "none"
    levels = ["none"]
    if intent.creator == caller.id or coordinates(world, caller, intent.id):
        levels.append("admin")
    for line in intent.lines:
        if line.agent == caller.id and (line.expires is None or world.now < line.expires):
            levels.append(line.level)
    if intent.open:
        levels.append("write")
    for job in jobs_of(world, caller.tenant, caller.id):
        if job.intent == intent.id:
            levels.append("write" if is_open(job) else "read")
    return max(levels, key=LEVELS.index)


def may_in_intent(world: World, caller: Caller, intent: Intent, needed: str) -> bool:
    """Both the permission and the part (section 6.4): to read `memory.read`, to change anything
    `memory.write`."""
    permission = "memory.read" if needed == "read" else "memory.write"
    return permission in caller.permissions and reaches(
        level_in_intent(world, caller, intent), needed
    )


def bound_to(world: World, tenant: str, scope: Body) -> tuple[Job | None, Intent | None]:
    """The task and the intent a scope names, as far as they were made in this tenant."""
    job = world.jobs.get(scope.get("task_id", ""))
    if job is not None and job.tenant != tenant:
        job = None
    intent = world.intents.get(job.intent if job is not None else scope.get("intent_id", ""))
    if intent is not None and intent.tenant != tenant:
        intent = None
    return job, intent


def owner_may_write(world: World, caller: Caller, scope: Body, *, creating: bool) -> bool:
    """What the owner of working memory may do with it (sections 2.1 and 8.2): all while the task is
    open and its own, nothing once it is another's or over. What is bound to a task of nobody, or is
    to be bound to an intent, is for who may write to the intent, whose log will tell of it."""
    job, intent = bound_to(world, caller.tenant, scope)
    if intent is None:
        return True
    takes_part = reaches(level_in_intent(world, caller, intent), "write")
    if job is None:
        return takes_part or not creating
    if not is_open(job):
        return False
    return takes_part if job.assigned is None else job.assigned == caller.id


def may_bind(world: World, caller: Caller, tier: str, scope: Body) -> bool:
    """Whether memory of this tier may be bound to what the scope names. Memory that outlasts a task
    may refer to it also when it is over, by whoever did it."""
    if tier == "working":
        return owner_may_write(world, caller, scope, creating=True)
    job, intent = bound_to(world, caller.tenant, scope)
    if intent is None or (job is not None and job.assigned == caller.id):
        return True
    return reaches(level_in_intent(world, caller, intent), "write")


def inherits(world: World, caller: Caller, job: Job) -> bool:
    """Whether the caller works on an open task below this one, every link down to it inheriting."""
    for below in jobs_of(world, caller.tenant, caller.id):
        one: Job | None = below if is_open(below) else None
        while one is not None and one.inherits and one.parent is not None:
            if one.parent == job.id:
                return True
            one = world.jobs.get(one.parent)
    return False


def opened_by_work(world: World, caller: Caller, entry: Remembered) -> bool:
    """Whether work lets the caller read another agent's memory."""
    if entry.body["memory_type"] == "episodic":
        # Only what the owner has itself taken up opens its memory: to be given a task is not to
        # agree to anything.
        return any(
            is_open(job) and job.accepted and coordinates(world, caller, job.intent)
            for job in jobs_of(world, entry.tenant, entry.owner)
        )
    if entry.body["memory_type"] != "working":
        return False
    job, intent = bound_to(world, entry.tenant, entry.body["scope"])
    if intent is None:
        return False
    if job is None:
        return is_named(world, caller, intent)
    return is_open(job) and (
        coordinates(world, caller, intent.id)
        or job.assigned == caller.id
        or inherits(world, caller, job)
        or is_named(world, caller, intent)
    )


def barred(world: World, caller: Caller, namespace: str) -> bool:
    """Whether guardrails keep the caller from shared knowledge (section 6.6): those of an intent it
    has taken up an open task of, or coordinates and has given a sign of life for. What others
    appoint it to shuts it out of nothing. State that agents share is another thing."""
    if namespace.startswith("shared/"):
        return False
    for intent in world.intents.values():
        if intent.tenant != caller.tenant or intent.guardrails is None:
            continue
        works = any(
            job.intent == intent.id and is_open(job) and job.accepted
            for job in jobs_of(world, caller.tenant, caller.id)
        )
        hold = hold_over(world, caller.tenant, "coordinator", intent.id)
        acts = hold is not None and world.overseers[hold.id].accepted
        if not works and not (acts and coordinates(world, caller, intent.id)):
            continue
        denied = intent.guardrails.get("denied_semantic_namespaces") or []
        allowed = intent.guardrails.get("allowed_semantic_namespaces")
        if namespace in denied or (allowed is not None and namespace not in allowed):
            return True
    return False


def may_see_task(world: World, caller: Caller, job: Job) -> bool:
    """A task is read by who may read its intent."""
    return may_in_intent(world, caller, world.intents[job.intent], "read")


def may_hand_down(world: World, caller: Caller, parent: Job) -> bool:
    """Let a new task inherit: who has the parent task, or administers the intent. Anybody else
    would give itself what is closed to it (section 9.1)."""
    return parent.assigned == caller.id or may_in_intent(
        world, caller, world.intents[parent.intent], "admin"
    )


def may_take_up(world: World, caller: Caller, job: Job) -> bool:
    """Its own task, or one of nobody in an intent it takes part in."""
    if "memory.write" not in caller.permissions or not may_see_task(world, caller, job):
        return False
    # Who has done a task that is over may read it, and take part in nothing by it.
    mine = job.assigned in (None, caller.id)
    return mine and may_in_intent(world, caller, world.intents[job.intent], "write")
