"""Plays scenes against a running server, each of them once however many tests look at it."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import httpx

from tests.published_client.environment import ROOT, client_python
from tests.support.process import ServerProcess

LIMIT = 120.0
AGENTS = ("ana", "ben")
BOTH = ("blocking", "async")
BLOCKING = ("blocking",)
# The asynchronous class has neither the intent graph nor streams.
SCENES: dict[str, tuple[str, ...]] = {
    "access": BOTH,
    "archive": BOTH,
    "attachments": BOTH,
    "coordinators": BOTH,
    "dead_ends": BLOCKING,
    "discovery": BOTH,
    "events": BOTH,
    "graph": BLOCKING,
    "intents": BOTH,
    "leases": BOTH,
    "memory": BOTH,
    "streams": BLOCKING,
    "tasks": BOTH,
    "unserved": BOTH,
}


class Stage:
    """A server with two agents on it."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.keys = {agent: server.create_key(agent) for agent in AGENTS}
        self._play = cache(self._play_all)

    def play(self, scene: str, colour: str) -> Any:
        """What the published client saw in a scene."""
        return self._outcome(scene, colour)["seen"]

    def calls(self, colour: str) -> set[str]:
        """Every method of the client of this colour that some scene has called."""
        return {
            call
            for scene, colours in SCENES.items()
            if colour in colours
            for call in self._outcome(scene, colour)["calls"]
        }

    def http(self, agent: str) -> httpx.Client:
        """Plain HTTP with an agent's key, to look at the same things without the client."""
        return self.server.client(self.keys[agent], agent)

    def get(self, path: str, agent: str = "ana", **query: Any) -> Any:
        """The JSON that a GET answers an agent."""
        with self.http(agent) as client:
            response = client.get("/api/v1" + path, params=query)
        assert response.status_code == 200, (path, response.status_code, response.text)
        return response.json()

    def status(self, path: str, agent: str = "ana") -> int:
        """The status that a GET answers an agent with."""
        with self.http(agent) as client:
            return client.get("/api/v1" + path).status_code

    def _outcome(self, scene: str, colour: str) -> dict[str, Any]:
        outcome: dict[str, Any] = self._play(colour)[scene]
        assert "failed" not in outcome, f"{scene} ({colour}) failed:\n{outcome['failed']}"
        return outcome

    def _play_all(self, colour: str) -> dict[str, Any]:
        """Plays every scene of a colour in one process, whose start takes longer than a scene."""
        scenes = [scene for scene, colours in SCENES.items() if colour in colours]
        played = subprocess.run(
            [str(client_python()), "-m", "tests.published_client.drive", colour, *scenes],
            cwd=ROOT,
            input=json.dumps({"url": self.server.url, "keys": self.keys}),
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert played.returncode == 0, played.stderr
        outcomes: dict[str, Any] = json.loads(played.stdout)
        return outcomes


def assert_stored(view: dict[str, Any], stored: dict[str, Any]) -> None:
    """The server has what the client saw, but for instants, which the client writes in another
    form of RFC 3339, and for the members that only the client knows."""
    shared = {name for name in view.keys() & stored.keys() if not name.endswith("_at")}
    assert {name: view[name] for name in shared} == {name: stored[name] for name in shared}
    assert len(shared) > 5, "too little to be the same thing"
