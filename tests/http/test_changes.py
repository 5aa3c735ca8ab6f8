"""Following what others change: pages, long polls, streams, and who gets which event."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import KindSpec
from memorywall.operations import changes as operations
from memorywall.records.principal import Permission, PrincipalKind
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.administration.tenants import create_key, revoke_key
from tests.http.checks import ADMINISTRATOR, MEMORY, NAMESPACES, assert_problem
from tests.support.asgi import AsgiTransport
from tests.support.extent import extent
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

CHANGES = "/api/v1/memory/changes"
SHARED = {"memory_type": "semantic", "namespace": "facts"}
STATE = {"memory_type": "shared", "namespace": "shared/global"}
LIMIT = 30.0


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada", permissions=ADMINISTRATOR) as client:
        yield client


@pytest.fixture
async def grace(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("grace") as client:
        yield client


async def _make(client: httpx.AsyncClient, key: str, **fields: Any) -> dict[str, Any]:
    headers = fields.pop("headers", None)
    response = await client.post(MEMORY, json=draft(key, **fields), headers=headers)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def _page(client: httpx.AsyncClient, after: int | None = 0, **wanted: Any) -> dict[str, Any]:
    headers = wanted.pop("headers", None)
    params = wanted if after is None else {"after": after, **wanted}
    response = await client.get(CHANGES, params=params, headers=headers)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def _told(page: dict[str, Any]) -> list[tuple[str, str]]:
    """Type and key of each event."""
    return [(one["type"].partition(".")[2], one["data"]["key"]) for one in page["events"]]


async def _allow(client: httpx.AsyncClient, namespace: str, **levels: str) -> None:
    """Lets only these agents read a namespace."""
    allow = [{"agent": agent, "access": access} for agent, access in levels.items()]
    change = {"permissions": {"default": "none", "allow": allow}}
    response = await client.patch(f"{NAMESPACES}/{namespace}", json=change)
    assert response.status_code == 200, response.text


class Frames:
    """The frames of a stream, over the application in this process."""

    def __init__(self, service: RunningService, key: str, **params: Any) -> None:
        transport = AsgiTransport(service.app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://memorywall.test")
        self._headers = {"X-API-Key": key, "Accept": "text/event-stream"}
        self._params = params

    async def read(self, last: int | None = None) -> AsyncGenerator[dict[str, str], None]:
        """Yields each frame as its fields."""
        headers = self._headers if last is None else {**self._headers, "Last-Event-ID": str(last)}
        async with self._client.stream(
            "GET", CHANGES, params=self._params, headers=headers
        ) as response:
            assert response.status_code == 200
            frame: dict[str, str] = {}
            async for line in response.aiter_lines():
                if line:
                    name, _, content = line.partition(": ")
                    frame[name] = content
                else:
                    yield frame
                    frame = {}


async def next_event(frames: AsyncGenerator[dict[str, str], None]) -> dict[str, Any]:
    """The next frame with data, and its kind of event."""
    async with asyncio.timeout(LIMIT):
        async for frame in frames:
            if "data" in frame:
                return {"event": frame["event"], **json.loads(frame["data"])}
    raise AssertionError("the stream has ended")


# Pages


async def test_a_page_tells_what_others_have_changed_in_order(
    ada: httpx.AsyncClient, grace: httpx.AsyncClient
) -> None:
    start = await _page(grace, None)
    assert (start["events"], start["more"]) == ([], False)
    made = await _make(ada, "a", **SHARED)
    await _make(ada, "own")
    path = f"{MEMORY}/{made['id']}"
    await ada.patch(path, json={"tags": ["t"]}, headers={"If-Match": "1"})
    await _make(grace, "mine")
    await ada.delete(path)
    page = await _page(grace, start["next"])
    assert _told(page) == [
        ("created", "a"), ("updated", "a"), ("created", "mine"), ("deleted", "a"),
    ]  # fmt: skip
    assert page["next"] == page["events"][-1]["seq"]
    assert not page["more"]
    assert page["events"][1]["data"] == {
        "entry_id": made["id"],
        "memory_type": "semantic",
        "namespace": "facts",
        "key": "a",
        "version": 2,
        "previous_version": 1,
        "tags": ["t"],
    }
    assert page["events"][1]["actor"] == "ada"
    parts, after = [], start["next"]
    while (part := await _page(grace, after, limit=1))["events"]:
        parts += part["events"]
        after = part["next"]
    assert parts == page["events"]
    assert (await _page(ada, 0))["next"] == page["next"]


async def test_conditions_narrow_a_page(ada: httpx.AsyncClient) -> None:
    task = {"scope": {"task_id": "t"}}
    value = {"type": "correction", "wrong_answer": "w", "right_answer": "r"}
    lesson = {"memory_type": "episodic", "kind": "correction", "value": value}
    await _make(ada, "plain")
    await _make(ada, "of-task", **task)
    await _make(ada, "fact", **SHARED)
    await _make(ada, "sub", memory_type="semantic", namespace="facts.law")
    await _make(ada, "state", **STATE)
    await _make(ada, "about-ann", subjects=["ann", "bob"])
    await _make(ada, "lesson", **lesson)
    for wanted, keys in (
        ({"namespace": "facts"}, ["fact"]),
        ({"namespace": "facts*"}, ["fact", "sub"]),
        ({"scope": "global"}, ["state"]),
        ({"memory_type": "semantic", "key": "sub"}, ["sub"]),
        ({"scope.task_id": "t"}, ["of-task"]),
        ({"subject": "ann"}, ["about-ann"]),
        ({"subject": "eve"}, []),
        ({"kind": "correction"}, ["lesson"]),
    ):
        assert [key for _, key in _told(await _page(ada, 0, **wanted))] == keys, wanted
    page = await _page(ada, 0, kind="correction")
    assert page["events"][0]["data"]["kind"] == "correction"


async def test_an_unlisted_kind_is_followed_where_it_is_named(ada: httpx.AsyncClient) -> None:
    class Tick(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
        n: int

    spec = KindSpec(name="tick", version=1, schema=Tick, description="A tick.", listed=False)
    with register_kind(spec):
        await _make(ada, "tick", kind="tick", value={"n": 1})
        assert _told(await _page(ada)) == []
        assert _told(await _page(ada, kind="tick")) == [("created", "tick")]


async def test_a_malformed_request_is_refused(ada: httpx.AsyncClient) -> None:
    wanted: list[dict[str, Any]] = [
        {"scope": "everybody"},
        {"scope": "global", "namespace": "facts"},
        {"scope": "global", "memory_type": "semantic"},
        {"wait": 21},
        {"limit": 0},
        {"after": -1},
        {"colour": "red"},
    ]
    for one in wanted:
        assert_problem(await ada.get(CHANGES, params=one), 400, "VALIDATION_ERROR")


async def test_a_position_that_the_log_does_not_have_is_refused(ada: httpx.AsyncClient) -> None:
    await _make(ada, "a")
    end = (await _page(ada, None))["next"]
    for headers in ({}, {"Accept": "text/event-stream"}):
        reply = await ada.get(CHANGES, params={"after": end + 1}, headers=headers)
        assert "read the entries again" in assert_problem(reply, 410, "CURSOR_LOST")["detail"]
    assert (await _page(ada, end))["events"] == []


async def test_a_page_examines_a_bounded_part_of_the_log(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MOST_EXAMINED", 500)
    entries = [draft(f"k{number}") for number in range(600)]
    assert (await ada.post(f"{MEMORY}/batch", json={"entries": entries})).status_code == 200
    page = await _page(ada, 0, key="k599")
    assert (page["events"], page["next"], page["more"]) == ([], 500, True)
    page = await _page(ada, page["next"], key="k599")
    assert ([one["data"]["key"] for one in page["events"]], page["more"]) == (["k599"], False)


# Access


async def test_what_may_no_longer_be_read_is_not_delivered(
    ada: httpx.AsyncClient, grace: httpx.AsyncClient
) -> None:
    made = await _make(ada, "a", **SHARED)
    await _make(grace, "mine")
    assert _told(await _page(grace)) == [("created", "a"), ("created", "mine")]
    await _allow(ada, "facts", ada="admin")
    await ada.delete(f"{MEMORY}/{made['id']}")
    # Events from before the loss are decided now, like those after it.
    assert _told(await _page(grace)) == [("created", "mine")]
    assert _told(await _page(ada)) == [("created", "a"), ("deleted", "a")]
    refused = await grace.get(CHANGES, params={"after": 0, **SHARED})
    assert_problem(refused, 403, "ACCESS_DENIED")
    await _allow(ada, "facts", ada="admin", grace="read")
    assert _told(await _page(grace, **SHARED)) == [("created", "a"), ("deleted", "a")]


async def test_a_scope_can_be_followed_before_it_exists(
    ada: httpx.AsyncClient, grace: httpx.AsyncClient
) -> None:
    assert (await _page(grace, None, scope="team:red"))["events"] == []
    await _make(ada, "plan", memory_type="shared", namespace="shared/team/red")
    # A team's scope is closed to others until its creator grants access.
    reply = await grace.get(CHANGES, params={"after": 0, "scope": "team:red"})
    assert_problem(reply, 403, "ACCESS_DENIED")
    assert _told(await _page(ada, 0, scope="team:red")) == [("created", "plan")]


async def test_a_key_without_read_access_follows_nothing(service: RunningService) -> None:
    async with await service.agent("writer", permissions=[Permission.WRITE]) as client:
        assert_problem(await client.get(CHANGES), 403, "ACCESS_DENIED")
    assert_problem(await service.client().get(CHANGES), 401, "UNAUTHENTICATED")


async def test_tenants_are_apart(service: RunningService, ada: httpx.AsyncClient) -> None:
    await _make(ada, "a", **SHARED)
    async with await service.agent("ada", "globex") as other:
        assert await _page(other) == {"events": [], "next": 0, "more": False}


@pytest.mark.parametrize("sealing", [{}, {"sensitivity": "confidential"}], ids=["plain", "sealed"])
async def test_a_bound_request_follows_one_person(
    ada: httpx.AsyncClient, sealing: dict[str, str]
) -> None:
    ann, bob = {"X-Subject": "ann"}, {"X-Subject": "bob"}
    own = await _make(ada, "own", headers=ann, **sealing)
    for key, subjects in (("a", ["ann"]), ("b", ["bob"]), ("ab", ["ann", "bob"]), ("n", [])):
        made = await _make(ada, key, subjects=subjects, **sealing)
        # Of entries that are gone, the log alone knows whom they were about.
        await ada.delete(f"{MEMORY}/{made['id']}")
    page = await _page(ada, 0, headers=ann)
    assert {key for _, key in _told(page)} == {"own", "a", "n"}
    assert page["events"][0]["data"]["namespace"] == own["namespace"] == "user/ann/invoices"
    assert {key for _, key in _told(await _page(ada, 0, headers=bob))} == {"b", "n"}
    assert _told(await _page(ada, 0, headers=ann, namespace="invoices")) == [("created", "own")]
    assert {key for _, key in _told(await _page(ada, 0, subject="ann"))} == {"own", "a", "ab"}
    # An entry that is about somebody else now is not shown as it was before.
    path = f"{MEMORY}/{(await _make(ada, 'moved', subjects=['ann'], **sealing))['id']}"
    await ada.patch(path, json={"subjects": ["bob"]}, headers={"If-Match": "1"})
    for person in (ann, bob):
        keys = [key for _, key in _told(await _page(ada, 0, headers=person, key="moved"))]
        assert keys == ([] if person is ann else ["moved"])


# Long polls


async def test_a_long_poll_returns_with_the_first_change(
    ada: httpx.AsyncClient, grace: httpx.AsyncClient
) -> None:
    start = (await _page(grace, None))["next"]
    polling = asyncio.ensure_future(_page(grace, start, wait=20, **STATE))
    await _make(ada, "elsewhere")
    assert not polling.done()
    await _make(ada, "plan", **STATE)
    async with asyncio.timeout(LIMIT / 3):
        page = await polling
    assert _told(page) == [("created", "plan")]


async def test_a_long_poll_does_not_outlive_its_key(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    key = await service.key("grace")
    async with service.client(key) as client:
        polling = asyncio.ensure_future(client.get(CHANGES, params={"wait": 20}))
        await asyncio.sleep(0)
        assert await revoke_key(service.services, key.partition(".")[0])
        await _make(ada, "plan", **STATE)
        async with asyncio.timeout(LIMIT):
            assert_problem(await polling, 401, "UNAUTHENTICATED")


async def test_a_stopping_server_ends_long_polls(service: RunningService) -> None:
    stopping = asyncio.Event()
    authenticator = ApiKeyAuthenticator(service.services)
    app = build_app(service.services, authenticator, stopping)
    async with httpx.AsyncClient(
        transport=AsgiTransport(app),
        base_url="http://memorywall.test",
        headers={"X-API-Key": await service.key("ada")},
    ) as client:
        polling = asyncio.ensure_future(client.get(CHANGES, params={"wait": 20}))
        await asyncio.sleep(0)
        stopping.set()
        async with asyncio.timeout(LIMIT / 3):
            reply = await polling
        assert_problem(reply, 503, "UNAVAILABLE")
        assert reply.headers["retry-after"] == "1"


# Streams


async def test_a_stream_tells_what_the_pages_tell(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    key = await service.key("grace")
    async with service.client(key) as grace, aclosing(Frames(service, key).read()) as frames:
        async with asyncio.timeout(LIMIT):
            # The first frame is the present position, for a client that resumes before any event.
            first = await anext(frames)
        assert first == {"id": "0"}
        for number in range(3):
            await _make(ada, f"k{number}", **STATE)
            await _make(ada, f"hidden{number}")
        events = [await next_event(frames) for _ in range(3)]
        page = await _page(grace)
        assert [{"event": one["type"], **one} for one in page["events"]] == events


async def test_a_stream_ends_when_access_is_lost(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await _make(ada, "a", **SHARED)
    key = await service.key("grace")
    wanted = {"after": 0, **SHARED}
    async with (
        aclosing(Frames(service, key, **wanted).read()) as one_namespace,
        aclosing(Frames(service, key, after=0).read()) as everything,
    ):
        for frames in (one_namespace, everything):
            assert (await next_event(frames))["data"]["key"] == "a"
        await _allow(ada, "facts", ada="admin")
        await _make(ada, "b", **SHARED)
        await _make(ada, "c", **STATE)
        last = await next_event(one_namespace)
        assert (last["event"], last["status"], last["error"]) == ("problem", 403, "ACCESS_DENIED")
        with pytest.raises(StopAsyncIteration):
            await anext(one_namespace)
        assert (await next_event(everything))["data"]["key"] == "c"
        assert await revoke_key(service.services, key.partition(".")[0])
        await _make(ada, "d", **STATE)
        last = await next_event(everything)
        assert (last["event"], last["error"]) == ("problem", "UNAUTHENTICATED")
        with pytest.raises(StopAsyncIteration):
            await anext(everything)


async def test_resuming_repeats_and_skips_nothing_under_writes(service: RunningService) -> None:
    """Writers create, update and delete while a reader takes a few events at a time and resumes
    from the last frame, which may be a position without an event."""
    seed = extent(7, long=random.SystemRandom().randrange(1 << 32))
    print(f"MEMORYWALL_SEED={seed}")
    draw = random.Random(seed)
    rounds = extent(12, long=400)
    names = ["w0", "w1", "w2"]
    clients = [await service.agent(name) for name in names]

    async def write(client: httpx.AsyncClient, name: str) -> None:
        for number in range(rounds):
            place = draw.choice([STATE, {}])
            made = await _make(client, f"{name}-{number}", **place)
            path = f"{MEMORY}/{made['id']}"
            await client.patch(path, json={"pinned": True}, headers={"If-Match": "1"})
            if draw.random() < 0.5:
                await client.delete(path)
            await asyncio.sleep(0)

    async def write_all() -> None:
        await asyncio.gather(*map(write, clients, names))
        await _make(clients[0], "end", **STATE)

    key = await service.key("reader")
    writing = asyncio.ensure_future(write_all())
    seen: list[dict[str, Any]] = []
    last = 0
    async with asyncio.timeout(LIMIT * extent(1, long=10)):
        while not seen or seen[-1]["data"]["key"] != "end":
            wanted = draw.randint(1, 9)
            async with aclosing(Frames(service, key).read(last)) as frames:
                async for frame in frames:
                    last = int(frame["id"])
                    if "data" in frame:
                        seen.append(json.loads(frame["data"]))
                        wanted -= 1
                    if wanted == 0 or (seen and seen[-1]["data"]["key"] == "end"):
                        break
        await writing
    async with service.client(key) as reader:
        pages = [await _page(reader, 0, limit=1_000)]
        while pages[-1]["more"]:
            pages.append(await _page(reader, pages[-1]["next"], limit=1_000))
    assert seen == [event for page in pages for event in page["events"]]
    assert len({one["seq"] for one in seen}) == len(seen) > rounds
    for client in clients:
        await client.aclose()


# Conditional reads


async def test_a_current_etag_gets_no_body(ada: httpx.AsyncClient) -> None:
    made = await _make(ada, "a", **SHARED)
    path = f"{MEMORY}/{made['id']}"
    reply = await ada.get(path)
    assert reply.headers["etag"] == '"1"'
    for given in ('"1"', 'W/"1"', '"7", W/"1"', "1", "*"):
        same = await ada.get(path, headers={"If-None-Match": given})
        assert (same.status_code, same.content) == (304, b""), given
        assert same.headers["etag"] == '"1"'
        assert "content-length" not in same.headers
    for given in ('"2"', '"11"', "", "nonsense"):
        assert (await ada.get(path, headers={"If-None-Match": given})).json() == made
    await ada.patch(path, json={"pinned": True}, headers={"If-Match": "1"})
    changed = await ada.get(path, headers={"If-None-Match": '"1"'})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)


async def test_the_etag_of_a_name_is_of_one_entry(ada: httpx.AsyncClient) -> None:
    name = {"params": {"namespace": "facts", "key": "a"}}
    path = f"{MEMORY}/by-name"
    assert "etag" not in (await ada.get(path, **name)).headers
    made = await _make(ada, "a", **SHARED)
    first = (await ada.get(path, **name)).headers["etag"]

    async def status() -> int:
        return (await ada.get(path, headers={"If-None-Match": first}, **name)).status_code

    assert await status() == 304
    hiding = await _make(ada, "a", memory_type="working", namespace="facts")
    assert await status() == 200
    await ada.delete(f"{MEMORY}/{hiding['id']}")
    assert await status() == 304
    await ada.delete(f"{MEMORY}/{made['id']}")
    assert await status() == 200
    again = await _make(ada, "a", **SHARED)
    assert (again["version"], await status()) == (1, 200)


async def test_a_conditional_read_is_authorized(
    ada: httpx.AsyncClient, grace: httpx.AsyncClient
) -> None:
    made = await _make(ada, "a", **SHARED)
    path, known = f"{MEMORY}/{made['id']}", {"If-None-Match": "*"}
    assert (await grace.get(path, headers=known)).status_code == 304
    await _allow(ada, "facts", ada="admin")
    assert_problem(await grace.get(path, headers=known), 403, "ACCESS_DENIED")
    body = {"jsonrpc": "2.0", "id": 1, "method": "get_entry",
            "params": {"entry_id": made["id"], "if_none_match": '"1"'}}  # fmt: skip
    assert (await ada.post("/rpc", json=body)).json()["result"] is None


async def test_the_log_names_no_subject(service: RunningService, ada: httpx.AsyncClient) -> None:
    made = await _make(ada, "a", subjects=["zanzibar"])
    await ada.delete(f"{MEMORY}/{made['id']}")
    log = await service.services.store.read("default", lambda to: to.events.list_from(0, 99))
    assert all(one.subjects and "zanzibar" not in str(one) for one in log)
    text, _ = await create_key(
        service.services,
        "default",
        "ann-only",
        PrincipalKind.AGENT,
        [Permission.READ],
        ("zanzibar",),
    )
    async with service.client(text) as limited:
        other = await limited.get(CHANGES, headers={"X-Subject": "ann"})
        assert_problem(other, 403, "ACCESS_DENIED")
        assert (await _page(limited, 0, headers={"X-Subject": "zanzibar"}))["events"] == []
        assert (await _page(limited, 0))["events"] == []
