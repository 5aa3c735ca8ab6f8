"""Sub-tasks that inherit the working memory above them, to read (RFC-0015 section 6.5)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import MEMORY, assert_problem
from tests.work.crew import TASKS, Crew, ok, recall, remember

pytestmark = pytest.mark.anyio

INHERITS = {"inherit_from_parent": True}


async def _below(crew: Crew, above: dict[str, Any], agent: str, inherits: bool) -> dict[str, Any]:
    """A sub-task for an agent."""
    return await crew.task(
        f"of {agent}",
        parent_task_id=above["id"],
        assigned_agent=agent,
        memory_policy={"inherit_from_parent": inherits},
    )


async def _can_get(client: httpx.AsyncClient, entry: dict[str, Any]) -> bool:
    response = await client.get(f"{MEMORY}/{entry['id']}")
    if not response.is_success:
        assert_problem(response, 403, "ACCESS_DENIED")
    return response.is_success


async def test_sub_task_reads_parent_memory_and_cannot_change_it(crew: Crew) -> None:
    above = await crew.task("above", assigned_agent="a")
    entry = await remember(crew.a, above["id"])
    await _below(crew, above, "b", inherits=True)
    assert await recall(crew.b, above["id"]) == [("a", "progress")]
    path = f"{MEMORY}/{entry['id']}"
    change = await crew.b.patch(path, json={"value": {}}, headers={"If-Match": "1"})
    assert_problem(change, 403, "ACCESS_DENIED")
    assert_problem(await crew.b.delete(path), 403, "ACCESS_DENIED")
    # What is written above later on is inherited too.
    await remember(crew.a, above["id"], "later")
    assert await recall(crew.b, above["id"]) == [("a", "later"), ("a", "progress")]
    found = ok(await crew.b.get(MEMORY, params={"agent_id": "a"}))
    assert [one["key"] for one in found["entries"]] == ["later", "progress"]


async def test_a_sub_task_inherits_nothing_unless_it_is_to(crew: Crew) -> None:
    above = await crew.task("above", assigned_agent="a")
    entry = await remember(crew.a, above["id"])
    below = await _below(crew, above, "b", inherits=False)
    assert below["memory_policy"]["inherit_from_parent"] is False
    assert await recall(crew.b, above["id"]) == []
    assert not await _can_get(crew.b, entry)


async def test_nothing_goes_up_or_sideways(crew: Crew) -> None:
    above = await crew.task("above", assigned_agent="a")
    left = await _below(crew, above, "b", inherits=True)
    await _below(crew, above, "outsider", inherits=True)
    entry = await remember(crew.b, left["id"])
    for client in (crew.a, crew.outsider):
        assert await recall(client, left["id"]) == []
        assert not await _can_get(client, entry)


@pytest.mark.parametrize("middle", [True, False])
async def test_memory_comes_down_as_far_as_each_task_inherits(crew: Crew, middle: bool) -> None:
    top = await crew.task("top", assigned_agent="a")
    between = await _below(crew, top, "b", inherits=middle)
    bottom = await _below(crew, between, "outsider", inherits=True)
    await remember(crew.a, top["id"], "top")
    await remember(crew.b, between["id"], "between")
    await remember(crew.outsider, bottom["id"], "bottom")
    assert await recall(crew.outsider, between["id"]) == [("b", "between")]
    expected = [("a", "top")] if middle else []
    assert await recall(crew.outsider, top["id"]) == expected
    assert await recall(crew.b, top["id"]) == expected
    found = ok(await crew.outsider.get(MEMORY, params={"agent_id": "a"}))
    assert found["total"] == len(expected)


async def test_a_line_of_many_tasks_hands_memory_down(crew: Crew) -> None:
    top = await crew.task("top", assigned_agent="a")
    await remember(crew.a, top["id"])
    below = top
    for _ in range(20):
        below = await _below(crew, below, "a", inherits=True)
    await _below(crew, below, "b", inherits=True)
    assert await recall(crew.b, top["id"]) == [("a", "progress")]


async def test_only_working_memory_is_inherited(crew: Crew) -> None:
    above = await crew.task("above", assigned_agent="a")
    apart = [
        await remember(crew.a, above["id"], tier, memory_type=tier)
        for tier in ("episodic", "session")
    ]
    other = await crew.task("other", assigned_agent="a")
    apart.append(await remember(crew.a, other["id"], "other"))
    await _below(crew, above, "b", inherits=True)
    for entry in apart:
        assert not await _can_get(crew.b, entry)


@pytest.mark.parametrize("ending", ["below over", "above over", "given away"])
async def test_inheriting_ends_with_either_task(crew: Crew, ending: str) -> None:
    above = await crew.task("above", assigned_agent="a")
    entry = await remember(crew.a, above["id"])
    below = await _below(crew, above, "b", inherits=True)
    assert await _can_get(crew.b, entry)
    if ending == "below over":
        await crew.change(crew.chief, below["id"], status="cancelled")
        assert not await _can_get(crew.b, entry)
        assert await _can_get(crew.a, entry)
    elif ending == "above over":
        await crew.change(crew.chief, above["id"], status="cancelled")
        assert_problem(await crew.b.get(f"{MEMORY}/{entry['id']}"), 404)
        (archive,) = await crew.log(event_type="memory.archived")
        assert archive["data"]["entries_archived"] == 1
    else:
        await crew.change(crew.chief, below["id"], assigned_agent="outsider")
        assert not await _can_get(crew.b, entry)
        assert await _can_get(crew.outsider, entry)
    assert await recall(crew.b, above["id"]) == []


async def test_nobody_inherits_what_it_could_not_hand_down(crew: Crew) -> None:
    """A sub-task that inherits shows another agent's memory: making one is for those who may."""
    above = await crew.task("above", assigned_agent="a")
    await remember(crew.a, above["id"])
    await crew.task("other", assigned_agent="b")
    body = {
        "intent_id": crew.intent["id"],
        "name": "peek",
        "parent_task_id": above["id"],
        "assigned_agent": "b",
        "memory_policy": INHERITS,
    }
    assert_problem(await crew.b.post(TASKS, json=body), 403, "ACCESS_DENIED")
    assert await recall(crew.b, above["id"]) == []
    # The parent's own agent and who administers the intent may; without inheriting, all who write.
    ok(await crew.a.post(TASKS, json=body), 201)
    assert await recall(crew.b, above["id"]) == [("a", "progress")]
    ok(await crew.b.post(TASKS, json={**body, "memory_policy": None}), 201)


async def test_a_task_does_not_inherit_from_itself_or_nothing(crew: Crew) -> None:
    alone = await crew.task(assigned_agent="a", memory_policy=INHERITS)
    await remember(crew.a, alone["id"])
    assert await recall(crew.a, alone["id"]) == [("a", "progress")]
    assert await recall(crew.b, alone["id"]) == []
