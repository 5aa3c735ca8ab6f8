"""One server for all scenes; each of them keeps to names of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.published_client.stage import Stage
from tests.support.process import ServerProcess


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server, its agents, and the scenes that were played on it."""
    with ServerProcess(tmp_path_factory.mktemp("published-client") / "data") as server:
        yield Stage(server)


@pytest.fixture(params=["blocking", "async"])
def colour(request: pytest.FixtureRequest) -> str:
    """The class of the published client that plays the scene."""
    name: str = request.param
    return name
