"""Query strings that cannot be taken."""

from __future__ import annotations

import pytest

from memorywall.records.principal import Permission
from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    make,
    raw_request,
)
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

EXPORT = f"{MEMORY}/export"
LIST = "/api/v1/agents/ada/memory"
EVENTS = "/api/v1/agents/ada/events"

BAD_VALUES = [
    ("limit=0", "limit"),
    ("limit=-1", "limit"),
    ("limit=1001", "limit"),
    ("limit=99999999999999999999999", "limit"),
    ("limit=1.5", "limit"),
    ("limit=", "limit"),
    ("limit=%20", "limit"),
    (f"limit={MARKER}", "limit"),
    ("offset=-1", "offset"),
    ("offset=99999999999999999999999", "offset"),
    (f"offset={MARKER}", "offset"),
    ("memory_type=archival", "memory_type"),
    ("memory_type=Working", "memory_type"),
    ("memory_type=", "memory_type"),
    (f"memory_type={MARKER}", "memory_type"),
    ("pinned=maybe", "pinned"),
    ("pinned=", "pinned"),
    ("pinned=2", "pinned"),
    (f"pinned={MARKER}", "pinned"),
    ("updated_after=yesterday", "updated_after"),
    ("updated_after=2026-02-30", "updated_after"),
    ("updated_after=2026-02-02T00:00:00", "updated_after"),
    ("updated_after=2026-02-02T00:00:00+01:00", "updated_after"),
    ("updated_after=1770000000", "updated_after"),
    ("updated_before=", "updated_before"),
    (f"updated_before={MARKER}", "updated_before"),
    ("tags=", "tags"),
    ("tags=a,", "tags"),
    ("tags=a,,b", "tags"),
    ("tags=a,%00", "tags"),
    ("tags=a%E2%80%8Bb", "tags"),
    ("tags=" + ",".join(f"t{number}" for number in range(10_000)), "tags"),
    ("tags_any=", "tags_any"),
    ("tags_any=%E2%80%AEa", "tags_any"),
]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("query", "name"), BAD_VALUES, ids=lambda part: part[:40] if "=" in part else ""
)
async def test_a_parameter_that_makes_no_sense_is_named(
    service: RunningService, method: str, query: str, name: str
) -> None:
    agent = await service.agent("ada")
    await make(agent)
    before = await everything(service)
    path = MEMORY if method == "GET" else BATCH
    response = await agent.request(method, f"{path}?key=progress&{query}")
    document = assert_problem(response, 400, "VALIDATION_ERROR")
    assert name in document["detail"]
    assert MARKER not in response.text
    assert await everything(service) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", MEMORY),
        ("POST", MEMORY),
        ("DELETE", BATCH),
        ("POST", BATCH),
        ("GET", EXPORT),
        ("GET", LIST),
        ("GET", EVENTS),
        ("GET", NAMESPACES),
        ("GET", f"{NAMESPACES}/facts"),
        ("PATCH", f"{NAMESPACES}/facts"),
        ("GET", f"{MEMORY}/mem_1"),
        ("PATCH", f"{MEMORY}/mem_1"),
        ("DELETE", f"{MEMORY}/mem_1"),
        ("GET", "/api/v1/agents/ada/memory/summary"),
        ("GET", "/api/v1/capabilities"),
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/metrics"),
        ("POST", f"{MEMORY}/search"),
        ("POST", f"{MEMORY}/reshape"),
    ],
)
async def test_unknown_parameters_are_all_named(
    service: RunningService, method: str, path: str
) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    await make(agent, memory_type="semantic", namespace="facts")
    before = await everything(service)
    unknown = {"colour": MARKER, "Namespace ": MARKER, "scope.tenant": MARKER, "tenant": MARKER}
    response = await agent.request(
        method, path, params=unknown, json=draft() if method == "POST" else None,
        headers={"If-Match": "1"},
    )  # fmt: skip
    document = assert_problem(response, 400, "VALIDATION_ERROR")
    for name in unknown:
        assert name in document["detail"]
    assert MARKER not in response.text
    assert await everything(service) == before


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (EXPORT, "limit"), (EXPORT, "offset"), (LIST, "agent_id"), (LIST, "tags_any"),
        (LIST, "key"), (EVENTS, "tags"), (MEMORY, "before"), (MEMORY, "after"),
    ],
)  # fmt: skip
async def test_a_parameter_of_another_operation_is_unknown(
    service: RunningService, path: str, name: str
) -> None:
    agent = await service.agent("ada")
    response = await agent.get(path, params={name: "1"})
    assert name in assert_problem(response, 400, "VALIDATION_ERROR")["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "namespace=a&namespace=b", "limit=1&limit=1", "tags=a&tags=b", "agent_id=ada&agent_id=you",
        "scope.task_id=a&scope%2Etask_id=b",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_repeated_parameter_is_refused(
    service: RunningService, method: str, query: str
) -> None:
    agent = await service.agent("ada")
    await make(agent)
    before = await everything(service)
    path = MEMORY if method == "GET" else BATCH
    assert_problem(await agent.request(method, f"{path}?{query}"), 400, "VALIDATION_ERROR")
    assert await everything(service) == before


@pytest.mark.parametrize(
    "query",
    [
        b"namespace=%ff", b"namespace=%C3%28", b"namespace=%ED%A0%80", b"key=%e2%82",
        b"namespace=%zz", b"namespace=%", b"namespace=a%2", b"%ff=1", b"namespace=\xff",
        b"namespace=\xc3\xa9",
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_bad_percent_encoding_is_refused(
    service: RunningService, method: str, query: bytes
) -> None:
    key = await service.key("ada")
    await make(service.client(key), namespace="%zz")
    before = await everything(service)
    response = await raw_request(
        service,
        method,
        MEMORY if method == "GET" else BATCH,
        query=query,
        headers=[(b"x-api-key", key.encode())],
    )
    assert_problem(response, 400, "VALIDATION_ERROR")
    assert await everything(service) == before


async def test_ten_thousand_parameters_are_refused(service: RunningService) -> None:
    key = (await service.key("ada")).encode()
    query = b"&".join(b"p%d=1" % number for number in range(10_000))
    response = await raw_request(service, "GET", MEMORY, query=query, headers=[(b"x-api-key", key)])
    assert_problem(response, 400, "VALIDATION_ERROR")
    assert len(response.content) < 10_000


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=", "limit=0", "limit=1001", "after=9" + "9" * 30]
)
async def test_invalid_stream_position_is_refused(service: RunningService, query: str) -> None:
    agent = await service.agent("ada")
    name = query.partition("=")[0]
    for headers in ({}, {"Accept": "text/event-stream"}):
        response = await agent.get(f"{EVENTS}?{query}", headers=headers)
        assert name in assert_problem(response, 400, "VALIDATION_ERROR")["detail"]
