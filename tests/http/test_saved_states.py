"""Saved states of a session: bytes of a framework, by name, with their parent."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import httpx
import pytest

from memorywall.service.erasure.entry_erasure import forget
from memorywall.storage.port import Transaction
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_sessions import TENANT, Talk, begin
from tests.support.damage import verified
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

SMALL = bytes(range(256))
LARGE = bytes(range(256)) * 6_000


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def put(talk: Talk, name: str, data: bytes = SMALL, **fields: Any) -> Any:
    text = b64encode(data).decode()
    return await talk.do("PUT", f"/saved-states/{name}", data=text, **fields)


async def names(talk: Talk, query: str = "") -> list[str]:
    found = await talk.do("GET", f"/saved-states{query}")
    assert all(one["data"] is None for one in found["saved_states"])
    return [one["name"] for one in found["saved_states"]]


async def attachments(service: RunningService) -> int:
    async def count(to: Transaction) -> int:
        return len(await to.attachments.page())

    return await service.services.store.read(TENANT, count)


@pytest.mark.parametrize("data", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
async def test_a_state_is_saved_replaced_and_deleted(
    service: RunningService, ada: httpx.AsyncClient, data: bytes
) -> None:
    talk = await begin(ada, subject="ann")
    await put(talk, "1", b"old")
    made = await put(talk, "1", data, parent="0", metadata={"step": 1})
    assert made["data"] is None
    found = await talk.do("GET", "/saved-states/1")
    assert b64decode(found.pop("data")) == data
    assert found == {key: one for key, one in made.items() if key != "data"}
    assert (found["parent"], found["metadata"], found["size"]) == ("0", {"step": 1}, len(data))
    entry = (await ada.get(f"{MEMORY}/{found['id']}")).json()
    assert (entry["kind"], entry["scope"]) == ("saved_state", {"session_id": talk.id})
    assert await attachments(service) == (1 if data is LARGE else 0)
    await put(talk, "1", b"new")
    assert b64decode((await talk.do("GET", "/saved-states/1"))["data"]) == b"new"
    await talk.do("DELETE", "/saved-states/1")
    assert await attachments(service) == 0
    assert_problem(await talk.ask("GET", "/saved-states/1"), 404)
    assert_problem(await talk.ask("DELETE", "/saved-states/1"), 404)


async def test_states_are_listed_by_name_and_stay_in_their_session(ada: httpx.AsyncClient) -> None:
    talk, other = await begin(ada), await begin(ada)
    for name in ("b", "a", "c", "é"):
        await put(talk, name)
    await put(other, "d")
    assert await names(talk) == ["é", "c", "b", "a"]
    assert await names(talk, "?after_name=a&before_name=c") == ["b"]
    page = await talk.do("GET", "/saved-states?limit=3")
    assert await names(talk, f"?before_name={page['next']}") == ["a"]
    assert (await talk.do("GET", "/saved-states"))["next"] is None
    assert await names(other) == ["d"]
    assert (await ada.get(MEMORY)).json()["total"] == 0
    assert (await ada.get(MEMORY, params={"kind": "saved_state"})).json()["total"] == 5


async def test_a_page_with_data_ends_after_a_mib(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    sent = {"a": SMALL, "b": LARGE, "c": SMALL, "d": SMALL}
    for name, data in sent.items():
        await put(talk, name, data)
    seen: dict[str, bytes] = {}
    pages: list[list[str]] = []
    query = "?with_data=true"
    while True:
        page = await talk.do("GET", f"/saved-states{query}")
        pages.append([one["name"] for one in page["saved_states"]])
        seen |= {one["name"]: b64decode(one["data"]) for one in page["saved_states"]}
        if page["next"] is None:
            break
        query = f"?with_data=true&before_name={page['next']}"
    assert pages == [["d", "c"], ["b"], ["a"]]
    assert seen == sent


async def test_a_state_is_created_and_not_replaced_on_request(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    absent = {"If-None-Match": "*"}
    for data, status in (("YQ==", 200), ("Yg==", 409)):
        path = f"{talk.path}/saved-states/1"
        answer = await ada.put(path, json={"data": data}, headers=absent)
        assert answer.status_code == status, answer.text
    assert (await talk.do("GET", "/saved-states/1"))["data"] == "YQ=="


async def test_participants_save_states_and_only_the_owner_deletes(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    await put(talk, "1")
    mine = talk.by(await service.agent("bob"))
    path = "/saved-states/1"
    body = {"data": ""}
    for method in ("GET", "DELETE"):
        assert_problem(await mine.ask(method, path), 404)
    await talk.do("PUT", "/participants/bob", access="read")
    assert (await mine.do("GET", path))["size"] == 256
    assert_problem(await mine.ask("PUT", path, **body), 403)
    await talk.do("PUT", "/participants/bob", access="append")
    await mine.do("PUT", path, **body)
    assert (await talk.do("GET", path))["size"] == 0
    assert_problem(await mine.ask("DELETE", path), 403)


async def test_bad_requests_change_nothing(service: RunningService, ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    for name, body, status, told in (
        ("1", {"data": "?"}, 422, "`data`"),
        ("1", {}, 400, "`data`"),
        ("1", {"data": "", "parent": " x"}, 422, "`parent`"),
        ("%07", {"data": ""}, 422, "`name`"),
        ("1", {"data": "", "metadata": {"x": "x" * 70_000}}, 413, "`metadata`"),
    ):
        answer = await talk.ask("PUT", f"/saved-states/{name}", **body)
        assert told in assert_problem(answer, status)["detail"]
    assert_problem(await talk.ask("GET", "/saved-states/%00"), 404)
    assert_problem(await talk.ask("GET", "/saved-states?before_name=%00"), 422)
    largest = service.services.settings.attachment_limit
    for size, told in ((largest + 1, "`data` may have at most"), (largest * 2, "keep less in")):
        answer = await talk.ask("PUT", "/saved-states/1", data=b64encode(b"x" * size).decode())
        assert told in assert_problem(answer, 413)["detail"]
    assert await names(talk) == []
    await talk.do("POST", "/close", reason="x")
    assert_problem(await talk.ask("PUT", "/saved-states/1", data=""), 409, "SESSION_CLOSED")


@pytest.mark.parametrize("leaves", ["session", "agent"])
async def test_states_leave_with_their_session_and_agent(
    service: RunningService, ada: httpx.AsyncClient, leaves: str
) -> None:
    talk = await begin(ada)
    await put(talk, "1", LARGE)
    await put(talk, "2")
    assert verified(service.services.settings.sqlite_path).problems == []
    if leaves == "session":
        await talk.do("DELETE")
    else:
        await forget(service.services, TENANT, "ada")
    assert await attachments(service) == 0
    assert verified(service.services.settings.sqlite_path).problems == []
