"""Writes by name: what the oracle expects of a `PUT`, and the state machine that sends them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from memorywall.service.entries import create as puts
from tests.oracle.callers import CALLERS
from tests.oracle.ledger import Refused, create, holder_of, refuse_at_sight, update
from tests.oracle.machine import AccessMachine, callers, drafts
from tests.oracle.rules import AGENT_TIERS, found, may_create
from tests.oracle.session import agree, compare_refusal
from tests.oracle.world import Body, Caller, World

_NAME = frozenset({"namespace", "key", "memory_type", "agent_id"})
_PENDING = "pending"


def put(
    world: World, caller: Caller, given: Body, version: int | None, entry_id: str, *, new: bool
) -> Body:
    """Creates an entry or replaces the entry of its name, and returns it. Raises Refused.

    version: the value of If-Match; None without one
    entry_id: the id of the entry if it is new
    new: whether If-None-Match is sent
    """
    refuse_at_sight(caller, given)
    if version is None:
        try:
            return create(world, caller, given, entry_id)
        except Refused as refused:
            if refused.status == 409 and not new:
                raise Refused(428) from None
            raise
    owner = caller.id if given["memory_type"] in AGENT_TIERS else ""
    holder = holder_of(world, caller.tenant, owner, given)
    if holder is None or world.living(holder) is None:
        allowed = owner or may_create(world, caller, given["memory_type"], given["namespace"])
        raise Refused(404 if allowed else 403)
    change = {name: part for name, part in given.items() if name not in _NAME}
    if not change.get("scope"):
        change.pop("scope", None)
    return update(world, caller, holder, version, change)


class PutMachine(AccessMachine):
    """The steps of `AccessMachine` and writes by name, with and without a precondition.

    A machine of its own, because a further step changes what the recorded seeds of the other draw.
    """

    @rule(
        caller=callers,
        draft=drafts,
        condition=st.sampled_from(("none", "new", "match", "match", "match", "other")),
        known=st.booleans(),
    )
    def put(self, caller: str, draft: Body, condition: str, known: bool) -> None:
        """Writes a drawn name, or mostly the name of an entry that the caller reads."""
        world, doer = self.session.world, self._does(CALLERS[caller])
        seen = [entry.body for _, entry in found(world, doer, {})]
        if known and seen:
            body = self.random.choice(seen)
            draft = {**draft, **{name: body[name] for name in ("memory_type", "namespace", "key")}}
        given = self._finished(doer, draft)
        owner = doer.id if given["memory_type"] in AGENT_TIERS else ""
        holder = holder_of(world, doer.tenant, owner, given)
        version = None
        if condition in ("match", "other"):
            version = (1 if holder is None else self._version_of(holder)) + (condition == "other")
        self.run(self._send(doer, given, version, new=condition == "new"))

    async def _send(self, caller: Caller, given: Body, version: int | None, *, new: bool) -> None:
        world, session = self.session.world, self.session
        headers = {} if version is None else {"If-Match": str(version)}
        if new:
            headers["If-None-Match"] = "*"
        path, content = "/api/v1/memory", json.dumps(given).encode()
        answer = await session.ask(caller, "PUT", path, headers=headers, content=content)
        try:
            put(world.trial(), caller, given, version, _PENDING, new=new)
        except Refused as refused:
            compare_refusal(world, caller, f"PUT {path}", answer, refused)
            return
        made = version is None
        agree(caller, f"PUT {path} status", answer.status, 201 if made else 200)
        expected = put(world, caller, given, version, answer.json["id"], new=new)
        if made:
            session.ids.append(answer.json["id"])
        agree(caller, f"PUT {path}", answer.json, expected)


def missing_names_are_told(patch: pytest.MonkeyPatch) -> None:
    """If-Match tells whether a namespace that the caller may not write to has a name."""

    async def authorize(*_: Any) -> None:
        """Allows everything."""

    patch.setattr(puts, "authorize_creation", authorize)


def the_last_write_wins_everywhere(patch: pytest.MonkeyPatch) -> None:
    """A `PUT` without a precondition replaces an entry of any namespace."""

    async def lets(*_: Any) -> bool:
        return True

    patch.setattr(puts, "_lets_last_write_win", lets)


PUT_PLANTS = (missing_names_are_told, the_last_write_wins_everywhere)
