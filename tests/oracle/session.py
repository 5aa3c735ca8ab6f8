"""A running system and the oracle's world beside it; every write is done to both and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp

from memorywall.service.access.subjects import subject_form
from memorywall.service.administration.tenants import revoke_key
from tests.oracle import ledger
from tests.oracle.callers import SLOTS, TENANTS, give_key
from tests.oracle.ledger import Refused
from tests.oracle.rules import AGENT_TIERS, admits, level_in, may_read, may_write
from tests.oracle.wire import Answer, part, send
from tests.oracle.work_rules import is_live, may_in_intent
from tests.oracle.world import Body, Caller, World
from tests.support.rounds import sweep as sweep_system
from tests.support.service import RunningService

NAMESPACES = ("plans", "plans.draft", "ops/runbook")
TASKS = ("t1", "t2")
SUBJECTS = ("ann", "ben", "eva")
MARKER = re.compile(r"<<([^|>]*)\|([^|>]*)\|[^|>]*>>")
_PENDING = "pending-"


class Disagreement(AssertionError):
    """The system and the oracle differ, or a reply holds what its receiver may not see."""


def agree(who: Caller, where: str, got: Any, expected: Any) -> None:
    """Raises Disagreement unless the two are equal."""
    if got != expected:
        raise Disagreement(f"{who.label} at {where}:\n  system {got!r}\n  oracle {expected!r}")


def boundary_of(tier: str, owner: str, namespace: str) -> str:
    """The boundary an entry stands behind, as its marker names it."""
    return f"agent:{owner}" if tier in AGENT_TIERS else f"space:{namespace}"


def forbidden_markers(world: World, caller: Caller, reply: str, request: str) -> list[str]:
    """Markers in a reply which its receiver neither may read nor has just sent."""
    forbidden = []
    for found in MARKER.finditer(reply):
        tenant, boundary = found.groups()
        kind, _, name = boundary.partition(":")
        inside = name == caller.id if kind == "agent" else admits(world, caller, name, "read")
        readable = tenant == caller.tenant and inside and "memory.read" in caller.permissions
        marker = found.group()
        if not readable and marker not in request and not is_opened(world, caller, marker):
            forbidden.append(marker)
    return forbidden


def is_opened(world: World, caller: Caller, marker: str) -> bool:
    """Whether the marker stands in another agent's entry which work opens to the caller, or in the
    archive of an intent it may read."""
    for entry_id, entry in world.entries.items():
        if entry.body["value"].get("marker") == marker and world.living(entry_id) is not None:
            return may_read(world, caller, entry)
    for event in world.events:
        intent = world.intents.get(event["shown"].get("intent_id", ""))
        for kept in event["shown"]["data"].get("snapshot", ()):
            if intent is not None and kept.get("value", {}).get("marker") == marker:
                return may_in_intent(world, caller, intent, "read")
    return False


class Session:
    """Both sides of the comparison.

    keys: the text of each slot's key; `ids`: every entry ever made, gone ones too
    places: the namespaces to look at by their names
    most_looked_at: how many entries a watcher gets one by one; the lists show all of them anyway
    """

    def __init__(self, service: RunningService, keys: dict[tuple[str, str], str]) -> None:
        self.service = service
        self.app: ASGIApp = service.app
        self.keys = dict(keys)
        self.world = World(now=service.clock.now())
        self.ids: list[str] = []
        self.places: tuple[str, ...] = NAMESPACES
        self.most_looked_at = 1_000

    @property
    def task_names(self) -> tuple[str, ...]:
        """What memory may be bound to."""
        return TASKS

    @property
    def intent_names(self) -> tuple[str, ...]:
        """The same, of intents."""
        return ("i1",)

    async def learn_digests(self) -> None:
        """Learns what stands for the names of subjects beside what is sealed."""
        for tenant in TENANTS:
            for name in SUBJECTS:
                form = await subject_form(self.service.services, tenant, name)
                self.world.digests[tenant, name] = form

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        content: bytes = b"",
    ) -> Answer:
        """One request, and the blunt check on what comes back."""
        sent = {"X-API-Key": self.keys[caller.tenant, caller.slot], **(headers or {})}
        if self.world.under is not None and method != "GET":
            sent["Fencing-Token"] = str(self.world.under)
        if caller.id != caller.actor:
            sent["X-Agent-ID"] = caller.id
        answer = await send(self.app, method, path, query=query, headers=sent, content=content)
        # A server that fails is no leak that has been found: this must not look like one.
        assert answer.status < 500, (method, path, answer.text)
        seen = answer.text + json.dumps(answer.headers)
        leaked = forbidden_markers(self.world, caller, seen, content.decode())
        if leaked:
            raise Disagreement(f"{caller.label} was shown {leaked} by {method} {path}")
        return answer

    async def post(self, caller: Caller, body: Body, once: str | None) -> None:
        """POST /memory or, with `entries`, /memory/batch; `run_idempotent` goes as
        Idempotency-Key."""
        alone = "entries" not in body
        path = "/api/v1/memory" if alone else "/api/v1/memory/batch"
        elements = [body] if alone else body["entries"]

        def work(world: World, ids: list[str]) -> list[Body]:
            if alone:
                return [ledger.write_element(world, caller, body, ids[0])]
            return ledger.write_batch(world, caller, elements, ids)

        content = json.dumps(body, sort_keys=True).encode()
        headers = {} if once is None else {"Idempotency-Key": once}
        answer = await self.ask(caller, "POST", path, headers=headers, content=content)
        kept_by = (caller.tenant, caller.id, once or "")
        if once is not None and kept_by in self.world.kept:
            self._compare_repetition(caller, answer, elements, content, self.world.kept[kept_by])
            return
        try:
            work(self.world.trial(), [f"{_PENDING}{n}" for n in range(len(elements))])
        except Refused as refused:
            compare_refusal(self.world, caller, f"POST {path}", answer, refused)
            return
        agree(caller, f"POST {path} status", answer.status, 201 if alone else 200)
        shown = [answer.json] if alone else answer.json["entries"]
        ids = [entry["id"] for entry in shown]
        expected = work(self.world, ids)
        self.ids += [new for new, part in zip(ids, elements, strict=True) if "id" not in part]
        sees_all = self._sees_all(caller, ids)
        if sees_all:
            agree(caller, f"POST {path} reply", shown, expected)
        if once is not None:
            self.world.kept[kept_by] = {
                "content": content,
                "status": answer.status,
                "reply": answer.json if sees_all else None,
                "ids": set(ids),
                "erased": False,
            }

    def _compare_repetition(
        self, caller: Caller, answer: Answer, elements: list[Body], content: bytes, kept: Body
    ) -> None:
        """The same key gives the first reply again; a refusal is right as well for those who could
        not do or see it now, and the reply may be gone with an entry whose time is over."""
        right = {kept["status"]}
        if content != kept["content"]:
            right = {422}
        elif kept["erased"]:
            right = {410}
        elif any(self.world.living(entry_id) is None for entry_id in kept["ids"]):
            right.add(410)
        sees_all = self._sees_all(caller, kept["ids"])
        if not sees_all or self._is_walled_off(caller, elements, kept["ids"]):
            right.add(403)
        if token_is_stale(self.world, caller):
            right.add(409)
        if answer.status not in right:
            raise Disagreement(f"{caller.label}, repeating: {answer.status}, not one of {right}")
        if sees_all and kept["reply"] is not None and answer.status == kept["status"]:
            agree(caller, "repeated reply", answer.json, kept["reply"])

    def _is_walled_off(self, caller: Caller, elements: list[Body], ids: Iterable[str]) -> bool:
        """Whether some part of the request is not the caller's to do, now that it is repeated."""
        living = [self.world.living(entry_id) for entry_id in ids]
        if not all(one is None or may_write(self.world, caller, one) for one in living):
            return True
        trial = self.world.trial()
        for number, element in enumerate(elements):
            try:
                ledger.write_element(trial, caller, element, f"{_PENDING}{number}")
            except Refused as refused:
                if refused.status == 403:
                    return True
        return False

    def _sees_all(self, caller: Caller, ids: Iterable[str]) -> bool:
        """Whether the caller may read each of the entries that are still there. What a write shows
        is compared only then; to others no reply may show more than they have sent."""
        living = [self.world.living(entry_id) for entry_id in ids]
        return all(one is None or may_read(self.world, caller, one) for one in living)

    async def update(self, caller: Caller, entry_id: str, version: int, change: Body) -> None:
        """PATCH /memory/{id}."""
        path = f"/api/v1/memory/{entry_id}"
        answer = await self.ask(
            caller,
            "PATCH",
            path,
            headers={"If-Match": str(version)},
            content=json.dumps(change).encode(),
        )
        try:
            expected = ledger.update(self.world, caller, entry_id, version, change)
        except Refused as refused:
            compare_refusal(self.world, caller, f"PATCH {path}", answer, refused)
            return
        agree(caller, f"PATCH {path} status", answer.status, 200)
        if may_read(self.world, caller, self.world.entries[entry_id]):
            agree(caller, f"PATCH {path}", answer.json, expected)

    async def delete(self, caller: Caller, entry_id: str, version: int | None) -> None:
        """DELETE /memory/{id}."""
        path = f"/api/v1/memory/{entry_id}"
        headers = {} if version is None else {"If-Match": str(version)}
        answer = await self.ask(caller, "DELETE", path, headers=headers)
        try:
            ledger.delete(self.world, caller, entry_id, version)
        except Refused as refused:
            compare_refusal(self.world, caller, f"DELETE {path}", answer, refused)
            return
        agree(caller, f"DELETE {path}", (answer.status, answer.text), (204, ""))

    async def delete_matching(self, caller: Caller, wanted: dict[str, str]) -> None:
        """DELETE /memory/batch."""
        answer = await self.ask(caller, "DELETE", "/api/v1/memory/batch", query=wanted)
        try:
            deleted = ledger.delete_matching(self.world, caller, wanted)
        except Refused as refused:
            compare_refusal(self.world, caller, f"DELETE batch {wanted}", answer, refused)
            return
        got = (answer.status, answer.json)
        agree(caller, f"DELETE batch {wanted}", got, (200, {"deleted": deleted}))

    async def set_permissions(
        self, caller: Caller, name: str, change: Body, version: int | None
    ) -> None:
        """PATCH /memory/namespaces/{name}."""
        path = f"/api/v1/memory/namespaces/{part(name)}"
        answer = await self.ask(
            caller,
            "PATCH",
            path,
            headers={} if version is None else {"If-Match": str(version)},
            content=json.dumps({"permissions": change}).encode(),
        )
        try:
            ledger.set_permissions(self.world, caller, name, change, version)
        except Refused as refused:
            agree(caller, f"PATCH {path} {change}", answer.status, refused.status)
            return
        agree(caller, f"PATCH {path} {change}", answer.status, 200)
        agree(caller, f"PATCH {path}", answer.json, namespace_view(self.world, caller, name))

    async def sweep(self) -> None:
        """The server's background work, on both sides."""
        await sweep_system(self.service.services)
        ledger.sweep(self.world)

    def advance(self, seconds: int) -> None:
        """Time goes by, on both sides."""
        self.service.clock.advance(seconds)
        self.world.now = self.service.clock.now()

    async def renew_key(self, tenant: str, slot_name: str) -> str:
        """Revokes the key of a slot, gives it a new one, and returns the text of the old."""
        old = self.keys[tenant, slot_name]
        assert await revoke_key(self.service.services, old.partition(".")[0])
        self.keys[tenant, slot_name] = await give_key(
            self.service.services, tenant, SLOTS[slot_name]
        )
        return old


def token_is_stale(world: World, caller: Caller) -> bool:
    """Whether the request carries a token of nothing that the caller holds now."""
    if world.under is None:
        return False
    hold = world.holds.get((caller.tenant, world.under))
    return hold is None or hold.holder != caller.id or not is_live(world, hold)


def namespace_view(world: World, caller: Caller, name: str) -> Body:
    """A namespace as those see it who may."""
    shared = world.namespaces[caller.tenant, name]
    return {
        "namespace": name,
        "access": level_in(world, caller, name),
        "permissions": {
            "default": shared.default,
            "allow": [
                {"agent": agent, "access": access} for agent, access in shared.grants.items()
            ],
        },
        "version": shared.version,
        "created_at": shared.created_at,
        "updated_at": shared.updated_at,
    }


def compare_refusal(
    world: World, caller: Caller, where: str, answer: Answer, refused: Refused
) -> None:
    """A refusal shows the current entry to those who may read it, and nothing to others. A token
    that is no good can be refused before anything else is looked at."""
    if token_is_stale(world, caller) and answer.json.get("error") == "FENCED":
        refused = Refused(409)
        refused.index = answer.json.get("index")
    agree(caller, f"{where} status", answer.status, refused.status)
    document = answer.json
    agree(caller, f"{where} index", document.get("index"), refused.index)
    got, expected = document.get("current"), refused.current
    agree(caller, f"{where} shows a current entry", got is not None, expected is not None)
    version = None if expected is None else expected["version"]
    agree(caller, f"{where} current version", document.get("current_version"), version)
    if got is not None and expected is not None:
        agree(caller, f"{where} current", got, expected)
