"""A session in which people also work: each step is done to the system and to the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from memorywall.records.clock import format_instant
from memorywall.records.tier import Tier
from memorywall.storage.port import Transaction
from tests.oracle import ledger, work_ledger
from tests.oracle.ledger import Refused
from tests.oracle.rules import STATE
from tests.oracle.session import NAMESPACES, Disagreement, Session, agree, compare_refusal
from tests.oracle.wire import Answer
from tests.oracle.work_ledger import milliseconds
from tests.oracle.work_rules import bound_to, hold_over
from tests.oracle.world import Body, Caller, Intent, Line
from tests.support.rounds import expire_leases
from tests.support.service import RunningService

SCOPES = ("shared/global", "shared/team/red", "shared/agent/ada", "shared/agent/bob")
NO_INTENT, NO_TASK = "int_00000000000000000000000000", "task_00000000000000000000000000"
_API = "/api/v1"


def scope_name(namespace: str) -> str:
    """A scope as claims call it."""
    name = namespace.removeprefix("shared/")
    return "agent" if name.startswith("agent/") else name.replace("/", ":", 1)


class WorkSession(Session):
    """Both sides of the comparison, with work.

    random: chooses under which fencing token a write is sent, mostly the right one
    made_once: bodies and first replies of tasks, by tenant, agent and Idempotency-Key
    """

    def __init__(self, service: RunningService, keys: dict[tuple[str, str], str]) -> None:
        super().__init__(service, keys)
        self.random = Random(0)
        self.places = (*NAMESPACES, *SCOPES)
        self.most_looked_at = 16
        self.made_once: dict[tuple[str, str, str], tuple[Body, Body]] = {}

    @property
    def task_names(self) -> tuple[str, ...]:
        return (*self.world.jobs, NO_TASK)

    @property
    def intent_names(self) -> tuple[str, ...]:
        return (*self.world.intents, "i1")

    async def post(self, caller: Caller, body: Body, once: str | None) -> None:
        first = body["entries"][0] if "entries" in body else body
        with self._under(caller, first):
            await super().post(caller, body, once)

    async def update(self, caller: Caller, entry_id: str, version: int, change: Body) -> None:
        with self._under(caller, {"id": entry_id}):
            await super().update(caller, entry_id, version, change)

    async def delete(self, caller: Caller, entry_id: str, version: int | None) -> None:
        with self._under(caller, {"id": entry_id}):
            await super().delete(caller, entry_id, version)

    async def put_bridged(self, caller: Caller, agent: str, body: Body) -> None:
        """PUT of the bridge's route: working memory by name, made or replaced."""
        path = f"{_API}/agents/{agent}/memory/{body['namespace']}/{body['key']}"
        draft = {**body, "memory_type": "working", "ttl": None}
        holder = ledger.holder_of(self.world, caller.tenant, caller.id, draft)
        there = None if holder is None else self.world.living(holder)
        with self._under(caller, draft if there is None else there.body):
            answer = await self._send(caller, "PUT", path, {"value": body["value"]})
            try:
                if agent != caller.id:
                    raise Refused(403)
                if there is None:
                    expected = ledger.create(self.world.trial(), caller, draft, "")
                else:
                    change = {"value": body["value"], "ttl": None}
                    version = there.body["version"]
                    expected = ledger.update(self.world, caller, there.body["id"], version, change)
            except Refused as refused:
                compare_refusal(self.world, caller, f"PUT {path}", answer, refused)
                return
            agree(caller, f"PUT {path} status", answer.status, 200)
            if there is None:
                made = await self._named(caller, draft)
                ledger.create(self.world, caller, draft, made)
                self.ids.append(made)
            agree(caller, f"PUT {path}", answer.json, bridged(expected))

    async def create_intent(self, caller: Caller) -> str | None:
        """POST /intents. The new intent's id."""
        answer = await self._send(caller, "POST", f"{_API}/intents", {"title": "Close the books"})
        refusals = set() if "memory.write" in caller.permissions else {403}
        if not settle(caller, "POST /intents", answer, refusals, 201):
            return None
        intent_id = str(answer.json["id"])
        self.world.made += 1
        self.world.intents[intent_id] = Intent(
            tenant=caller.tenant, id=intent_id, order=self.world.made, creator=caller.id
        )
        return intent_id

    async def set_access(
        self, caller: Caller, intent_id: str, is_open: bool, lines: list[Body]
    ) -> None:
        """PUT of a whole access list."""
        body = {"default_policy": "open" if is_open else "closed", "entries": lines}
        answer = await self._send(caller, "PUT", f"{_API}/intents/{intent_id}/acl", body)
        refusals = work_ledger.intent_refusals(self.world, caller, intent_id, "admin")
        if settle(caller, f"PUT acl of {intent_id}", answer, refusals, 200):
            intent = self.world.intents[intent_id]
            intent.open = is_open
            intent.lines = [line_of(shown) for shown in answer.json["entries"]]
            given = [(one["principal_id"], one["permission"]) for one in lines]
            made = [(one.agent, one.level) for one in intent.lines]
            agree(caller, f"PUT acl of {intent_id}", sorted(made), sorted(given))

    async def grant(self, caller: Caller, intent_id: str, line: Body) -> None:
        """POST of one line of an access list."""
        path = f"{_API}/intents/{intent_id}/acl/entries"
        answer = await self._send(caller, "POST", path, line)
        refusals = work_ledger.intent_refusals(self.world, caller, intent_id, "admin")
        if settle(caller, f"POST {path}", answer, refusals, 201):
            self.world.intents[intent_id].lines.append(line_of(answer.json))

    async def revoke(self, caller: Caller, intent_id: str, line_id: str) -> None:
        """DELETE of one line of an access list."""
        path = f"{_API}/intents/{intent_id}/acl/entries/{line_id}"
        answer = await self.ask(caller, "DELETE", path)
        refusals = work_ledger.intent_refusals(self.world, caller, intent_id, "admin")
        intent = self.world.intents.get(intent_id)
        if not refusals and intent is not None:
            kept = [line for line in intent.lines if line.id != line_id]
            refusals = {404} if len(kept) == len(intent.lines) else set()
            intent.lines = kept
        settle(caller, f"DELETE {path}", answer, refusals, 204)

    async def create_task(self, caller: Caller, body: Body, once: str | None = None) -> str | None:
        """POST /tasks, once for each `run_idempotent`. The new task's id."""
        headers = {} if once is None else {"Idempotency-Key": once}
        content = json.dumps(body, sort_keys=True).encode()
        answer = await self.ask(caller, "POST", f"{_API}/tasks", headers=headers, content=content)
        refusals = work_ledger.task_refusals(self.world, caller, body)
        kept_by = (caller.tenant, caller.id, once or "")
        if kept_by in self.made_once:
            self._compare_task_again(caller, answer, body, refusals, *self.made_once[kept_by])
            return None
        if not settle(caller, f"POST /tasks {body}", answer, refusals, 201):
            return None
        task_id = str(answer.json["id"])
        work_ledger.add_task(self.world, caller, body, task_id)
        if once is not None:
            self.made_once[kept_by] = (body, answer.json)
        return task_id

    def _compare_task_again(
        self,
        caller: Caller,
        answer: Answer,
        body: Body,
        refusals: set[int],
        first: Body,
        reply: Body,
    ) -> None:
        """The first reply again; not to a key that may do nothing of the kind, and not necessarily
        to who could not make the task now."""
        right = {201 if body == first else 422, *refusals}
        if body == first and "memory.read" not in caller.permissions:
            # It is told that the request was carried out, and not shown what it may not read.
            right = {403, *refusals}
        if "memory.write" not in caller.permissions:
            right = {403}
        if answer.status not in right:
            raise Disagreement(f"{caller.label}, making a task again: {answer.status}, not {right}")
        if answer.status == 201:
            agree(caller, "the same task again", answer.json, reply)

    async def claim_task(self, caller: Caller, task_id: str, seconds: int) -> None:
        """POST /tasks/{id}/claim."""
        path = f"{_API}/tasks/{task_id}/claim"
        answer = await self._send(caller, "POST", path, {"lease_seconds": seconds})
        refusals = work_ledger.take_up_refusals(self.world, caller, task_id)
        if settle(caller, f"POST {path}", answer, refusals, 200):
            lease = answer.json["lease"]
            work_ledger.take_up(self.world, caller, self.world.jobs[task_id], lease)

    async def next_task(self, caller: Caller, seconds: int) -> None:
        """POST /tasks/next. To who may do nothing no task is handed out, in whatever words."""
        answer = await self._send(caller, "POST", f"{_API}/tasks/next", {"lease_seconds": seconds})
        able = work_ledger.can_be_next(self.world, caller)
        if not able:
            right = {204} if {"memory.read", "memory.write"} <= caller.permissions else {204, 403}
            settle(caller, "POST /tasks/next, having none", answer, right, 200)
            return
        agree(caller, "POST /tasks/next status", answer.status, 200)
        task_id = answer.json["task"]["id"]
        agree(caller, f"POST /tasks/next: {task_id} among {able}", task_id in able, True)
        work_ledger.take_up(self.world, caller, self.world.jobs[task_id], answer.json["lease"])

    async def change_task(
        self, caller: Caller, task_id: str, change: Body, token: int | None, off: int = 0
    ) -> None:
        """PATCH /tasks/{id}."""
        path = f"{_API}/tasks/{task_id}"
        headers = {"If-Match": str(await self._task_version(task_id) + off)}
        if token is not None:
            headers["Fencing-Token"] = str(token)
        content = json.dumps(change).encode()
        answer = await self.ask(caller, "PATCH", path, headers=headers, content=content)
        refusals = work_ledger.change_refusals(self.world, caller, task_id, change, token, off)
        if settle(caller, f"PATCH {path} {change}", answer, refusals, 200):
            work_ledger.change_task(self.world, caller, self.world.jobs[task_id], change)

    async def renew_task(self, caller: Caller, task_id: str, token: int, seconds: int) -> None:
        """PATCH /tasks/{id}/lease."""
        answer = await self.ask(
            caller,
            "PATCH",
            f"{_API}/tasks/{task_id}/lease",
            headers={"Fencing-Token": str(token)},
            content=json.dumps({"duration_seconds": seconds}).encode(),
        )
        refusals = work_ledger.held_task_refusals(self.world, caller, task_id, token)
        if settle(caller, f"renewing the lease of {task_id}", answer, refusals, 200):
            hold = self.world.holds[caller.tenant, token]
            hold.expires = self.world.now + seconds * 1000

    async def give_back(self, caller: Caller, task_id: str, token: int) -> None:
        """DELETE /tasks/{id}/lease."""
        headers = {"Fencing-Token": str(token)}
        path = f"{_API}/tasks/{task_id}/lease"
        answer = await self.ask(caller, "DELETE", path, headers=headers)
        refusals = work_ledger.held_task_refusals(self.world, caller, task_id, token)
        if settle(caller, f"DELETE {path}", answer, refusals, 204):
            work_ledger.put_back(self.world, self.world.jobs[task_id])

    async def appoint(self, caller: Caller, body: Body) -> None:
        """POST /coordinators."""
        answer = await self._send(caller, "POST", f"{_API}/coordinators", body)
        refusals = work_ledger.appoint_refusals(self.world, caller, body["intent_id"])
        if settle(caller, f"POST /coordinators {body}", answer, refusals, 201):
            work_ledger.appoint(self.world, caller, body, answer.json)

    async def heartbeat(self, caller: Caller, coordinator_id: str) -> None:
        """POST /coordinators/{id}/heartbeat: authority for three intervals from now."""
        path = f"{_API}/coordinators/{coordinator_id}/heartbeat"
        answer = await self.ask(caller, "POST", path)
        refusals = work_ledger.overseer_refusals(self.world, caller, coordinator_id)
        if settle(caller, f"POST {path}", answer, refusals, 200):
            overseer = self.world.overseers[coordinator_id]
            hold = self.world.holds[caller.tenant, overseer.token]
            hold.expires = self.world.now + 3 * overseer.interval * 1000
            overseer.accepted = True

    async def resign(self, caller: Caller, coordinator_id: str) -> None:
        """DELETE /coordinators/{id}."""
        path = f"{_API}/coordinators/{coordinator_id}"
        answer = await self.ask(caller, "DELETE", path)
        refusals = work_ledger.overseer_refusals(self.world, caller, coordinator_id)
        if settle(caller, f"DELETE {path}", answer, refusals, 204):
            token = self.world.overseers[coordinator_id].token
            work_ledger.end_hold(self.world, self.world.holds[caller.tenant, token])

    async def claim_key(self, caller: Caller, namespace: str, key: str, seconds: int) -> None:
        """POST /claims."""
        if scope_name(namespace) == "agent":
            namespace = f"shared/agent/{caller.id}"
        body = {"key": key, "scope": scope_name(namespace), "ttl_seconds": seconds}
        answer = await self._send(caller, "POST", f"{_API}/claims", body)
        refusals = work_ledger.claim_refusals(self.world, caller, namespace, key)
        if settle(caller, f"POST /claims {body}", answer, refusals, 201):
            work_ledger.add_claim(self.world, caller, namespace, key, answer.json)

    async def renew_claim(self, caller: Caller, claim_id: str, seconds: int) -> None:
        """PATCH /claims/{id}."""
        path = f"{_API}/claims/{claim_id}"
        answer = await self._send(caller, "PATCH", path, {"ttl_seconds": seconds})
        refusals = work_ledger.own_claim_refusals(self.world, caller, claim_id, live=True)
        if settle(caller, f"PATCH {path}", answer, refusals, 200):
            hold = work_ledger.claim_of(self.world, caller, claim_id)
            assert hold is not None
            hold.expires = self.world.now + seconds * 1000

    async def release_claim(self, caller: Caller, claim_id: str) -> None:
        """DELETE /claims/{id}."""
        answer = await self.ask(caller, "DELETE", f"{_API}/claims/{claim_id}")
        refusals = work_ledger.own_claim_refusals(self.world, caller, claim_id, live=False)
        if settle(caller, f"DELETE /claims/{claim_id}", answer, refusals, 204):
            hold = work_ledger.claim_of(self.world, caller, claim_id)
            work_ledger.end_hold(self.world, hold)

    async def lapse(self) -> None:
        """The server's round over what is held no more, on both sides."""
        await expire_leases(self.service.services)
        work_ledger.lapse(self.world)

    def token_for(self, caller: Caller, body: Body) -> int | None:
        """The token that a write of the caller's must carry, None where it needs none or where the
        caller has none."""
        hold = None
        if body.get("memory_type") == "working":
            job, _ = bound_to(self.world, caller.tenant, body.get("scope", {}))
            if job is not None:
                hold = hold_over(self.world, caller.tenant, "task", job.intent, job.id)
        if body.get("memory_type") == STATE:
            place, name = body["namespace"], body["key"]
            hold = hold_over(self.world, caller.tenant, "claim", place, name)
        return hold.token if hold is not None and hold.holder == caller.id else None

    def some_token(self, caller: Caller, body: Body) -> int | None:
        """Mostly the right token, at times none, and at times any other."""
        chance = self.random.random()
        tokens = [token for tenant, token in self.world.holds if tenant == caller.tenant]
        if chance < 0.06 and tokens:
            # The one below is that of a hold which has been taken over or given back since.
            return max(self.random.choice(tokens) - self.random.choice((0, 1)), 1)
        return None if chance < 0.12 else self.token_for(caller, body)

    @contextmanager
    def _under(self, caller: Caller, body: Body) -> Iterator[None]:
        entry = self.world.entries.get(body.get("id", ""))
        self.world.under = self.some_token(caller, body if entry is None else entry.body)
        try:
            yield
        finally:
            self.world.under = None

    async def _send(self, caller: Caller, method: str, path: str, body: Body) -> Answer:
        return await self.ask(caller, method, path, content=json.dumps(body).encode())

    async def _named(self, caller: Caller, draft: Body) -> str:
        """The id of an entry that was made by its name, read behind the system's back."""

        async def script(transaction: Transaction) -> str:
            entry = await transaction.entries.find(
                Tier.WORKING, caller.id, draft["namespace"], draft["key"]
            )
            assert entry is not None
            return entry.id

        return await self.service.services.store.read(caller.tenant, script)

    async def _task_version(self, task_id: str) -> int:
        """Read behind the system's back, for not everybody who tries may know it."""
        job = self.world.jobs.get(task_id)
        if job is None:
            return 1
        tenant = job.tenant
        task = await self.service.services.store.read(tenant, lambda to: to.tasks.get(task_id))
        return 1 if task is None else task.version


def settle(caller: Caller, where: str, answer: Answer, refusals: set[int], good: int) -> bool:
    """Whether the step succeeded; Disagreement where it should not have, or should have. A key that
    may change nothing at all can be told so before anything is looked up."""
    right = refusals or {good}
    if "memory.write" not in caller.permissions and refusals:
        right = {403, *refusals}
    if answer.status not in right:
        raise Disagreement(
            f"{caller.label} at {where}:\n  system {answer.status} {answer.text}\n  oracle {right}"
        )
    return not refusals


def line_of(shown: Body) -> Line:
    """A line of an access list as the wire shows it."""
    expires = shown.get("expires_at")
    return Line(
        id=shown["id"],
        agent=shown["principal_id"],
        level=shown["permission"],
        expires=None if expires is None else milliseconds(expires),
    )


def grant_body(agent: str, level: str, now: int, seconds: int | None) -> Body:
    """A line to be sent, which counts for so many seconds."""
    line: dict[str, Any] = {"principal_id": agent, "permission": level}
    if seconds is not None:
        line["expires_at"] = format_instant(now + seconds * 1000)
    return line


def bridged(body: Body) -> Body:
    """An entry as the bridge's route shows it."""
    names = ("agent_id", "namespace", "key", "value", "version", "updated_at", "expires_at")
    return {name: body[name] for name in names}
