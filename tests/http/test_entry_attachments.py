"""Files of entries over HTTP: as those of intents, and removed with their entry."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.coordination.attachments import CHUNK_BYTES
from memorywall.records.entry import VALUE_LIMIT
from memorywall.records.principal import Permission
from memorywall.service.erasure.entry_erasure import forget
from tests.http.checks import MEMORY, assert_problem, everything, make, value_of_size
from tests.http.files import INTENTS, attach, pieces_in_database, stored
from tests.support.rounds import sweep
from tests.support.service import RunningService, draft, open_service
from tests.support.stored import places_holding, rows

pytestmark = pytest.mark.anyio


async def files_of_entry(client: httpx.AsyncClient, key: str = "report", **fields: Any) -> str:
    """The path of the attachments of a new entry."""
    return f"{MEMORY}/{(await make(client, key, **fields))['id']}/attachments"


async def test_a_file_is_attached_uploaded_downloaded_and_deleted(service: RunningService) -> None:
    ana = await service.agent("ana")
    files = await files_of_entry(ana)
    content = secrets.token_bytes(2 * CHUNK_BYTES + 9)
    digest = hashlib.sha256(content).hexdigest()
    made = await attach(ana, files, metadata={"pages": 2})
    path = f"{files}/{made['id']}"
    assert made == {
        "id": made["id"],
        "entry_id": files.split("/")[4],
        "filename": "scan.pdf",
        "mime_type": "application/pdf",
        "size": 0,
        "storage_url": f"{path}/content",
        "stored": False,
        "digest": None,
        "metadata": {"pages": 2},
        "uploaded_by": "ana",
        "created_at": "2026-02-02T02:40:00.000Z",
        "createdAt": "2026-02-02T02:40:00.000Z",
    }
    assert_problem(await ana.get(f"{path}/content"), 404, "NOT_FOUND")
    put = await ana.put(f"{path}/content", content=content)
    assert put.status_code == 200, put.text
    view = {**made, "size": len(content), "stored": True, "digest": f"sha256:{digest}"}
    assert put.json() == view
    assert (await ana.put(f"{path}/content", content=content)).json() == view
    assert_problem(await ana.put(f"{path}/content", content=b"other"), 409)
    assert (await ana.get(path)).json() == view
    second = await attach(ana, files, storage_url="https://files.example/far.pdf")
    assert (await ana.get(files)).json() == {"attachments": [view, second]}

    got = await ana.get(f"{path}/content")
    assert got.content == content
    assert got.headers["content-type"] == "application/pdf"
    assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert got.headers["etag"] == f'"sha256-{digest}"'
    assert len(pieces_in_database(service)) == 3
    assert (await ana.delete(path)).status_code == 204
    assert pieces_in_database(service) == []
    assert_problem(await ana.get(path), 404, "NOT_FOUND")
    assert (await ana.get(files)).json() == {"attachments": [second]}


async def test_a_file_changes_neither_the_entry_nor_its_version(service: RunningService) -> None:
    ana = await service.agent("ana")
    made = await make(ana, "report")
    await stored(ana, f"{MEMORY}/{made['id']}/attachments", b"content")
    assert (await ana.get(f"{MEMORY}/{made['id']}")).json() == made


async def test_content_is_never_in_the_clear_in_a_file(
    service: RunningService, tmp_path: Path
) -> None:
    ana = await service.agent("ana")
    content = b"a text that is looked for " * 20
    await stored(ana, await files_of_entry(ana), content)
    assert places_holding(tmp_path, content[:60]) == []


async def test_the_log_does_not_name_the_file_of_an_entry(service: RunningService) -> None:
    ana = await service.agent("ana")
    await stored(ana, await files_of_entry(ana), b"content")
    told = [
        event for event in (await everything(service)).events if event.type == "attachment_added"
    ]
    assert len(told) == 1
    assert b"entry_id" in told[0].data
    assert b"scan" not in told[0].data


async def test_a_large_value_is_told_the_way_out(service: RunningService) -> None:
    ana = await service.agent("ana")
    refused = await ana.post(MEMORY, json=draft(value=value_of_size(VALUE_LIMIT + 1)))
    assert "attach" in assert_problem(refused, 413)["detail"]


async def test_a_claimed_key_is_attached_to_by_its_holder_alone(service: RunningService) -> None:
    ana, ben = await service.agent("ana"), await service.agent("ben")
    shared = {"memory_type": "shared", "namespace": "shared/global"}
    files = await files_of_entry(ana, **shared)
    claim = (await ben.post("/api/v1/claims", json={"key": "report", "scope": "global"})).json()
    token = {"Fencing-Token": str(claim["fencing_token"])}
    assert_problem(await ana.post(files, json={"filename": "a"}), 409, "FENCED")
    made = await ben.post(files, json={"filename": "a"}, headers=token)
    assert made.status_code == 201, made.text
    one = f"{files}/{made.json()['id']}"
    assert_problem(await ana.put(f"{one}/content", content=b"x"), 409, "FENCED")
    assert_problem(await ana.delete(one), 409, "FENCED")
    assert (await ana.get(one)).status_code == 200
    assert (await ben.put(f"{one}/content", content=b"x", headers=token)).status_code == 200


async def _delete(service: RunningService, path: str) -> None:
    ana = await service.agent("ana")
    assert (await ana.delete(path)).status_code == 204


async def _delete_matching(service: RunningService, path: str) -> None:
    ana = await service.agent("ana")
    reply = await ana.delete(f"{MEMORY}/batch", params={"key": "report", "agent_id": "ana"})
    assert reply.json() == {"deleted": 1}


async def _expire(service: RunningService, path: str) -> None:
    service.clock.advance(7_200)
    ana = await service.agent("ana")
    assert_problem(await ana.get(f"{path}/attachments"), 404, "ENTRY_NOT_FOUND")
    await sweep(service.services)


async def _forget_agent(service: RunningService, path: str) -> None:
    await forget(service.services, "default", "ana")


async def _forget_subject(service: RunningService, path: str) -> None:
    chief = await service.agent("chief", permissions=tuple(Permission))
    gone = await chief.post("/api/v1/subjects/ann/forget")
    assert gone.json()["entries"] == {"episodic": 1}


async def _evict(service: RunningService, path: str) -> None:
    ana = await service.agent("ana")
    await make(ana, "next", memory_type="episodic")


@pytest.mark.parametrize(
    "end",
    [_delete, _delete_matching, _expire, _forget_agent, _forget_subject, _evict],
    ids=lambda end: end.__name__[1:],
)
async def test_the_files_are_removed_with_their_entry(
    tmp_path: Path, end: Callable[[RunningService, str], Awaitable[None]]
) -> None:
    async with open_service(tmp_path, episodic_capacity=1) as service:
        ana = await service.agent("ana")
        fields = {"memory_type": "episodic", "ttl": "duration:PT1H", "subjects": ["ann"]}
        files = await files_of_entry(ana, **fields)
        path = await stored(ana, files, b"content")
        assert len(pieces_in_database(service)) == 1
        await end(service, files.removesuffix("/attachments"))
        assert pieces_in_database(service) == []
        assert rows(service, "SELECT id FROM attachments") == []
        reader = await service.agent("ana")
        assert_problem(await reader.get(path), 404, "ENTRY_NOT_FOUND")
        assert_problem(await reader.get(files), 404, "ENTRY_NOT_FOUND")


async def test_the_files_of_working_memory_are_removed_when_its_task_ends(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    intent = (await ana.post(INTENTS, json={"title": "Pay the bills"})).json()
    body = {"intent_id": intent["id"], "name": "scan", "assigned_agent": "ana"}
    task = (await ana.post("/api/v1/tasks", json=body)).json()
    files = await files_of_entry(ana, scope={"task_id": task["id"]})
    await stored(ana, files, b"content")
    headers = {"If-Match": str(task["version"])}
    ended = await ana.patch(
        f"/api/v1/tasks/{task['id']}", json={"status": "cancelled"}, headers=headers
    )
    assert ended.status_code == 200, ended.text
    assert pieces_in_database(service) == []
    assert_problem(await ana.get(files), 404)


async def test_a_file_is_attached_once_by_a_repeated_request(service: RunningService) -> None:
    ana, bob = await service.agent("ana"), await service.agent("bob")
    for parent in ("entry", "intent"):
        if parent == "entry":
            files = await files_of_entry(ana)
        else:
            made = await ana.post(INTENTS, json={"title": "file it", "created_by": "ana"})
            files = f"{INTENTS}/{made.json()['id']}/attachments"
        body, headers = {"filename": "scan.pdf"}, {"Idempotency-Key": parent}
        first = await ana.post(files, json=body, headers=headers)
        again = await ana.post(files, json=body, headers=headers)
        assert (first.status_code, again.content) == (201, first.content)
        assert len((await ana.get(files)).json()["attachments"]) == 1
        other = await ana.post(files, json={"filename": "other.pdf"}, headers=headers)
        assert_problem(other, 422)
        # Keys belong to a principal.
        assert (await bob.post(files, json=body, headers=headers)).status_code in (403, 404)
        reader = await service.agent("ana", permissions=(Permission.READ,))
        assert_problem(await reader.post(files, json=body, headers=headers), 403)
        if parent == "entry":
            await ana.delete(files.removesuffix("/attachments"))
            assert_problem(await ana.post(files, json=body, headers=headers), 404)
