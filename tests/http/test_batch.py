"""Several writes that happen all or not at all: RFC-0015 "Batch Operations"."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memorywall.wire.operations import OPERATIONS_BY_NAME
from tests.http.checks import (
    ADMINISTRATOR,
    BATCH,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    brief,
    events_of,
    everything,
    keys_of,
    make,
    value_of_size,
)
from tests.http.test_json_rpc import error
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio


async def test_a_batch_creates_and_updates_in_order(service: RunningService) -> None:
    agent = await service.agent("billing")
    old = await make(agent, "old", tags=["x"])
    response = await agent.post(
        BATCH,
        json={
            "entries": [
                draft("new", memory_type="episodic", priority="high", agent_id="billing"),
                {"id": old["id"], "version": 1, "value": {"n": 2}},
                draft("shared", memory_type="semantic", namespace="facts"),
            ]
        },
    )
    assert response.status_code == 200, response.text
    reply = response.json()
    assert reply.keys() == {"entries", "created", "updated"}
    assert (reply["created"], reply["updated"]) == (2, 1)
    assert [entry["key"] for entry in reply["entries"]] == ["new", "old", "shared"]
    assert reply["entries"][1] == {**old, "value": {"n": 2}, "version": 2}
    for entry in reply["entries"]:
        assert (await agent.get(f"{MEMORY}/{entry['id']}")).json() == entry
    assert brief(await events_of(agent, "billing")) == [
        ("memory.created", "old", 1),
        ("memory.created", "new", 1),
        ("memory.updated", "old", 2),
        ("memory.created", "shared", 1),
    ]


async def test_an_entry_may_be_changed_twice_in_one_batch(service: RunningService) -> None:
    agent = await service.agent("billing")
    made = await make(agent)
    elements = [
        {"id": made["id"], "version": 1, "value": {"n": 2}},
        {"id": made["id"], "version": 2, "tags": ["last"]},
    ]
    reply = (await agent.post(BATCH, json={"entries": elements})).json()
    assert [entry["version"] for entry in reply["entries"]] == [2, 3]
    stored = (await agent.get(f"{MEMORY}/{made['id']}")).json()
    assert (stored["value"], stored["tags"], stored["version"]) == ({"n": 2}, ["last"], 3)


def _bad(old: dict[str, Any], theirs: dict[str, Any]) -> dict[str, tuple[Any, int, str]]:
    """Elements that fail, with the status and code each fails with."""
    update = {"id": old["id"], "version": 1}
    return {
        "taken": (draft("old"), 409, "ENTRY_EXISTS"),
        "late": ({**update, "version": 9, "value": {}}, 409, "VERSION_MISMATCH"),
        "no-version": ({"id": old["id"], "value": {}}, 428, "PRECONDITION_REQUIRED"),
        "version-without-id": ({"version": 1, "value": {}}, 422, "VALIDATION_ERROR"),
        "gone": ({"id": "mem_0", "version": 1, "value": {}}, 404, "ENTRY_NOT_FOUND"),
        "anothers": ({"id": theirs["id"], "version": 1, "value": {}}, 403, "ACCESS_DENIED"),
        "as-another": (draft("x", agent_id="other"), 403, "ACCESS_DENIED"),
        "forbidden-namespace": (
            draft("x", memory_type="semantic", namespace="closed"), 403, "ACCESS_DENIED"),
        "missing-field": ({"namespace": "n", "key": "k"}, 422, "VALIDATION_ERROR"),
        "unknown-field": (draft("x", colour="red"), 422, "VALIDATION_ERROR"),
        "wrong-type": (draft("x", tags="a,b"), 422, "VALIDATION_ERROR"),
        "value-list": (draft("x", value=[MARKER]), 422, "VALIDATION_ERROR"),
        "bad-name": (draft("x\u202e"), 422, "VALIDATION_ERROR"),
        "bad-ttl": (draft("x", ttl="soon"), 422, "VALIDATION_ERROR"),
        "too-large": (draft("x", value=value_of_size(65_537)), 413, "VALUE_TOO_LARGE"),
        "nothing-to-change": (update, 422, "VALIDATION_ERROR"),
        "new-key": ({**update, "key": "other"}, 422, "VALIDATION_ERROR"),
        "full-task": (draft("x", scope={"task_id": "full"}), 429, "CAPACITY_EXCEEDED"),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(_bad({"id": ""}, {"id": ""})))
async def test_one_bad_element_undoes_all_and_is_named_by_index(tmp_path: Any, name: str) -> None:
    async with open_service(tmp_path, working_capacity_per_task=1) as service:
        agent = await service.agent("billing")
        other = await service.agent("other", permissions=ADMINISTRATOR)
        old = await make(agent, "old")
        await make(agent, "full", scope={"task_id": "full"})
        theirs = await make(other, "theirs", value={"text": MARKER})
        await make(other, "fact", memory_type="semantic", namespace="closed")
        element, status, error = _bad(old, theirs)[name]
        before = await everything(service)
        elements = [
            draft("first", memory_type="semantic", namespace="founded"),
            {"id": old["id"], "version": 1, "tags": ["changed"]},
            element,
            draft("last"),
        ]
        if name in ("nothing-to-change", "new-key"):
            elements[1] = draft("second")
        response = await agent.post(BATCH, json={"entries": elements})
        document = assert_problem(response, status, error)
        assert document["index"] == 2
        assert MARKER not in response.text
        assert await everything(service) == before


async def test_a_clash_within_a_batch_shows_no_entry_that_never_was(
    service: RunningService,
) -> None:
    agent = await service.agent("billing")
    response = await agent.post(BATCH, json={"entries": [draft("same"), draft("same")]})
    document = assert_problem(response, 409, "ENTRY_EXISTS")
    assert document["index"] == 1
    if "current" in document:
        found = await agent.get(f"{MEMORY}/{document['current']['id']}")
        assert found.status_code == 200, "`current` is an entry that was undone with the batch"
    assert await keys_of(agent) == []


async def test_a_conflict_in_a_batch_carries_the_current_entry(service: RunningService) -> None:
    agent = await service.agent("billing")
    old = await make(agent, "old")
    element = {"id": old["id"], "version": 2, "value": {}}
    document = assert_problem(await agent.post(BATCH, json={"entries": [element]}), 409)
    assert document["current"] == old
    assert document["current_version"] == 1
    assert document["index"] == 0


async def test_a_thousand_elements_are_taken_and_one_more_is_not(service: RunningService) -> None:
    agent = await service.agent("billing")
    elements = [draft(f"k{number}") for number in range(1_001)]
    before = await everything(service)
    assert_problem(await agent.post(BATCH, json={"entries": elements}), 422, "VALIDATION_ERROR")
    assert_problem(await agent.post(BATCH, json={"entries": []}), 422, "VALIDATION_ERROR")
    assert await everything(service) == before
    reply = await agent.post(BATCH, json={"entries": elements[:-1]})
    assert reply.json()["created"] == 1_000


async def test_deletion_by_filter_removes_only_matching_entries(service: RunningService) -> None:
    agent = await service.agent("billing")
    for number in range(4):
        await make(agent, f"k{number}", tags=["odd" if number % 2 else "even"])
    await make(agent, "semantic", memory_type="semantic", namespace="facts", tags=["odd"])
    response = await agent.request("DELETE", BATCH, params={"tags": "odd", "namespace": "inv*"})
    assert (response.status_code, response.json()) == (200, {"deleted": 2})
    assert await keys_of(agent) == ["semantic", "k2", "k0"]
    again = await agent.request("DELETE", BATCH, params={"tags": "odd", "namespace": "inv*"})
    assert again.json() == {"deleted": 0}
    deleted = [one for one in await events_of(agent, "billing") if one["type"] == "memory.deleted"]
    assert sorted(one["data"]["key"] for one in deleted) == ["k1", "k3"]


@pytest.mark.parametrize(
    "query",
    [{}, {"limit": "5"}, {"offset": "1"}, {"limit": "1", "offset": "1"}],
    ids=lambda query: "&".join(query) or "none",
)
async def test_an_empty_filter_deletes_nothing(
    service: RunningService, query: dict[str, str]
) -> None:
    agent = await service.agent("billing")
    await make(agent)
    before = await everything(service)
    response = await agent.request("DELETE", BATCH, params=query)
    assert_problem(response, 400, "VALIDATION_ERROR")
    assert await everything(service) == before


async def test_an_empty_condition_deletes_nothing(service: RunningService) -> None:
    """`?key_prefix=` with a variable that is not set is no filter, beside other conditions too."""
    agent = await service.agent("billing")
    await make(agent)
    before = await everything(service)
    operation = OPERATIONS_BY_NAME["delete_matching"]
    assert operation.query is not None
    for field in msgspec.structs.fields(operation.query):
        for others in ({}, {"memory_type": "working", "agent_id": "billing"}):
            query = {**others, field.encode_name: ""}
            refused = await agent.request("DELETE", BATCH, params=query)
            assert field.encode_name in assert_problem(refused, 400)["detail"], query
            answer = await error(agent, "delete_matching", **query)
            assert answer["code"] == -32602, query
    assert await everything(service) == before


async def test_a_deletion_as_of_an_instant_is_refused(service: RunningService) -> None:
    """A deletion applies to the present entries, so it must not ignore the instant."""
    agent = await service.agent("billing")
    await make(agent)
    query = {"namespace": "invoices", "as_of": "2020-01-01T00:00:00Z"}
    assert "as_of" in assert_problem(await agent.delete(BATCH, params=query), 400)["detail"]
    assert len(await keys_of(agent)) == 1


async def test_a_filter_of_many_pages_is_deleted_whole_or_by_the_page(
    service: RunningService,
) -> None:
    agent = await service.agent("billing")
    elements = [draft(f"k{number:04}") for number in range(1_000)]
    assert (await agent.post(BATCH, json={"entries": elements})).is_success
    await make(agent, "k1000")
    page = {"namespace": "invoices", "limit": "3", "offset": "1"}
    assert (await agent.request("DELETE", BATCH, params=page)).json() == {"deleted": 3}
    kept = await keys_of(agent, limit=3)
    assert kept == ["k1000", "k0996", "k0995"]
    rest = await agent.request("DELETE", BATCH, params={"namespace": "invoices"})
    assert rest.json() == {"deleted": 998}
    assert await keys_of(agent) == []


async def test_deletion_by_filter_respects_permissions(service: RunningService) -> None:
    owner = await service.agent("owner", permissions=ADMINISTRATOR)
    await make(owner, "mine")
    await make(owner, "fact", memory_type="semantic", namespace="facts")
    other = await service.agent("other")
    foreign = await service.agent("owner", tenant="elsewhere")
    before = await everything(service)
    for client in (other, foreign):
        for query in (
            {"namespace": "facts"},
            {"agent_id": "owner", "memory_type": "working"},
            {"namespace": "*"},
        ):
            response = await client.request("DELETE", BATCH, params=query)
            assert response.json() == {"deleted": 0}, query
    assert await everything(service) == before
    grant = {"permissions": {"allow": [{"agent": "other", "access": "write"}]}}
    assert (await owner.patch(f"{NAMESPACES}/facts", json=grant)).is_success
    response = await other.request("DELETE", BATCH, params={"namespace": "*"})
    assert response.json() == {"deleted": 1}
    assert await keys_of(owner) == ["mine"]
    assert brief(await events_of(other, "other")) == [("memory.deleted", "fact", 1)]


async def test_deleting_a_tier_of_agents_needs_the_agent(service: RunningService) -> None:
    agent = await service.agent("billing")
    await make(agent)
    response = await agent.request("DELETE", BATCH, params={"memory_type": "working"})
    assert_problem(response, 400, "VALIDATION_ERROR")
    assert await keys_of(agent) == ["progress"]


async def test_invalid_elements_are_refused_before_any_read(service: RunningService) -> None:
    ada = await service.agent("ada")
    await make(ada, "taken")
    elements = [draft("taken"), draft("second", agent_id="grace")]
    problem = assert_problem(await ada.post(BATCH, json={"entries": elements}), 403)
    assert problem["index"] == 1
