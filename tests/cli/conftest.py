"""A server for the commands to talk to, and agents in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.shell import Shell, new_directory
from tests.support.process import ServerProcess

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for the tests of a module; each test has an agent of its own in it."""
    with ServerProcess(tmp_path_factory.mktemp("served") / "data") as process:
        yield process


@pytest.fixture
def new_agent(server: ServerProcess) -> Callable[..., Shell]:
    """Makes agents of the server that have no memory yet; takes options of `keys create`."""

    def make(*options: str) -> Shell:
        agent = f"agent-{next(_NUMBERS)}"
        key = server.create_key(agent, *options)
        return Shell(agent, ("--url", server.url, "--key", key))

    return make


@pytest.fixture
def agent(new_agent: Callable[..., Shell]) -> Shell:
    """An agent of the server."""
    return new_agent()


@pytest.fixture(params=["server", "directory"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """An agent whose memory is once behind a server and once in a directory."""
    if request.param == "server":
        make: Callable[..., Shell] = request.getfixturevalue("new_agent")
        return make()
    data = tmp_path / "own data"
    new_directory(data, "local-agent")
    return Shell("local-agent", ("--data", str(data), "--agent", "local-agent"))
