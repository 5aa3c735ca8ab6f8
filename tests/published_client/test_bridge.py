"""What the protocol's TypeScript bridge sends: plain values under a namespace and a key.

It is a program of its own that speaks plain HTTP, so plain HTTP stands in for it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.published_client.stage import Stage


@pytest.fixture
def bridge(stage: Stage) -> Iterator[httpx.Client]:
    """A client with the headers that the bridge sends."""
    with stage.http("ana") as client:
        client.headers["Content-Type"] = "application/json"
        yield client


def _path(key: str) -> str:
    return f"/api/v1/agents/ana/memory/bridge/{key}"


def _put(bridge: httpx.Client, key: str, **body: Any) -> dict[str, Any]:
    response = bridge.put(_path(key), json=body)
    assert response.status_code in (200, 201), response.text
    view: dict[str, Any] = response.json()
    return view


@pytest.mark.parametrize(
    "value",
    ["plain text", "", '{"looks": "like JSON"}', "ünïcode ✓", 7, None, [1, "two"], {"a": {"b": 1}}],
    ids=["text", "empty", "json-text", "unicode", "number", "null", "list", "object"],
)
def test_a_value_comes_back_as_it_went(bridge: httpx.Client, value: Any) -> None:
    stored = _put(bridge, "any", value=value)
    assert (stored["namespace"], stored["key"]) == ("bridge", "any")
    read = bridge.get(_path("any"))
    assert read.status_code == 200
    assert read.json() == stored
    assert stored["value"] == value


def test_a_second_put_replaces_and_counts(bridge: httpx.Client) -> None:
    first = _put(bridge, "counted", value="one")
    second = _put(bridge, "counted", value="two")
    assert second["version"] == first["version"] + 1
    assert bridge.get(_path("counted")).json()["value"] == "two"


def test_a_value_lives_as_long_as_was_asked(bridge: httpx.Client) -> None:
    assert _put(bridge, "lasting", value="text").get("expires_at") is None
    ending = _put(bridge, "ending", value="text", ttl_seconds=60)
    assert isinstance(ending["expires_at"], str)


def test_the_published_client_finds_it_as_working_memory(
    stage: Stage, bridge: httpx.Client
) -> None:
    _put(bridge, "found", value="text")
    (entry,) = (
        entry
        for entry in stage.get("/agents/ana/memory", namespace="bridge", memory_type="working")
        if entry["key"] == "found"
    )
    assert entry["value"] == {"value": "text"}
    assert entry["agent_id"] == "ana"


def test_absent_record_is_not_found(bridge: httpx.Client) -> None:
    assert bridge.get(_path("never-put")).status_code == 404


def test_another_agents_values_are_closed(stage: Stage, bridge: httpx.Client) -> None:
    _put(bridge, "private", value="mine")
    with stage.http("ben") as stranger:
        assert stranger.get(_path("private")).status_code == 403
        assert stranger.put(_path("private"), json={"value": "stolen"}).status_code == 403
    assert bridge.get(_path("private")).json()["value"] == "mine"


@pytest.mark.parametrize(
    "body", [{}, {"value": "x", "ttl_seconds": 0}, {"value": "x", "ttl_seconds": "soon"}]
)
def test_invalid_body_is_refused(bridge: httpx.Client, body: dict[str, Any]) -> None:
    assert bridge.put(_path("refused"), json=body).status_code == 422
    assert bridge.get(_path("refused")).status_code == 404
