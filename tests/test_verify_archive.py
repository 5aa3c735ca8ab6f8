"""`verify` takes an archive for the end of the entries it holds, and finds where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.support import stored
from tests.support.damage import (
    BROKEN,
    COPY_EVENT,
    GAP,
    ON_FILE,
    OTHER_CONTENT,
    assert_reported,
    inspected,
    run_sql,
    verified,
)
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

_MEMORY = "/api/v1/memory"
_TASKS = "/api/v1/tasks"


@dataclass(frozen=True)
class Archived:
    """A closed database in which two tasks have ended, one in each tenant, and one goes on."""

    database: Path
    names: dict[str, str]


def _ok(response: httpx.Response) -> dict[str, Any]:
    assert response.is_success, (response.status_code, response.text)
    found: dict[str, Any] = response.json() if response.content else {}
    return found


async def _take(agent: httpx.AsyncClient, **fields: Any) -> tuple[str, dict[str, str]]:
    """A new task taken up: its id, and the header that says so."""
    intent = _ok(await agent.post("/api/v1/intents", json={"title": "Books"}))
    body = {"intent_id": intent["id"], "name": "post", **fields}
    task = _ok(await agent.post(_TASKS, json=body))
    taken = _ok(await agent.post(f"{_TASKS}/{task['id']}/claim", json={"lease_seconds": 600}))
    return task["id"], {"Fencing-Token": str(taken["lease"]["fencing_token"])}


async def _remember(
    agent: httpx.AsyncClient, task: str, under: dict[str, str], key: str, **fields: Any
) -> str:
    body = draft(key, scope={"task_id": task}, **fields)
    made = _ok(await agent.post(_MEMORY, json=body, headers=under))
    return str(made["id"])


async def _end(agent: httpx.AsyncClient, task: str, under: dict[str, str]) -> None:
    version = str(_ok(await agent.get(f"{_TASKS}/{task}"))["version"])
    change = {"status": "completed"}
    reply = await agent.patch(
        f"{_TASKS}/{task}", json=change, headers={"If-Match": version, **under}
    )
    assert _ok(reply)["status"] == "completed"


async def _fill(service: RunningService) -> dict[str, str]:
    agent = await service.agent("billing")
    task, under = await _take(agent)
    names = {"task": task}
    names["first"] = await _remember(agent, task, under, "first", tags=["batch", "old"])
    change = {"tags": ["batch"], "value": {"completed": 24}}
    headers = {"If-Match": "1", **under}
    _ok(await agent.patch(f"{_MEMORY}/{names['first']}", json=change, headers=headers))
    names["sealed"] = await _remember(agent, task, under, "sealed", sensitivity="restricted")
    names["deleted"] = await _remember(agent, task, under, "deleted")
    _ok(await agent.delete(f"{_MEMORY}/{names['deleted']}", headers=under))
    names["passing"] = await _remember(agent, task, under, "passing", ttl="duration:PT1S")
    service.clock.advance(2)
    await _end(agent, task, under)
    unkept, under = await _take(agent, memory_policy={"archive_on_completion": False})
    names["unkept"] = await _remember(agent, unkept, under, "unkept")
    await _end(agent, unkept, under)
    going_on, under = await _take(agent)
    names["open"] = await _remember(agent, going_on, under, "open")
    names["fact"] = str(_ok(await agent.post(_MEMORY, json=draft(memory_type="semantic")))["id"])
    other = await service.agent("billing", tenant="globex")
    foreign, under = await _take(other)
    names["foreign"] = await _remember(other, foreign, under, "first")
    await _end(other, foreign, under)
    return names


@pytest.fixture
async def archived(tmp_path: Path) -> Archived:
    async with open_service(tmp_path) as service:
        names = await _fill(service)
    return Archived(tmp_path / "memory.db", names)


def _event_types(database: Path, entry_id: str) -> list[str]:
    with inspected(database) as inspection:
        return [
            event.type
            for tenant in inspection.tenants()
            for event in inspection.events(tenant)
            if event.entry_id == entry_id
        ]


async def test_archive_ends_its_entries(archived: Archived) -> None:
    told: list[int] = []
    report = verified(archived.database, told.append)
    assert report.problems == []
    assert report.entries == 2
    kinds = {name: _event_types(archived.database, archived.names[name]) for name in archived.names}
    assert kinds["first"] == ["memory.created", "memory.updated"]
    assert kinds["sealed"] == kinds["foreign"] == kinds["open"] == ["memory.created"]
    assert kinds["passing"] == ["memory.created", "memory.expired"]
    assert kinds["unkept"] == kinds["deleted"] == ["memory.created", "memory.deleted"]


async def test_progress_covers_every_processed_row(archived: Archived) -> None:
    """Also of the events that tell of no single entry."""
    told: list[int] = []
    report = verified(archived.database, told.append)
    with inspected(archived.database) as inspection:
        assert (report.entries, report.events) == inspection.sizes()
        assert sum(told) == sum(inspection.sizes())


# What is done to the archive of the first task, and every problem that must be reported for it.

Change = Callable[[list[dict[str, Any]], dict[str, str]], object]


_OF_ARCHIVE = """WHERE (tenant, seq) IN
    (SELECT tenant, seq FROM events WHERE type = 'memory.archived' AND task_id = {})"""


def _change_archive(archived: Archived, change: Change) -> None:
    where = _OF_ARCHIVE.format("?")
    directory, task = archived.database.parent, archived.names["task"]
    ((content,),) = stored.rows(directory, f"SELECT content FROM event_contents {where}", task)
    assert isinstance(content, bytes)
    said = msgspec.json.decode(content)
    told = said["data"]
    assert [one["entry_id"] for one in told["snapshot"]] == [
        archived.names["first"],
        archived.names["sealed"],
    ]
    change(told["snapshot"], archived.names)
    stored.change(
        directory,
        "UPDATE event_contents SET content = ?1 " + _OF_ARCHIVE.format("?2"),
        msgspec.json.encode(said),
        task,
    )


_ARCHIVES: dict[str, tuple[Change, set[str]]] = {
    "a later version": (
        lambda snapshot, names: snapshot[0].update(version=3),
        {"{first} skips or repeats a version"},
    ),
    "an earlier version": (
        lambda snapshot, names: snapshot[0].update(version=1),
        {"{first} skips or repeats a version"},
    ),
    "an entry is left out": (
        lambda snapshot, names: snapshot.pop(1),
        {"{sealed} should be there and is not"},
    ),
    "all entries are left out": (
        lambda snapshot, names: snapshot.clear(),
        {"{first} should be there and is not", "{sealed} should be there and is not"},
    ),
    "an entry that no event tells of": (
        lambda snapshot, names: snapshot.append({**snapshot[0], "entry_id": "mem_0"}),
        {"mem_0 was archived, but no event tells of it"},
    ),
    "an entry of another tenant": (
        lambda snapshot, names: snapshot.append(
            {**snapshot[0], "entry_id": names["foreign"], "version": 1}
        ),
        {"{foreign} was archived, but no event tells of it"},
    ),
    "an entry under another name": (
        lambda snapshot, names: snapshot[0].update(entry_id="mem_0"),
        {"{first} should be there and is not", "mem_0 was archived, but no event tells of it"},
    ),
    "an entry that goes on": (
        lambda snapshot, names: snapshot.append(
            {**snapshot[0], "entry_id": names["open"], "version": 1}
        ),
        {"{open} "},
    ),
    "an entry that is there, in no task at all": (
        lambda snapshot, names: snapshot.append(
            {**snapshot[0], "entry_id": names["fact"], "version": 1}
        ),
        {"{fact} "},
    ),
    "an entry that was deleted before": (
        lambda snapshot, names: snapshot.append(
            {**snapshot[0], "entry_id": names["deleted"], "version": 1}
        ),
        {"{deleted} has an event after its end"},
    ),
    "an entry twice": (
        lambda snapshot, names: snapshot.append(snapshot[0]),
        {"{first} "},
    ),
}


@pytest.mark.parametrize("damage", _ARCHIVES)
async def test_an_archive_of_something_else_is_reported(archived: Archived, damage: str) -> None:
    change, expected = _ARCHIVES[damage]
    _change_archive(archived, change)
    problems = verified(archived.database).problems
    assert_reported(problems, expected | {OTHER_CONTENT}, archived.names)


_FIRST = "{first} should be there and is not"
_SEALED = "{sealed} should be there and is not"
_ANOTHER_NUMBER = "number = 9999," if ON_FILE else ""
_THERE_AGAIN = f"""CREATE TEMP TABLE copied AS SELECT * FROM entries WHERE id = :open;
    UPDATE copied SET {_ANOTHER_NUMBER} id = :sealed, key = 'sealed', task_id = :task;
    INSERT INTO entries SELECT * FROM copied;
    UPDATE usage SET entries = entries + 1, bytes = bytes + (SELECT size FROM copied)
    WHERE tenant = 'default' AND owner = 'billing' AND tier = 'working';
    DROP TABLE copied"""
_COPY_ARCHIVE = (
    """INSERT INTO event_contents
    SELECT '{tenant}', (SELECT max(seq) + 1 FROM events WHERE tenant = '{tenant}'), salt, content
    FROM event_contents """
    + _OF_ARCHIVE.format(":task")
    + """;
    INSERT INTO events
    SELECT '{tenant}', (SELECT max(seq) + 1 FROM events WHERE tenant = '{tenant}'), format, id,
        type, timestamp, entry_id, tier, version, previous_version, task_id, intent_id, digest_key,
        digest, previous, stream, agent_id
    FROM events WHERE type = 'memory.archived' AND task_id = :task"""
)
_UNBOUND_CONTENT = "a content is kept of an event that is gone"

_DAMAGES: dict[str, tuple[str, set[str]]] = {
    "an entry that is there though it was archived": (
        _THERE_AGAIN,
        {"{sealed} is there though its log has ended"},
    ),
    "a change after the archive": (
        COPY_EVENT.format(type="memory.updated", version="2", entry=":first"),
        {
            "{first} has an event after its end",
            "{first} skips or repeats a version",
            _FIRST,
            BROKEN,
        },
    ),
    "a deletion after the archive": (
        COPY_EVENT.format(type="memory.deleted", version="1", entry=":sealed"),
        {"{sealed} has an event after its end", BROKEN},
    ),
    "no event of an archived entry": (
        "DELETE FROM events WHERE entry_id = :sealed",
        {"{sealed} was archived, but no event tells of it", GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "an archive that is missing": (
        "DELETE FROM events WHERE type = 'memory.archived' AND task_id = :task",
        {_FIRST, _SEALED, GAP, BROKEN, _UNBOUND_CONTENT},
    ),
    "an archive that is called something else": (
        "UPDATE events SET type = 'task.progress' WHERE type = 'memory.archived'"
        " AND task_id = :task",
        {_FIRST, _SEALED, BROKEN},
    ),
    "an archive without what it holds": (
        "UPDATE event_contents SET content = :nothing " + _OF_ARCHIVE.format(":task"),
        {_FIRST, _SEALED, OTHER_CONTENT},
    ),
    "the archive of a task twice": (
        _COPY_ARCHIVE.format(tenant="default"),
        {"{first} ", "{sealed} ", BROKEN},
    ),
    "the archive of a task in another tenant's log": (
        _COPY_ARCHIVE.format(tenant="globex"),
        {
            "{first} was archived, but no event tells of it",
            "{sealed} was archived, but no event tells of it",
            r"globex: event \d+ does not follow from the event before it",
            "globex: the digest key dek_.* is missing",
        },
    ),
}


@pytest.mark.parametrize("damage", _DAMAGES)
async def test_difference_from_an_archive_is_reported(archived: Archived, damage: str) -> None:
    script, expected = _DAMAGES[damage]
    run_sql(archived.database, script, {**archived.names, "nothing": b'{"actor":"billing"}'})
    assert_reported(verified(archived.database).problems, expected, archived.names)


@pytest.mark.parametrize(
    "data",
    ["no JSON", "[]", "7", "{}", '{"snapshot":7}', '{"snapshot":[7]}', '{"snapshot":[{}]}',
     '{"snapshot":[{"entry_id":7,"version":1}]}', '{"snapshot":[{"entry_id":"mem_1"}]}'],
)  # fmt: skip
async def test_an_archive_that_cannot_be_read_is_reported_with_all_else(
    archived: Archived, data: str
) -> None:
    """It is damage like any other: the check goes on, and tells where it is."""
    script = "UPDATE event_contents SET content = :content " + _OF_ARCHIVE.format(":task")
    names = archived.names
    content = f'{{"actor":"billing","data":{data}}}'
    run_sql(archived.database, script, {**names, "content": content.encode()})
    with inspected(archived.database) as inspection:
        place = next(
            event.seq
            for event in inspection.events("default")
            if event.type == "memory.archived" and event.task_id == names["task"]
        )
    expected = {_FIRST, _SEALED, rf"\b{place}\b"}
    assert_reported(verified(archived.database).problems, expected, names)
