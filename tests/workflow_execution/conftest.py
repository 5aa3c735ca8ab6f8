"""Stages: in a data directory of this process, and on a server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from memorywall.workflow_execution.agent_clients import server_connections
from tests.support.process import ServerProcess, run_cli
from tests.workflow_execution.stage import Stage, local_stage

PERMISSIONS = ("memory.read", "memory.write", "act_as", "tenant.admin")
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server; each test has a tenant of its own in it."""
    with ServerProcess(tmp_path_factory.mktemp("served") / "data") as process:
        yield process


@pytest.fixture
def tenant(server: ServerProcess) -> str:
    """A tenant of the server with nothing in it."""
    name = f"tenant-{next(_NUMBERS)}"
    run_cli("tenants", "create", name, *server.place)
    return name


@pytest.fixture
def key(server: ServerProcess, tenant: str) -> str:
    """A key that suffices to run any workflow."""
    return make_key(server, tenant, *PERMISSIONS)


def make_key(server: ServerProcess, tenant: str, *permissions: str) -> str:
    """A key of the principal `chief` with these permissions."""
    options = [word for one in permissions for word in ("--permission", one)]
    return server.create_key("chief", *options, tenant=tenant)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage in a data directory."""
    with local_stage(tmp_path) as opened:
        yield opened


@pytest.fixture
def served_stage(tmp_path: Path, server: ServerProcess, key: str) -> Iterator[Stage]:
    """A stage on a server."""
    with server_connections(server.url, key) as connections:
        yield Stage(tmp_path, connections)


@pytest.fixture(params=["directory", "server"])
def any_stage(request: pytest.FixtureRequest) -> Stage:
    """Each of them."""
    name = "stage" if request.param == "directory" else "served_stage"
    found: Stage = request.getfixturevalue(name)
    return found
