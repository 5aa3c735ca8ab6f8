"""Generated requests from the OpenAPI document, per role: no 5xx, nothing undocumented.

Every operation is tried twice: with what Schemathesis makes up altogether, which seldom gets past
the look-up of an id, and about things that there are. A failure of Hypothesis prints the example
and a blob with which to run it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.strategies import SearchStrategy
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memorywall.assembly import open_memory
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key
from memorywall.wire.operations import OPERATIONS, Operation
from tests.support.extent import extent
from tests.support.process import ServerProcess
from tests.support.service import settings_of
from tests.support.stage import Stage, make_stage

CHECKS: list[Callable[..., Any]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ROLES: dict[str, tuple[Permission, ...] | None] = {
    "nobody": None,
    "reader": (Permission.READ,),
    "writer": (Permission.READ, Permission.WRITE),
    "administrator": tuple(Permission),
}
EXAMPLES = extent(1, long=25)
# Enough of what is refused before anything of the request is looked at.
REFUSED_EXAMPLES = extent(1, long=5)
# Without a page of JSON to ask for, there is no end to wait for; its own tests read what it sends.
ENDLESS = "subscribe_intent"
# What a filter matches and a key may not delete is left out, as it is when it looks.
NOTHING_DELETED = b'{"deleted":0}'


class Served:
    """A server with a key for each role, something stored for each, and its document."""

    def __init__(self, server: ServerProcess) -> None:
        self.keys = asyncio.run(_make_keys(server))
        self.schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        self.schema.validate()
        self._clients = {role: server.client(agent=role) for role in ROLES}
        self._stages: dict[str, Stage] = {}

    def stage(self, role: str, *, fresh: bool) -> Stage:
        """One of everything for a role; `fresh` where something may become of it."""
        if role not in self._stages or fresh:
            self._stages[role] = make_stage(self._clients[role], role)
        return self._stages[role]

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


async def _make_keys(server: ServerProcess) -> dict[str, str]:
    keys = {}
    async with open_memory(settings_of(server.data), exclusive=False) as services:
        for role, permissions in ROLES.items():
            if permissions is not None:
                keys[role], _ = await create_key(
                    services, "default", role, PrincipalKind.AGENT, permissions
                )
    return keys


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for every role and operation."""
    with ServerProcess(tmp_path_factory.mktemp("fuzz") / "data") as server:
        everything = Served(server)
        yield everything
        everything.close()


WORDS = {part for one in OPERATIONS for part in one.path.split("/") if part and "{" not in part}


class Trial:
    """Sends what is generated for an operation, and remembers how it was answered.

    stage: what the requests shall be about, None for whatever they name
    """

    def __init__(self, operation: Operation, key: str | None, stage: Stage | None) -> None:
        self.statuses: set[int] = set()
        self.did_something = False
        self._operation = operation
        # A stream of events, which some operations offer as well, has no end to wait for.
        self._headers = {"Accept": "*/*"} | ({} if key is None else {"X-API-Key": key})
        self._stage = stage
        self._version = 1

    def run(self, strategy: SearchStrategy[Any], examples: int) -> None:
        """Sends as many requests of what `strategy` makes up."""

        @settings(
            max_examples=examples,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def send(case: schemathesis.Case[Any]) -> None:
            self._send(case)

        send()
        assert self.statuses

    def _send(self, case: schemathesis.Case[Any]) -> None:
        if self._stage is not None:
            self._make_known(case, self._stage)
        # A word that stands in an id's place in another operation's path leads to that operation.
        assume(WORDS.isdisjoint(map(str, (case.path_parameters or {}).values())))
        response = case.call(headers=self._headers, timeout=20)
        case.validate_response(response, checks=CHECKS)
        self.statuses.add(response.status_code)
        if response.status_code >= 400:
            assert response.json()["error"] in {error.code for error in self._operation.errors}
        elif response.content != NOTHING_DELETED:
            self.did_something |= not (self._operation.empty and response.status_code == 204)
        if self._operation.if_match == "required" and response.status_code in (200, 409):
            said = response.json()
            self._version = said.get("current_version") or said.get("version") or self._version

    def _make_known(self, case: schemathesis.Case[Any], stage: Stage) -> None:
        """Puts ids, the version and the token that mean something in place of made-up ones."""
        headers = case.headers
        # A header that claims another agent ends nearly every request early.
        for name in ("X-Agent-ID", "Fencing-Token", "If-Match"):
            headers.pop(name, None)
        if self._operation.if_match == "required":
            headers["If-Match"] = str(self._version)
        if self._operation.path.endswith("/{task_id}/lease"):
            headers["Fencing-Token"] = str(stage.token)
        for part in (case.query, case.body):
            _make_fields_known(part, stage)


def _make_fields_known(part: Any, stage: Stage) -> None:
    """The same for the fields of a body, or of the elements of one."""
    if not isinstance(part, dict):
        return
    for element in part["entries"] if isinstance(part.get("entries"), list) else ():
        _make_fields_known(element, stage)
    task = stage.ids["task_id"]
    known: dict[str, Any] = {
        "agent_id": stage.agent,
        "assigned_agent": stage.agent,
        "created_by": stage.agent,
        "intent_id": stage.ids["intent_id"],
        "dependency_id": stage.other_intent,
        "parent_intent_id": stage.ids["intent_id"],
        "parent_task_id": task,
        "depends_on": [task] if "intent_id" in part else [stage.other_intent],
        "derived_from": [{"id": stage.ids["entry_id"], "version": 1}],
        "ttl": "duration:PT1H",
        "expires_at": "2999-12-31T23:59:59Z",
        "since": "2020-01-01T00:00:00+01:00",
        "updated_after": "2020-01-01T00:00:00Z",
        "updated_before": "2999-12-31T23:59:59Z",
    }
    # What is not text or a list is there to be refused.
    part.update(
        (name, value) for name, value in known.items() if isinstance(part.get(name), str | list)
    )


def _roles(operation: Operation) -> tuple[str, ...]:
    """The roles that try an operation: one that may use it, or all of them in the long version."""
    writer = not operation.permission or operation.permission in (ROLES["writer"] or ())
    return extent(("writer" if writer else "administrator",), long=tuple(ROLES))


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        pytest.param(operation, role, id=f"{operation.name}-{role}")
        for operation in OPERATIONS
        for role in _roles(operation)
    ],
)
def test_generated_requests_meet_only_documented_replies(
    served: Served, operation: Operation, role: str
) -> None:
    described = served.schema.find_operation_by_id(operation.name)
    granted = ROLES[role] or ()
    allowed = operation.permission in granted or (role != "nobody" and not operation.permission)
    examples = EXAMPLES if allowed or operation.public else REFUSED_EXAMPLES
    anything = Trial(operation, served.keys.get(role), None)
    anything.run(described.as_strategy(), examples)
    if role == "nobody":
        assert operation.public or anything.statuses == {401}
    elif not operation.public and operation.name != ENDLESS:
        stage = served.stage(role, fresh=operation.method != "GET")
        known = Trial(operation, served.keys[role], stage)
        known.run(described.as_strategy(path_parameters=stage.path_of(operation)), examples)
        assert allowed or not known.did_something
