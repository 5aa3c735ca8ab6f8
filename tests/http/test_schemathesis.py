"""Generated requests from the OpenAPI document, per role: no 5xx, nothing undocumented.

A failure of Hypothesis prints the example and a blob with which to run it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memorywall.assembly import open_memory, settings_for
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.wall.administration import create_key
from memorywall.wire.operations import OPERATIONS
from tests.http.checks import MEMORY
from tests.support.house import draft
from tests.support.process import ServerProcess

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
EXAMPLES = 15


class Served:
    """A server with a key for each role, something stored for each, and its document."""

    def __init__(self, server: ServerProcess) -> None:
        self.keys = asyncio.run(_make_keys(server))
        self.schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        self.schema.validate()
        self.entry_ids: dict[str, str] = {}
        for role in ROLES:
            with server.client(agent=role) as client:
                for tier in ("working", "episodic", "semantic"):
                    body = draft(memory_type=tier, namespace=role, scope={"task_id": "t"})
                    response = client.post(MEMORY, json=body)
                    assert response.status_code == 201, response.text
                    self.entry_ids.setdefault(role, response.json()["id"])


async def _make_keys(server: ServerProcess) -> dict[str, str]:
    keys = {}
    async with open_memory(settings_for(server.data), exclusive=False) as door:
        for role, permissions in ROLES.items():
            if permissions is not None:
                keys[role], _ = await create_key(
                    door, "default", role, PrincipalKind.AGENT, permissions
                )
    return keys


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for every role and operation."""
    with ServerProcess(tmp_path_factory.mktemp("fuzz") / "data") as server:
        yield Served(server)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", [one.name for one in OPERATIONS])
def test_generated_requests_meet_only_documented_replies(
    served: Served, name: str, role: str
) -> None:
    operation = served.schema.find_operation_by_id(name)
    parameters = {one.name for one in operation.iter_parameters()}
    fixed: dict[str, Any] = {}
    if "agent_id" in {one.name for one in operation.path_parameters}:
        fixed["path_parameters"] = {"agent_id": role}
    headers = {"X-API-Key": served.keys[role]} if role in served.keys else {}

    def run(case: schemathesis.Case[Any]) -> None:
        # A header that claims another agent ends nearly every request early; its own test has it.
        if case.headers is not None and role != "administrator":
            case.headers.pop("X-Agent-ID", None)
        response = case.call(headers=headers, timeout=20)
        case.validate_response(response, checks=CHECKS)
        seen.add(response.status_code)

    seen: set[int] = set()
    limits = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    limits(given(operation.as_strategy(**fixed))(run))()
    if "entry_id" in parameters:
        fixed["path_parameters"] = {"entry_id": served.entry_ids[role]}
        limits(given(operation.as_strategy(**fixed))(run))()
    assert seen
    if role == "nobody" and operation.definition.raw["security"]:
        assert seen == {401}
