"""The state machine: people of two tenants write, and after each step somebody looks everywhere."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.oracle.callers import AGENTS, CALLERS, SLOTS, TENANTS, give_keys
from tests.oracle.rules import (
    SHARED_TIERS,
    TIERS,
    found,
    may_administer,
    may_write,
)
from tests.oracle.session import NAMESPACES, SUBJECTS, TASKS, Session, boundary_of
from tests.oracle.surfaces import KEYS, SEARCHED, TAGS, look_everywhere, meet_refusal, random_filter
from tests.oracle.world import Body, Caller, Remembered
from tests.support.backend import give_back
from tests.support.service import RunningService, open_service
from tests.support.stored import copy_store

Result = TypeVar("Result")


def may_change(caller: Caller) -> bool:
    """Whether the caller may both see and change something at all."""
    return {"memory.read", "memory.write"} <= caller.permissions


# Drawn by their names, which read well in a failing example.
# Those who may write come more often.
callers = st.sampled_from(
    [label for label, one in CALLERS.items() for _ in range(4 if may_change(one) else 1)]
)
slots = st.sampled_from(sorted(SLOTS))
places = st.integers(0, 1_000)
tags = st.lists(st.sampled_from(TAGS), max_size=3)
scopes = st.fixed_dictionaries(
    {}, optional={"task_id": st.sampled_from(TASKS), "intent_id": st.just("i1")}
)
lives = st.sampled_from((None, None, 60, 600, "task_lifetime"))
sensitivities = st.sampled_from(("public", "internal", "confidential", "restricted"))
people = st.lists(st.sampled_from(SUBJECTS), max_size=2, unique=True)
drafts = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(NAMESPACES),
        "key": st.sampled_from(KEYS),
        "memory_type": st.sampled_from((*TIERS, *SHARED_TIERS)),
        "ttl": lives,
    },
    optional={
        "tags": tags,
        "scope": scopes,
        "pinned": st.booleans(),
        "priority": st.sampled_from(("low", "normal", "high")),
        "sensitivity": sensitivities,
        "subjects": people,
        "agent_id": st.sampled_from(AGENTS),
    },
)
changes = st.fixed_dictionaries(
    {"tags": tags},
    optional={
        "value": st.just({}),
        "scope": scopes,
        "pinned": st.booleans(),
        "ttl": lives,
        "sensitivity": sensitivities,
    },
)
grants = st.dictionaries(
    st.sampled_from(AGENTS), st.sampled_from(("none", "read", "write", "admin")), max_size=4
)
permissions = st.fixed_dictionaries(
    {"default": st.sampled_from(("none", "none", "read", "write"))}, optional={"allow": grants}
)
once_keys = st.sampled_from((None, None, "once-1", "once-2"))
version_errors = st.sampled_from((0, 0, 0, 0, -1, 1))


class Template:
    """A database with tenants and keys in it, made once and copied for every example."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keys = asyncio.run(self._fill())

    async def _fill(self) -> dict[tuple[str, str], str]:
        async with open_service(self.directory) as service:
            return await give_keys(service.services)


def holder_of(tenant: str, slot: str) -> Caller:
    """Somebody who sends the key of a slot."""
    return next(one for one in CALLERS.values() if (one.tenant, one.slot) == (tenant, slot))


class AccessMachine(RuleBasedStateMachine):
    """Does every step to the system and to the oracle, and compares what people then see."""

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(prefix="memorywall-oracle-"))
        copy_store(template.directory, self.directory)
        self.opening = open_service(self.directory)
        self.session = self.new_session(self.run(self.opening.__aenter__()), template.keys)
        self.run(self.session.learn_digests())
        self.random = Random(0)
        self.doers: list[Caller] = []
        self.count = 0

    def new_session(self, service: RunningService, keys: dict[tuple[str, str], str]) -> Session:
        """The session this machine drives."""
        return Session(service, keys)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs asynchronous work of this example to its end."""
        return self.runner.run(work)

    def teardown(self) -> None:
        try:
            self.run(self.opening.__aexit__(None, None, None))
        finally:
            self.runner.close()
            give_back(self.directory)
            shutil.rmtree(self.directory)

    @initialize(chance=st.integers(0, 2**32))
    def begin(self, chance: int) -> None:
        """Chooses who looks, at what, with which filters; and something is there already."""
        self.random = Random(chance)
        for caller in [one for one in CALLERS.values() if may_change(one)]:
            draft: Body = {
                "namespace": self.random.choice(NAMESPACES),
                "key": self.random.choice(KEYS),
                "memory_type": self.random.choice((*TIERS, *SHARED_TIERS)),
                "tags": self.random.sample(TAGS, self.random.randrange(3)),
                "ttl": self.random.choice((None, None, 60)),
                "subjects": self.random.sample(SUBJECTS, self.random.randrange(3)),
            }
            self.run(self.session.post(caller, self._finished(caller, draft), None))
        for tenant in TENANTS:
            change = {
                "default": self.random.choice(("none", "read", "write")),
                "allow": [{"agent": self.random.choice(("ada", "bob", "dora")), "access": "admin"}],
            }
            name = self.random.choice(NAMESPACES)
            chief = CALLERS[f"{tenant}/chief"]
            self.run(self.session.set_permissions(chief, name, change, None))

    @rule(caller=callers, draft=drafts, once=once_keys)
    def create(self, caller: str, draft: Body, once: str | None) -> None:
        doer = self._does(CALLERS[caller])
        self.run(self.session.post(doer, self._finished(doer, draft), once))

    @rule(caller=callers, parts=st.lists(st.one_of(drafts, changes), min_size=1, max_size=4))
    def write_batch(self, caller: str, parts: list[Body]) -> None:
        self._batch(CALLERS[caller], parts)

    @rule(place=places, among=places, change=changes)
    def update_once(self, place: int, among: int, change: Body) -> None:
        entry_id = self._some_entry(place)
        if entry_id is not None:
            caller = self._somebody_for(entry_id, among)
            version = self._version_of(entry_id)
            element = {"id": entry_id, "version": version, "tags": change["tags"]}
            self.run(self.session.post(caller, {"entries": [element]}, f"once-{place % 3}"))

    @rule(place=places, among=places, off=version_errors, change=changes)
    def update(self, place: int, among: int, off: int, change: Body) -> None:
        entry_id = self._some_entry(place)
        if entry_id is None:
            return
        caller = self._somebody_for(entry_id, among)
        change = self._finished_change(entry_id, change)
        version = max(self._version_of(entry_id) + off, 0)
        self.run(self.session.update(caller, entry_id, version, change))

    @rule(place=places, among=places, off=st.sampled_from((None, None, 0, 1)))
    def delete(self, place: int, among: int, off: int | None) -> None:
        entry_id = self._some_entry(place)
        if entry_id is not None:
            doer = self._somebody_for(entry_id, among)
            version = None if off is None else self._version_of(entry_id) + off
            self.run(self.session.delete(doer, entry_id, version))

    @rule(caller=callers)
    def delete_matching(self, caller: str) -> None:
        """Mostly by a filter that meets something the caller sees, whether or not it is his."""
        doer = self._does(CALLERS[caller])
        seen = [entry.body for _, entry in found(self.session.world, doer, {})]
        if seen and self.random.random() < 0.7:
            body = self.random.choice(seen)
            wanted = {name: body[name] for name in ("memory_type", "namespace", "key", "agent_id")}
        else:
            wanted = {"key": KEYS[0], **random_filter(self.session, self.random)}
        self.run(self.session.delete_matching(doer, wanted))

    @rule(place=places, name=st.sampled_from(NAMESPACES), change=permissions, off=version_errors)
    def set_permissions(self, place: int, name: str, change: Body, off: int) -> None:
        able = [one for one in CALLERS.values() if may_administer(self.session.world, one, name)]
        caller = self._one_of(able, place)
        allow = change.get("allow")
        if allow is not None:
            listed = [{"agent": agent, "access": access} for agent, access in allow.items()]
            change = {**change, "allow": listed}
        shared = self.session.world.namespaces.get((caller.tenant, name))
        version = shared.version + off if shared is not None and place % 2 else None
        self.run(self.session.set_permissions(caller, name, change, version))

    @rule(place=places, anybody=st.booleans(), stranger=callers)
    def repeat(self, place: int, anybody: bool, stranger: str) -> None:
        kept = sorted(self.session.world.kept)
        if not kept:
            return
        kept_by = kept[place % len(kept)]
        same = [one for one in CALLERS.values() if (one.tenant, one.id) == kept_by[:2]]
        caller = self._does(CALLERS[stranger] if anybody else same[place % len(same)])
        body = json.loads(self.session.world.kept[kept_by]["content"])
        if caller not in same:
            # What somebody else sends under the same key bears his own marks.
            body = self._marked_anew(caller, body)
        self.run(self.session.post(caller, body, kept_by[2]))

    @rule(seconds=st.sampled_from((1, 59, 60, 61, 600)), swept=st.booleans())
    def pass_time(self, seconds: int, swept: bool) -> None:
        self.session.advance(seconds)
        world = self.session.world
        for entry_id, entry in world.entries.items():
            if world.living(entry_id) is None and len(self.doers) < 2:
                self._looks_too(entry)
        if swept:
            self.run(self.session.sweep())

    @rule(tenant=st.sampled_from(TENANTS), agent=st.sampled_from(AGENTS), slot=slots)
    def misuse_a_key(self, tenant: str, agent: str, slot: str) -> None:
        """A key speaks for somebody it may not speak for, or else has been revoked."""
        victim = holder_of(tenant, slot)
        known = SLOTS[slot]
        if "act_as" in known.permissions or agent in (known.principal, *AGENTS[4:]):
            old = self.run(self.session.renew_key(tenant, slot))
            self.run(meet_refusal(self.session, {"X-API-Key": old}, 401, victim))
        else:
            headers = {"X-API-Key": self.session.keys[tenant, slot], "X-Agent-ID": agent}
            self.run(meet_refusal(self.session, headers, 403, victim))

    @invariant()
    def nobody_sees_more_or_less_than_he_may(self) -> None:
        """The one who has just done something looks everywhere, and so does somebody else."""
        if self.session.ids or self.session.world.namespaces:
            watchers = (*self.doers, self.random.choice(list(CALLERS.values())))
            for caller in dict.fromkeys(watchers):
                self.run(look_everywhere(self.session, caller, self.random))
        self.doers = []

    def _batch(self, caller: Caller, parts: list[Body]) -> None:
        self._does(caller)
        elements = []
        for part in parts:
            if "key" in part:
                elements.append(self._finished(caller, part))
                continue
            entry_id = self._some_entry(self.random.randrange(1_000), caller)
            if entry_id is not None:
                change = self._finished_change(entry_id, part)
                version = self._version_of(entry_id) + self.random.choice((0, 0, 0, 0, 1))
                elements.append({"id": entry_id, "version": version, **change})
        if elements:
            self.run(self.session.post(caller, {"entries": elements}, None))

    def _one_of(self, able: list[Caller], place: int) -> Caller:
        """Mostly somebody who can, else anybody."""
        choice = able if able and place % 4 else list(CALLERS.values())
        return self._does(choice[place % len(choice)])

    def _does(self, caller: Caller) -> Caller:
        """Notes who does this step, for looking around after it."""
        self.doers = [caller]
        return caller

    def _looks_too(self, entry: Remembered) -> None:
        """Whoever made the entry looks around as well."""
        maker = (entry.tenant, entry.body["created_by"])
        makers = [one for one in CALLERS.values() if (one.tenant, one.id) == maker]
        self.doers.append(makers[0])

    def _somebody_for(self, entry_id: str, place: int) -> Caller:
        entry = self.session.world.entries.get(entry_id)
        world = self.session.world
        able = [
            one for one in CALLERS.values() if entry is not None and may_write(world, one, entry)
        ]
        return self._one_of(able, place)

    def _some_entry(self, place: int, caller: Caller | None = None) -> str | None:
        """Mostly one that is there and that `caller` may change, at times one that is gone."""
        there = []
        for entry_id, entry in self.session.world.entries.items():
            if caller is None or may_write(self.session.world, caller, entry):
                there.append(entry_id)
        ids = there if there and place % 5 else self.session.ids
        return ids[place % len(ids)] if ids else None

    def _version_of(self, entry_id: str) -> int:
        entry = self.session.world.entries.get(entry_id)
        return 1 if entry is None else int(entry.body["version"])

    def _finished(self, caller: Caller, draft: Body) -> Body:
        """The draft with a marked value; a wrong owner is kept only now and then."""
        boundary = boundary_of(draft["memory_type"], caller.id, draft["namespace"])
        finished = {**draft, "value": self._marked(caller.tenant, boundary)}
        if finished.get("agent_id", caller.id) != caller.id and self.random.random() < 0.8:
            finished["agent_id"] = caller.id
        return self._lived(finished)

    def _finished_change(self, entry_id: str, change: Body) -> Body:
        finished = dict(change)
        entry = self.session.world.entries.get(entry_id)
        if "value" in finished and entry is not None:
            body = entry.body
            boundary = boundary_of(body["memory_type"], entry.owner, body["namespace"])
            finished["value"] = self._marked(entry.tenant, boundary)
        return self._lived(finished)

    def _marked_anew(self, caller: Caller, body: Body) -> Body:
        if "entries" in body:
            return {"entries": [self._marked_anew(caller, part) for part in body["entries"]]}
        if "id" in body:
            return self._finished_change(body["id"], body)
        return self._finished(caller, body)

    def _marked(self, tenant: str, boundary: str) -> Body:
        self.count += 1
        marker = f"<<{tenant}|{boundary}|{self.count}>>"
        # A search finds each value, and shows a part of the long ones, which repeats the marker.
        text = f"The {SEARCHED} of {marker} is calm. " * self.random.choice((1, 3, 30))
        return {"text": text, "marker": marker}

    def _lived(self, fields: Body) -> Body:
        """Seconds become a duration that no other has, so that expiries have one order."""
        if not isinstance(fields.get("ttl"), int):
            return fields
        self.count += 1
        return {**fields, "ttl": f"duration:PT{fields['ttl']}.{self.count % 1000:03d}S"}
