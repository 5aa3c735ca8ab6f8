"""Who may use the files of intents and entries, and that changed content is not returned."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from memorywall.coordination.attachments import CHUNK_BYTES
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.service.administration.tenants import create_key
from tests.http.checks import MEMORY, assert_problem, make
from tests.http.files import INTENTS, make_intent, stored
from tests.support.asgi import AsgiClient
from tests.support.service import RunningService
from tests.support.stored import change, rows

pytestmark = pytest.mark.anyio

ABSENT = "att_01ARZ3NDEKTSV4RRFFQ69G5FAV"
Attempt = Callable[[httpx.AsyncClient, str, str], Awaitable[httpx.Response]]
READS: dict[str, Attempt] = {
    "list": lambda client, files, one: client.get(files),
    "get": lambda client, files, one: client.get(one),
    "download": lambda client, files, one: client.get(f"{one}/content"),
}
WRITES: dict[str, Attempt] = {
    "add": lambda client, files, one: client.post(files, json={"filename": "a"}),
    "upload": lambda client, files, one: client.put(f"{one}/content", content=b"content"),
    "delete": lambda client, files, one: client.delete(one),
}


async def statuses(
    client: httpx.AsyncClient, files: str, one: str, attempts: dict[str, Attempt]
) -> set[int]:
    """What the attempts are answered with; where refused, without anything of the file."""
    found = set()
    for attempt in attempts.values():
        response = await attempt(client, files, one)
        found.add(response.status_code)
        if response.status_code >= 400:
            assert_problem(response, response.status_code)
            assert "content" not in response.text.replace("content-", "")
            assert "scan.pdf" not in response.text
    return found


async def test_files_are_as_open_as_their_intent(service: RunningService) -> None:
    ana, ben = await service.agent("ana"), await service.agent("ben")
    files = await make_intent(ana)
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    everything = {**READS, **WRITES}
    assert await statuses(ben, files, one, everything) == {403}
    assert await statuses(service.client(), files, one, everything) == {401}
    stranger = await service.agent("ana", tenant="another")
    assert await statuses(stranger, files, one, everything) == {404}

    entries = files.replace("/attachments", "/acl/entries")
    grant = {"principal_id": "ben", "permission": "read"}
    assert (await ana.post(entries, json=grant)).status_code == 201
    assert await statuses(ben, files, one, READS) == {200}
    assert await statuses(ben, files, one, WRITES) == {403}
    narrow = await service.agent("ana", permissions=(Permission.READ,))
    assert await statuses(narrow, files, one, READS) == {200}
    assert await statuses(narrow, files, one, WRITES) == {403}
    blind = await service.agent("ana", permissions=(Permission.WRITE,))
    assert await statuses(blind, files, one, READS) == {403}
    assert await statuses(blind, files, one, {"upload": WRITES["upload"]}) == {200}

    grant["permission"] = "write"
    assert (await ana.post(entries, json=grant)).status_code == 201
    assert await statuses(ben, files, one, WRITES) == {201, 200, 204}


async def test_agent_of_a_task_may_upload_until_it_ends(service: RunningService) -> None:
    ana, ben = await service.agent("ana"), await service.agent("ben")
    files = await make_intent(ana)
    body = {"intent_id": files.split("/")[4], "name": "scan", "assigned_agent": "ben"}
    task = (await ana.post("/api/v1/tasks", json=body)).json()
    one = (await stored(ben, files, b"content")).removesuffix("/content")
    assert (await ben.get(one)).json()["uploaded_by"] == "ben"
    ended = await ana.patch(
        f"/api/v1/tasks/{task['id']}",
        json={"status": "cancelled"},
        headers={"If-Match": str(task["version"])},
    )
    assert ended.status_code == 200, ended.text
    assert await statuses(ben, files, one, WRITES) == {403}
    assert await statuses(ben, files, one, READS) == {200}


async def test_a_file_is_found_only_in_its_intent(service: RunningService) -> None:
    ana = await service.agent("ana")
    files, others = await make_intent(ana), await make_intent(ana)
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    elsewhere = others + "/" + one.rpartition("/")[2]
    nowhere = f"{INTENTS}/int_01ARZ3NDEKTSV4RRFFQ69G5FAV/attachments"
    of_one = {name: way for name, way in {**READS, **WRITES}.items() if name not in ("list", "add")}
    assert await statuses(ana, others, elsewhere, of_one) == {404}
    assert await statuses(ana, files, f"{files}/{ABSENT}", of_one) == {404}
    assert await statuses(ana, nowhere, f"{nowhere}/{ABSENT}", {**READS, **WRITES}) == {404}
    assert (await ana.get(f"{one}/content")).content == b"content"


async def _entry_files(client: httpx.AsyncClient, key: str = "report", **fields: Any) -> str:
    return f"{MEMORY}/{(await make(client, key, **fields))['id']}/attachments"


async def test_files_of_an_agents_entry_are_its_own(service: RunningService) -> None:
    ana, ben = await service.agent("ana"), await service.agent("ben")
    files = await _entry_files(ana)
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    everything = {**READS, **WRITES}
    assert await statuses(ben, files, one, everything) == {403}
    assert await statuses(service.client(), files, one, everything) == {401}
    stranger = await service.agent("ana", tenant="another")
    assert await statuses(stranger, files, one, everything) == {404}
    narrow = await service.agent("ana", permissions=(Permission.READ,))
    assert await statuses(narrow, files, one, READS) == {200}
    assert await statuses(narrow, files, one, WRITES) == {403}
    assert await statuses(ana, files, one, WRITES) == {201, 200, 204}


@pytest.mark.parametrize("level", ["none", "read", "write"])
async def test_files_of_a_shared_entry_follow_its_namespace(
    service: RunningService, level: str
) -> None:
    ana = await service.agent("ana", permissions=tuple(Permission))
    ben = await service.agent("ben")
    files = await _entry_files(ana, memory_type="semantic", namespace="facts")
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    grants = {"default": "none", "allow": [{"agent": "ben", "access": level}]}
    granted = await ana.patch(f"{MEMORY}/namespaces/facts", json={"permissions": grants})
    assert granted.status_code == 200, granted.text
    assert await statuses(ben, files, one, READS) == ({403} if level == "none" else {200})
    allowed = {201, 200, 204} if level == "write" else {403}
    assert await statuses(ben, files, one, WRITES) == allowed


async def test_the_coordinator_of_a_task_reads_files_of_its_memory(service: RunningService) -> None:
    ana, ben = await service.agent("ana"), await service.agent("ben")
    intent = (await make_intent(ana)).split("/")[4]
    body = {"intent_id": intent, "name": "scan", "assigned_agent": "ben"}
    task = (await ana.post("/api/v1/tasks", json=body)).json()
    files = await _entry_files(ben, scope={"task_id": task["id"]})
    one = (await stored(ben, files, b"content")).removesuffix("/content")
    entry = files.removesuffix("/attachments")
    everything = {**READS, **WRITES}
    assert await statuses(ana, files, one, everything) == {403}
    appointed = {"agent_id": "ana", "intent_id": intent}
    made = await ana.post("/api/v1/coordinators", json=appointed)
    assert made.status_code == 201, made.text
    assert (await ana.get(entry)).status_code == 200
    assert await statuses(ana, files, one, READS) == {200}
    assert await statuses(ana, files, one, WRITES) == {403}


@pytest.mark.parametrize("sensitivity", ["internal", "confidential"])
async def test_files_about_others_are_hidden_from_a_bound_request(
    service: RunningService, sensitivity: str
) -> None:
    ana = await service.agent("ana")
    files = await _entry_files(ana, subjects=["ann"], sensitivity=sensitivity)
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    entry = files.removesuffix("/attachments")
    everything = {**READS, **WRITES}
    ana.headers["X-Subject"] = "bob"
    assert await statuses(ana, files, one, everything) == {404}
    hidden = await ana.get(entry)
    for attempt in everything.values():
        assert (await attempt(ana, files, one)).json() == hidden.json()
    ana.headers["X-Subject"] = "ann"
    assert await statuses(ana, files, one, READS) == {200}
    assert await statuses(ana, files, one, WRITES) == {201, 200, 204}


async def test_a_key_limited_to_a_subject_reaches_no_other_files(service: RunningService) -> None:
    ana = await service.agent("ana")

    async def limited_to(*subjects: str) -> AsgiClient:
        text, _ = await create_key(
            service.services,
            "default",
            "ana",
            PrincipalKind.AGENT,
            (Permission.READ, Permission.WRITE),
            subjects=list(subjects),
        )
        return service.client(text)

    # A key of one person binds by itself, and a key of several must name some of them.
    one_person, several = await limited_to("ann"), await limited_to("ann", "cid")
    for subject, status in (("ann", 200), ("bob", 404)):
        files = await _entry_files(ana, subject, subjects=[subject])
        one = (await stored(ana, files, b"content")).removesuffix("/content")
        assert await statuses(one_person, files, one, READS) == {status}
        assert await statuses(several, files, one, {**READS, **WRITES}) == {403}
        several.headers["X-Subject"] = "ann"
        assert await statuses(several, files, one, READS) == {status}
        del several.headers["X-Subject"]


async def test_a_file_is_found_only_in_its_entry(service: RunningService) -> None:
    ana = await service.agent("ana")
    files, others = await _entry_files(ana), await _entry_files(ana, "other")
    intents = await make_intent(ana)
    one = (await stored(ana, files, b"content")).removesuffix("/content")
    of_intent = (await stored(ana, intents, b"content")).removesuffix("/content")
    of_one = {name: way for name, way in {**READS, **WRITES}.items() if name not in ("list", "add")}
    for parent, file in ((others, one), (intents, one), (files, of_intent), (files, f"/{ABSENT}")):
        elsewhere = f"{parent}/{file.rpartition('/')[2]}"
        assert await statuses(ana, parent, elsewhere, of_one) == {404}
    nowhere = f"{MEMORY}/mem_01ARZ3NDEKTSV4RRFFQ69G5FAV/attachments"
    assert await statuses(ana, nowhere, f"{nowhere}/{ABSENT}", {**READS, **WRITES}) == {404}
    crossed = f"{MEMORY}/{intents.split('/')[4]}/attachments"
    assert await statuses(ana, crossed, f"{crossed}/{ABSENT}", {**READS, **WRITES}) == {404}
    assert (await ana.get(f"{one}/content")).content == b"content"


def change_record(service: RunningService, file: str, **fields: Any) -> None:
    """Makes the record of a file say something else."""
    ((body,),) = rows(service, "SELECT body FROM attachments WHERE id = ?", file)
    changed = json.dumps({**json.loads(body), **fields})
    change(service, "UPDATE attachments SET body = ? WHERE id = ?", changed, file)


_PIECES = "attachment_pieces"
_SWAPPED = f"""UPDATE {_PIECES} SET content = (SELECT content FROM {_PIECES} other
    WHERE other.attachment_id = {_PIECES}.attachment_id AND other.place = 1 - {_PIECES}.place)
    WHERE attachment_id = ?1 AND place < 2"""


@pytest.mark.parametrize(
    "damage",
    [
        _SWAPPED,
        f"DELETE FROM {_PIECES} WHERE attachment_id = ?1 AND place = 2",
        f"DELETE FROM {_PIECES} WHERE attachment_id = ?1 AND place = 0",
        f"DELETE FROM {_PIECES} WHERE attachment_id = ?1",
        f"INSERT INTO {_PIECES} SELECT tenant, ?1, 3, content FROM {_PIECES} WHERE place = 0"
        " AND attachment_id = ?1",
        f"UPDATE {_PIECES} SET content = substr(content, 1, length(content) - 1)"
        " WHERE attachment_id = ?1 AND place = 1",
        f"UPDATE {_PIECES} SET content = substr(content, 1, 0)"
        " WHERE attachment_id = ?1 AND place = 1",
        f"UPDATE {_PIECES} SET content = (SELECT content FROM {_PIECES} other WHERE"
        f" other.attachment_id <> ?1 AND other.place = {_PIECES}.place) WHERE attachment_id = ?1",
        {"size": 2 * CHUNK_BYTES},
        {"digest": "0" * 64},
        {"sealing_key": "dek_other"},
    ],
    ids=["two swapped", "last gone", "first gone", "all gone", "one more", "cut", "emptied",
         "another file's", "other size", "other digest", "other key"],
)  # fmt: skip
async def test_content_that_was_tampered_with_is_not_given_out(
    service: RunningService, damage: str | dict[str, Any]
) -> None:
    ana = await service.agent("ana")
    files = await make_intent(ana)
    content = secrets.token_bytes(2 * CHUNK_BYTES + 100)
    kept = await stored(ana, files, content[::-1])
    path = await stored(ana, files, content)
    assert (await ana.get(path)).content == content
    file = path.split("/")[6]
    if isinstance(damage, str):
        change(service, damage, file)
    else:
        change_record(service, file, **damage)
    assert_problem(await ana.get(path), 503, "KEY_UNAVAILABLE")
    assert (await ana.get(kept)).content == content[::-1]


async def test_a_file_cut_to_whole_pieces_with_its_record_is_not_given_out(
    service: RunningService,
) -> None:
    """The record, its digest included, is made to fit the pieces that are left."""
    ana = await service.agent("ana")
    content = secrets.token_bytes(2 * CHUNK_BYTES)
    path = await stored(ana, await make_intent(ana), content)
    one = path.split("/")[6]
    change(service, f"DELETE FROM {_PIECES} WHERE attachment_id = ? AND place = 1", one)
    digest = hashlib.sha256(content[:CHUNK_BYTES]).hexdigest()
    change_record(service, one, size=CHUNK_BYTES, digest=digest)
    assert (await ana.get(path.removesuffix("/content"))).json()["size"] == CHUNK_BYTES
    problem = assert_problem(await ana.get(path), 503, "KEY_UNAVAILABLE")
    assert "reply" not in problem["detail"], "what does not open is no kept reply"
