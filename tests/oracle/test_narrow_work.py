"""Work done with keys that may do less, and by those whose part in it is over.

Single cases of what the state machine of a service at work compares at large.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

API = "/api/v1"
NARROW: tuple[tuple[Permission, ...], ...] = ((), (Permission.READ,))


class Work:
    """An intent of the boss's."""

    def __init__(self, boss: httpx.AsyncClient, intent_id: str) -> None:
        self.boss = boss
        self.intent_id = intent_id

    async def task(self, **fields: Any) -> str:
        """A new task's id."""
        body = {"intent_id": self.intent_id, "name": "Collect", **fields}
        reply = await self.boss.post(f"{API}/tasks", json=body)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])

    async def view(self, task_id: str) -> Any:
        """The task as the boss sees it."""
        return (await self.boss.get(f"{API}/tasks/{task_id}")).json()

    async def change(self, by: httpx.AsyncClient, task_id: str, **fields: Any) -> httpx.Response:
        """A change of the task at its version."""
        version = (await self.view(task_id))["version"]
        headers = {"If-Match": str(version)}
        return await by.patch(f"{API}/tasks/{task_id}", json=fields, headers=headers)

    async def grant(self, agent: str, level: str) -> None:
        """Lets somebody in."""
        line = {"principal_id": agent, "permission": level}
        path = f"{API}/intents/{self.intent_id}/acl/entries"
        assert (await self.boss.post(path, json=line)).status_code == 201


@pytest.fixture
async def work(service: RunningService) -> Work:
    """Some work."""
    return await new_work(await service.agent("boss"))


async def new_work(boss: httpx.AsyncClient) -> Work:
    """An intent."""
    reply = await boss.post(f"{API}/intents", json={"title": "Close the books"})
    return Work(boss, reply.json()["id"])


@pytest.mark.parametrize("permissions", NARROW)
async def test_a_task_is_not_taken_up_by_a_key_that_may_not_write(
    service: RunningService, work: Work, permissions: tuple[Permission, ...]
) -> None:
    """RFC-0015 section 6.4; and to take a task up opens one's own memory to its coordinator."""
    narrow = await service.agent("ada", permissions=permissions)
    task_id = await work.task(assigned_agent="ada")
    assert (await narrow.post(f"{API}/tasks/{task_id}/claim", json={})).status_code == 403
    handed_out = await narrow.post(f"{API}/tasks/next", json={})
    assert handed_out.status_code in (204, 403)
    assert (await work.view(task_id))["status"] == "ready"


@pytest.mark.parametrize("permissions", NARROW)
async def test_a_task_lease_is_not_touched_by_a_key_that_may_not_write(
    service: RunningService, work: Work, permissions: tuple[Permission, ...]
) -> None:
    ada = await service.agent("ada")
    narrow = await service.agent("ada", permissions=permissions)
    task_id = await work.task(assigned_agent="ada")
    taken = (await ada.post(f"{API}/tasks/{task_id}/claim", json={})).json()
    token = {"Fencing-Token": str(taken["lease"]["fencing_token"])}
    lease = f"{API}/tasks/{task_id}/lease"
    renewed = await narrow.patch(lease, json={"duration_seconds": 600}, headers=token)
    assert renewed.status_code == 403
    assert (await narrow.delete(lease, headers=token)).status_code == 403
    assert (await work.view(task_id))["status"] == "claimed"


@pytest.mark.parametrize("permissions", NARROW)
async def test_authority_is_not_touched_by_a_key_that_may_not_write(
    service: RunningService, work: Work, permissions: tuple[Permission, ...]
) -> None:
    narrow = await service.agent("lead", permissions=permissions)
    body = {"agent_id": "lead", "intent_id": work.intent_id}
    appointed = await work.boss.post(f"{API}/coordinators", json=body)
    place = f"{API}/coordinators/{appointed.json()['id']}"
    assert (await narrow.post(f"{place}/heartbeat")).status_code == 403
    assert (await narrow.delete(place)).status_code == 403
    assert (await work.boss.get(place)).json()["status"] == "active"


@pytest.mark.parametrize("permissions", NARROW)
@pytest.mark.parametrize("what", ["task", "event"])
async def test_what_was_made_once_is_not_shown_to_a_key_that_may_not_make_it(
    service: RunningService, work: Work, permissions: tuple[Permission, ...], what: str
) -> None:
    await work.grant("ada", "write")
    ada = await service.agent("ada")
    narrow = await service.agent("ada", permissions=permissions)
    path, body = {
        "task": (f"{API}/tasks", {"intent_id": work.intent_id, "name": "Collect"}),
        "event": (f"{API}/intents/{work.intent_id}/events", {"event_type": "note"}),
    }[what]
    once = {"Idempotency-Key": "first"}
    assert (await ada.post(path, json=body, headers=once)).status_code == 201
    assert (await narrow.post(path, json=body, headers=once)).status_code == 403


async def test_former_participant_cannot_change_task_memory(
    service: RunningService, work: Work
) -> None:
    """Memory of a task of nobody is written by who may write to the intent."""
    bob = await service.agent("bob")
    task_id = await work.task(assigned_agent="bob")
    made = await bob.post(f"{API}/memory", json=draft(scope={"task_id": task_id}))
    entry = f"{API}/memory/{made.json()['id']}"
    assert (await work.change(work.boss, task_id, assigned_agent=None)).status_code == 200
    changed = await bob.patch(entry, json={"tags": ["late"]}, headers={"If-Match": "1"})
    assert changed.status_code == 403
    assert (await bob.delete(entry)).status_code == 403
    assert (await bob.get(entry)).status_code == 200


async def test_a_page_of_tasks_does_not_tell_of_those_left_out(
    service: RunningService, work: Work
) -> None:
    hidden = await new_work(work.boss)
    bob = await service.agent("bob")
    await work.grant("bob", "read")
    await hidden.task(assigned_agent="carol")
    seen = await work.task(assigned_agent="carol")
    first = await bob.get(f"{API}/tasks", params={"assigned_agent": "carol", "limit": 1})
    assert [task["id"] for task in first.json()] == [seen]


async def test_only_the_agents_own_claim_counts_as_acceptance(
    service: RunningService, work: Work
) -> None:
    """Not that others say it has, nor that it sends a word about the task."""
    ada = await service.agent("ada")
    task_id = await work.task(assigned_agent="ada")
    await work.change(work.boss, task_id, status="claimed")
    assert (await work.change(ada, task_id, metadata={"seen": True})).status_code == 200
    assert "accepted_at" not in (await work.view(task_id))["assignments"][-1]
    assert (await work.change(ada, task_id, status="running")).status_code == 200
    assert "accepted_at" in (await work.view(task_id))["assignments"][-1]


async def test_unassigned_task_is_not_cancelled_by_claiming_it(
    service: RunningService, work: Work
) -> None:
    """To cancel is for who administers or coordinates the intent, whoever has the task."""
    await work.grant("ada", "write")
    ada = await service.agent("ada")
    task_id = await work.task()
    taken = await work.change(ada, task_id, assigned_agent="ada", status="cancelled")
    assert taken.status_code == 403
    assert (await work.view(task_id))["status"] == "ready"
