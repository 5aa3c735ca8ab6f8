"""If-Match and many writers: RFC-0015 section 3."""

from __future__ import annotations

import anyio
import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem, brief, events_of, everything, make
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

WRITERS = 64


@pytest.mark.parametrize("header", ["3", '"3"', 'W/"3"', ' "3" '])
async def test_every_form_of_the_current_version_is_accepted(
    service: RunningService, header: str
) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    path = f"{MEMORY}/{made['id']}"
    for version in ("1", "2"):
        changed = await agent.patch(path, json={"value": {}}, headers={"If-Match": version})
        assert changed.status_code == 200
    response = await agent.patch(path, json={"value": {"n": 3}}, headers={"If-Match": header})
    assert response.status_code == 200, response.text
    assert response.json()["version"] == 4


@pytest.mark.parametrize(
    "header",
    [
        None, "*", '"*"', "", '""', "abc", "-1", "+1", "1.0", "1e0", "0x1", '"1', '1"', "W/1",
        'w/"1"', "'1'", '"1", "2"', "1 1", "1_0", "9" * 40, "\u0661".encode(),
    ],
    ids=lambda header: repr(header)[:12],
)  # fmt: skip
async def test_anything_else_is_refused_with_428(
    service: RunningService, header: str | bytes | None
) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    path = f"{MEMORY}/{made['id']}"
    before = await everything(service)
    content = header.encode() if isinstance(header, str) else header
    headers = [] if content is None else [(b"If-Match", content)]
    response = await agent.patch(path, json={"value": {"n": 2}}, headers=headers)
    document = assert_problem(response, 428, "PRECONDITION_REQUIRED")
    assert "If-Match" in document["detail"]
    if header is not None:
        deleted = await agent.request("DELETE", path, headers=headers)
        assert_problem(deleted, 428, "PRECONDITION_REQUIRED")
    assert await everything(service) == before


@pytest.mark.parametrize("version", ["0", "1", "3", "999999999999999999"])
async def test_any_other_version_conflicts_and_shows_the_current_entry(
    service: RunningService, version: str
) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    path = f"{MEMORY}/{made['id']}"
    current = await agent.patch(path, json={"value": {"n": 2}}, headers={"If-Match": "1"})
    before = await everything(service)
    response = await agent.patch(path, json={"value": {}}, headers={"If-Match": version})
    document = assert_problem(response, 409, "VERSION_MISMATCH")
    assert document["current_version"] == 2
    assert document["current"] == current.json()
    assert "lease" not in response.text
    assert await everything(service) == before


async def _add_one(client: httpx.AsyncClient, path: str) -> int:
    """Reads, adds one, writes, and starts over on a conflict; returns how often it met one."""
    conflicts = 0
    current = (await client.get(path)).json()
    while True:
        response = await client.patch(
            path,
            json={"value": {"count": current["value"]["count"] + 1}},
            headers={"If-Match": str(current["version"])},
        )
        if response.status_code == 200:
            return conflicts
        document = assert_problem(response, 409, "VERSION_MISMATCH")
        current = document["current"]
        conflicts += 1


async def test_sixty_four_writers_on_one_entry_lose_nothing(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await make(agent, value={"count": 0})
    path = f"{MEMORY}/{made['id']}"
    conflicts: list[int] = []

    async def writer() -> None:
        conflicts.append(await _add_one(agent, path))

    async with anyio.create_task_group() as group:
        for _ in range(WRITERS):
            group.start_soon(writer)
    final = (await agent.get(path)).json()
    assert final["value"] == {"count": WRITERS}
    assert final["version"] == WRITERS + 1
    assert sum(conflicts) > 0, "the writers never met; the test shows nothing"
    updates = (await events_of(agent, "billing"))[1:]
    assert brief(updates) == [
        ("memory.updated", "progress", version) for version in range(2, WRITERS + 2)
    ]


async def test_of_many_creates_of_one_name_exactly_one_is_made(service: RunningService) -> None:
    agent = await service.agent("billing")
    statuses: list[int] = []

    async def creator(number: int) -> None:
        response = await agent.post(MEMORY, json=draft(value={"creator": number}))
        statuses.append(response.status_code)

    async with anyio.create_task_group() as group:
        for number in range(WRITERS):
            group.start_soon(creator, number)
    assert sorted(statuses) == [201] + [409] * (WRITERS - 1)
    assert brief(await events_of(agent, "billing")) == [("memory.created", "progress", 1)]
