"""The state machine of a service with work: besides operations on memory, agents create intents and
tasks, hand them out, take them up, let leases lapse, coordinate, claim and share."""

from __future__ import annotations

from random import Random
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests.oracle import scene
from tests.oracle.callers import AGENTS, CALLERS, TENANTS
from tests.oracle.machine import AccessMachine, Template, places
from tests.oracle.rules import STATE, found, may_write
from tests.oracle.session import NAMESPACES, Session
from tests.oracle.surfaces import KEYS, look_everywhere
from tests.oracle.work_rules import is_live, may_in_intent, may_take_up
from tests.oracle.work_session import SCOPES, WorkSession, grant_body
from tests.oracle.work_surfaces import look_at_work
from tests.oracle.world import Body, Caller, Hold, Intent, Job
from tests.support.service import RunningService

workers = st.sampled_from([f"{tenant}/{name}" for tenant in TENANTS for name in scene.WORKERS])
anyone = st.one_of(workers, workers, st.sampled_from(sorted(CALLERS)))
agents = st.sampled_from((*scene.WORKERS, *AGENTS[:4]))
moves = st.sampled_from(
    ("claimed", "running", "completed", "failed", "cancelled", "blocked", "ready")
)


class WorkMachine(AccessMachine):
    """Does every step to the system and to the oracle, and compares what people then see."""

    def __init__(self, template: Template) -> None:
        super().__init__(template)
        self.work = cast(WorkSession, self.session)

    def new_session(self, service: RunningService, keys: dict[tuple[str, str], str]) -> Session:
        return WorkSession(service, keys)

    @initialize(chance=st.integers(0, 2**32))
    def begin(self, chance: int) -> None:
        """There is work under way in both tenants, and all who may have a part in it look."""
        self.random = Random(chance)
        self.work.random = self.random
        for tenant in TENANTS:
            self.run(scene.set_scene(self.work, self.random, tenant, self._finished))
        self.doers = [CALLERS[f"north/{name}"] for name in (*scene.WORKERS, "dora")]

    @invariant()
    def nobody_sees_more_or_less_than_he_may(self) -> None:
        """The one who has just done something looks everywhere, whom it concerns and somebody
        else."""
        if not self.session.world.intents:
            return
        watchers = (*self.doers, self.random.choice(list(CALLERS.values())))
        for caller in dict.fromkeys(watchers):
            self.run(look_at_work(self.work, caller, self.random))
            self.run(look_everywhere(self.session, caller, self.random))
        self.doers = []

    @rule(caller=anyone, place=places, change=st.sampled_from(("tags", "value")))
    def write_in_task(self, caller: str, place: int, change: str) -> None:
        """Working memory of a task, mostly the caller's own; made or changed."""
        doer = self._does(CALLERS[caller])
        own = [
            (entry_id, entry)
            for entry_id, entry in self.session.world.entries.items()
            if entry.owner == doer.id and entry.tenant == doer.tenant and entry.body["scope"]
        ]
        if own and place % 3 == 0:
            entry_id, entry = own[place % len(own)]
            fields = self._finished_change(entry_id, {"tags": ["red"], "value": {}})
            version = int(entry.body["version"])
            self.run(self.session.update(doer, entry_id, version, {change: fields[change]}))
            return
        job = self._task(doer, place, lambda job: job.assigned == doer.id)
        draft = self._draft("working", {"task_id": job.id})
        if place % 7 == 0:
            draft["scope"] = {"intent_id": job.intent}
        if place % 11 == 0:
            draft["memory_type"] = "episodic"
        once = f"once-{place % 2}" if place % 5 == 0 else None
        self.run(self.session.post(doer, self._finished(doer, draft), once))

    @rule(caller=anyone, place=places)
    def rebind(self, caller: str, place: int) -> None:
        """Memory is moved into, out of or between tasks."""
        entry_id = self._some_entry(place, CALLERS[caller])
        if entry_id is None:
            return
        doer = self._somebody_for(entry_id, place)
        job = self._task(doer, place, lambda job: job.assigned == doer.id)
        scope = self.random.choice(({}, {"task_id": job.id}, {"intent_id": job.intent}))
        version = self._version_of(entry_id)
        self.run(self.session.update(doer, entry_id, version, {"scope": scope}))

    @rule(caller=anyone, place=places)
    def derive(self, caller: str, place: int) -> None:
        """A write that names what was read before, which the caller could read or not."""
        doer = self._does(CALLERS[caller])
        ids = list(self.session.ids)
        seen = [entry_id for entry_id, _ in found(self.session.world, doer, {})]
        source = self.random.choice(seen if seen and place % 2 else ids)
        off = self.random.choice((0, 0, 0, 1))
        draft = self._draft(self.random.choice(("episodic", "shared", "session")), {})
        draft["derived_from"] = [{"id": source, "version": self._version_of(source) + off}]
        self.run(self.session.post(doer, self._finished(doer, draft), None))

    @rule(caller=anyone, place=places)
    def bridge(self, caller: str, place: int) -> None:
        doer = self._does(CALLERS[caller])
        draft = self._finished(doer, self._draft("working", {}))
        body = {name: draft[name] for name in ("namespace", "key", "value")}
        body["namespace"] = body["namespace"].replace("/", ".")
        agent = doer.id if place % 6 else self.random.choice(AGENTS)
        self.run(self.work.put_bridged(doer, agent, body))

    @rule(caller=anyone)
    def make_intent(self, caller: str) -> None:
        if len(self.session.world.intents) < 6:
            self.run(self.work.create_intent(self._does(CALLERS[caller])))

    @rule(place=places, agent=agents, level=st.sampled_from(("read", "write", "admin")))
    def grant(self, place: int, agent: str, level: str) -> None:
        doer, intent = self._for_intent(place, "admin")
        life = self.random.choice((None, 30, 60))
        line = grant_body(agent, level, self.session.world.now, life)
        self._also(intent.tenant, agent)
        self.run(self.work.grant(doer, intent.id, line))

    @rule(place=places)
    def revoke(self, place: int) -> None:
        doer, intent = self._for_intent(place, "admin")
        lines = intent.lines
        if lines:
            line = lines[place % len(lines)]
            self._also(intent.tenant, line.agent)
            self.run(self.work.revoke(doer, intent.id, line.id))

    @rule(place=places, is_open=st.booleans())
    def open_or_close(self, place: int, is_open: bool) -> None:
        doer, intent = self._for_intent(place, "admin")
        now = self.session.world.now
        lines = [grant_body(line.agent, line.level, now, 600) for line in intent.lines]
        self.run(self.work.set_access(doer, intent.id, is_open, lines))

    @rule(place=places, agent=st.one_of(st.none(), agents))
    def make_task(self, place: int, agent: str | None) -> None:
        doer, intent = self._for_intent(place, "write")
        jobs = [job for job in self.session.world.jobs.values() if job.tenant == intent.tenant]
        if len(jobs) > 8:
            return
        same = [job.id for job in jobs if job.intent == intent.id]
        parent = self.random.choice((None, *same, *same))
        body = scene.some_task(self.random, intent.id, parent, agent)
        self._also(intent.tenant, agent)
        once = self.random.choice((None, "task-1", "task-2"))
        self.run(self.work.create_task(doer, body, once))

    @rule(place=places, stranger=anyone)
    def repeat_task(self, place: int, stranger: str) -> None:
        """A task is made once more, by any key of who made it or by somebody else."""
        kept = sorted(self.work.made_once)
        if not kept:
            return
        tenant, agent, once = kept[place % len(kept)]
        same = [one for one in CALLERS.values() if (one.tenant, one.id) == (tenant, agent)]
        doer = self._does(same[place % len(same)] if place % 4 else CALLERS[stranger])
        content, _ = self.work.made_once[tenant, agent, once]
        if (doer.tenant, doer.id, once) in self.work.made_once:
            self.run(self.work.create_task(doer, content, once))

    @rule(caller=anyone, place=places, seconds=st.sampled_from(scene.SECONDS))
    def take_up(self, caller: str, place: int, seconds: int) -> None:
        doer = self._does(CALLERS[caller])
        world = self.session.world
        job = self._task(doer, place, lambda job: may_take_up(world, doer, job))
        if place % 3 == 0:
            self.run(self.work.next_task(doer, seconds))
        else:
            self.run(self.work.claim_task(doer, job.id, seconds))

    @rule(caller=anyone, place=places, status=moves)
    def move_task(self, caller: str, place: int, status: str) -> None:
        """By the agent it is assigned to, by who administers the intent, or by anybody."""
        doer = self._does(CALLERS[caller])
        job = self._task(doer, place, lambda job: self._is_part_of(doer, job))
        self._also(job.tenant, job.assigned)
        change: Body = {"status": status}
        if place % 8 == 0 or (job.assigned is None and place % 2):
            change["assigned_agent"] = doer.id
        token = self._task_token(doer, job)
        off = self.random.choice((0, 0, 0, 0, 1))
        self.run(self.work.change_task(doer, job.id, change, token, off))

    @rule(place=places, agent=st.one_of(st.none(), agents, agents, agents))
    def reassign(self, place: int, agent: str | None) -> None:
        doer, intent = self._for_intent(place, "admin")
        world = self.session.world
        jobs = [job for job in world.jobs.values() if job.intent == intent.id]
        if jobs:
            job = jobs[place % len(jobs)]
            before = job.assigned
            self._also(job.tenant, before)
            self._also(job.tenant, agent)
            self.run(self.work.change_task(doer, job.id, {"assigned_agent": agent}, None))
            if place % 2:
                self._write_on(job, before)

    @rule(place=places, renewed=st.booleans(), caller=anyone)
    def hold_or_give_back(self, place: int, renewed: bool, caller: str) -> None:
        """A task lease is renewed or given back under its token, by its holder or by another."""
        holds = self._holds("task")
        if not holds:
            return
        hold = holds[place % len(holds)]
        doer = self._holder(hold, place, caller)
        if renewed:
            self.run(self.work.renew_task(doer, hold.name, hold.token, 60))
        else:
            self.run(self.work.give_back(doer, hold.name, hold.token))

    @rule(place=places, agent=agents)
    def appoint(self, place: int, agent: str) -> None:
        doer, intent = self._for_intent(place, "admin")
        self._also(intent.tenant, agent)
        body = {
            "intent_id": intent.id,
            "agent_id": agent,
            "heartbeat_interval_seconds": self.random.choice((10, 200)),
            "guardrails": scene.some_guardrails(self.random),
        }
        self.run(self.work.appoint(doer, body))

    @rule(place=places, lives=st.booleans(), caller=anyone)
    def live_or_resign(self, place: int, lives: bool, caller: str) -> None:
        """A coordinator gives a sign of life or its authority back; or somebody tries to."""
        holds = self._holds("coordinator")
        if not holds:
            return
        hold = holds[place % len(holds)]
        doer = self._holder(hold, place, caller)
        ask = self.work.heartbeat if lives else self.work.resign
        self.run(ask(doer, hold.id))

    @rule(caller=anyone, scope=st.sampled_from(SCOPES), place=places)
    def share(self, caller: str, scope: str, place: int) -> None:
        """State of a scope is made or changed, under a claim's token or without."""
        doer = self._does(CALLERS[caller])
        world = self.session.world
        there = [
            entry_id
            for entry_id, entry in world.entries.items()
            if entry.tenant == doer.tenant
            and entry.body["memory_type"] == STATE
            and (place % 2 == 0 or may_write(world, doer, entry))
        ]
        if there and place % 3:
            entry_id = there[place % len(there)]
            change = self._finished_change(entry_id, {"value": {}})
            version = self._version_of(entry_id)
            self.run(self.session.update(doer, entry_id, version, change))
            return
        draft = {**self._draft(STATE, {}), "namespace": scope}
        self.run(self.session.post(doer, self._finished(doer, draft), None))

    @rule(caller=anyone, scope=st.sampled_from(SCOPES), key=st.sampled_from(KEYS), place=places)
    def claim(self, caller: str, scope: str, key: str, place: int) -> None:
        doer = self._does(CALLERS[caller])
        self.run(self.work.claim_key(doer, scope, key, self.random.choice(scene.SECONDS)))

    @rule(place=places, renewed=st.booleans(), caller=anyone)
    def renew_or_release(self, place: int, renewed: bool, caller: str) -> None:
        holds = self._holds("claim")
        if not holds:
            return
        hold = holds[place % len(holds)]
        doer = self._holder(hold, place, caller)
        if renewed:
            self.run(self.work.renew_claim(doer, hold.id, 60))
        else:
            self.run(self.work.release_claim(doer, hold.id))

    @rule(caller=anyone, scope=st.sampled_from(SCOPES), default=st.sampled_from(("none", "read")))
    def open_scope(self, caller: str, scope: str, default: str) -> None:
        """The permissions of a scope are set, by who may or may not."""
        able = [CALLERS[f"{tenant}/{name}"] for tenant in TENANTS for name in ("chief", "carol")]
        doer = self._does(self.random.choice((*able, CALLERS[caller])))
        agent, level = self.random.choice(scene.WORKERS), self.random.choice(("read", "write"))
        change = {"default": default, "allow": [{"agent": agent, "access": level}]}
        self.run(self.session.set_permissions(doer, scope, change, None))

    @rule(seconds=st.sampled_from((29, 31, 59, 61)), lapsed=st.booleans())
    def let_lapse(self, seconds: int, lapsed: bool) -> None:
        """Leases, claims and coordinators whose time is over hold nothing, swept or not."""
        self.session.advance(seconds)
        for hold in self.session.world.holds.values():
            if not is_live(self.session.world, hold) and len(self.doers) < 3:
                self._also(hold.tenant, hold.holder)
        if lapsed:
            self.run(self.work.lapse())

    def _write_on(self, job: Job, agent: str | None) -> None:
        """An agent that has had a task till now goes on with it, not having heard."""
        doer = CALLERS.get(f"{job.tenant}/{agent}")
        for entry_id, entry in list(self.session.world.entries.items()):
            mine = doer is not None and entry.owner == doer.id and entry.tenant == doer.tenant
            if doer is not None and mine and entry.body["scope"].get("task_id") == job.id:
                change = self._finished_change(entry_id, {"value": {}})
                version = self._version_of(entry_id)
                self.run(self.session.update(doer, entry_id, version, change))
                return

    def _draft(self, tier: str, scope: Body) -> Body:
        namespaces = SCOPES if tier == STATE else NAMESPACES
        return {
            "namespace": self.random.choice(namespaces),
            "key": self.random.choice(KEYS),
            "memory_type": tier,
            "scope": scope,
            "sensitivity": self.random.choice(scene.SENSITIVITIES),
            "ttl": self.random.choice((None, None, 60, "task_lifetime" if scope else None)),
        }

    def _task(self, doer: Caller, place: int, is_right: Any) -> Job:
        """Mostly a task of the caller's tenant that is right, else any of either tenant."""
        jobs = list(self.session.world.jobs.values())
        right = [job for job in jobs if job.tenant == doer.tenant and is_right(job)]
        choice = right if right and place % 6 else jobs
        return choice[place % len(choice)]

    def _is_part_of(self, doer: Caller, job: Job) -> bool:
        intent = self.session.world.intents[job.intent]
        mine = job.assigned in (doer.id, None)
        return mine or may_in_intent(self.session.world, doer, intent, "admin")

    def _task_token(self, doer: Caller, job: Job) -> int | None:
        body = {"memory_type": "working", "scope": {"task_id": job.id}}
        return self.work.some_token(doer, body)

    def _for_intent(self, place: int, needed: str) -> tuple[Caller, Intent]:
        """An intent, and mostly somebody who may do this to it."""
        world = self.session.world
        intents = list(world.intents.values())
        intent = intents[place % len(intents)]
        able = [one for one in CALLERS.values() if may_in_intent(world, one, intent, needed)]
        return self._one_of(able, place), intent

    def _holds(self, kind: str) -> list[Hold]:
        return [hold for hold in self.session.world.holds.values() if hold.kind == kind]

    def _holder(self, hold: Hold, place: int, other: str) -> Caller:
        """Mostly a key of the holder, at times somebody else."""
        same = [
            one for one in CALLERS.values() if (one.tenant, one.id) == (hold.tenant, hold.holder)
        ]
        return self._does(same[place % len(same)] if place % 5 else CALLERS[other])

    def _also(self, tenant: str, agent: str | None) -> None:
        """Whom a step concerns looks around after it as well."""
        label = f"{tenant}/{agent}"
        if label in CALLERS:
            self.doers.append(CALLERS[label])
