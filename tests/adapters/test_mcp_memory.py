"""The tools of memory, called by the official MCP client in process and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from memorywall.records.errors import UnavailableError
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.adapters.mcp_clients import ERAS, Caller, app_of, in_process, over_http
from tests.adapters.networks import Network, connect
from tests.support.asgi import AsgiTransport
from tests.support.service import START, RunningService, TestClock

pytestmark = pytest.mark.anyio

WAYS = ("in process", "over http")
Connection = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.fixture(params=WAYS)
async def connection(request: pytest.FixtureRequest, service: RunningService) -> Callable[..., Any]:
    """Makes connections of agents: around a client of the SDK, or through the endpoint."""
    app = app_of(service)

    async def connect(
        agent: str, tenant: str = "default", *, user: str | None = None, era: str = "auto"
    ) -> AbstractAsyncContextManager[Caller]:
        key = await service.key(agent, tenant)
        if request.param == "over http":
            headers = {"X-API-Key": key} | ({} if user is None else {"X-Subject": user})
            return over_http(app, headers, era=era)
        client = AsyncClient("http://m", key, transport=AsgiTransport(app))
        bound = client if user is None else client.for_user(user)
        return in_process(bound, service.clock, era=era)

    return connect


async def test_tools_say_what_they_do(connection: Callable[..., Any]) -> None:
    async with await connection("billing") as call:
        tools = (await call.client.list_tools()).tools
        instructions = call.client.instructions
    assert "recall" in instructions
    assert [one.name for one in tools] == [
        "remember", "recall", "correct", "forget", "get_context", "list_memories", "add_turn",
        "claim_key", "release_claim",
    ]  # fmt: skip
    for one in tools:
        assert one.title
        assert "Use " in one.description, one.name
        assert one.input_schema["type"] == one.output_schema["type"] == "object"
        for name, field in one.input_schema["properties"].items():
            assert field.get("description"), (one.name, name)
        hints = one.annotations
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
    reading = {one.name for one in tools if one.annotations.read_only_hint}
    assert reading == {"recall", "get_context", "list_memories"}
    destroying = {one.name for one in tools if one.annotations.destructive_hint}
    assert destroying == {"correct", "forget", "release_claim"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_memory_is_kept_corrected_and_forgotten(
    connection: Callable[..., Any], era: str
) -> None:
    async with await connection("billing", era=era) as call:
        made = await call("remember", text="Ana travels by train", tags=["travel"], person="ana")
        assert made["version"] == 1
        found = await call("recall", question="How does Ana travel?")
        assert found["answered"]
        assert [one["text"] for one in found["memories"]] == ["Ana travels by train"]
        assert found["memories"][0]["people"] == ["ana"]
        noise = await call("recall", question="Which violinist repairs clocks that Ana sold?")
        assert (noise["answered"], noise["memories"]) == (False, [])
        own = {"id": made["id"], "person": "ana", "reason": "she said so"}
        changed = await call("correct", text="Ana travels by boat", **own)
        assert (changed["id"], changed["version"]) == (made["id"], 2)
        listed = await call("list_memories", tags=["travel"])
        assert [one["text"] for one in listed["memories"]] == ["Ana travels by boat"]
        context = await call("get_context", question="How does Ana travel?", person="ana")
        assert "boat" in context["text"]
        assert "train" not in context["text"]
        await call("forget", id=made["id"])
        assert (await call("list_memories"))["total"] == 0
        assert (await call("recall", question="How does Ana travel?"))["memories"] == []
        assert "not found" in await call.refused("forget", id=made["id"])


async def test_a_conversation_is_continued(connection: Callable[..., Any]) -> None:
    async with await connection("billing") as call:
        first = await call("add_turn", role="user", text="I am in Rome", person="ana")
        own = {"session_id": first["session_id"], "person": "ana"}
        second = await call("add_turn", role="assistant", text="Enjoy it", **own)
        assert (second["session_id"], second["sequence"]) == (first["session_id"], 2)
        context = await call("get_context", question="Where am I?", **own)
        assert "I am in Rome" in context["text"]
        assert (await call("list_memories"))["memories"] == []


async def test_pages_are_followed(connection: Callable[..., Any]) -> None:
    async with await connection("billing") as call:
        for place in range(5):
            await call("remember", text=f"note {place}")
        texts, cursor = [], None
        while True:
            page = await call("list_memories", limit=2, cursor=cursor)
            texts += [one["text"] for one in page["memories"]]
            if (cursor := page["next_cursor"]) is None:
                break
        assert sorted(texts) == [f"note {place}" for place in range(5)]


async def test_a_claim_keeps_others_out(connection: Callable[..., Any]) -> None:
    async with await connection("billing") as call, await connection("support") as other:
        claim = await call("claim_key", key="deploy", purpose="a release")
        refusal = await other.refused("claim_key", key="deploy")
        assert "billing holds this key until" in refusal
        await call("release_claim", claim_id=claim["claim_id"])
        await other("claim_key", key="deploy")


async def test_strangers_see_nothing(connection: Callable[..., Any]) -> None:
    async with await connection("billing", user="ana") as call:
        made = await call("remember", text="Ana travels by train")
        turn = await call("add_turn", role="user", text="Ana is in Rome")
    for agent, tenant, user in (("billing", "other", None), ("billing", "default", "bob")):
        async with await connection(agent, tenant, user=user) as call:
            assert (await call("list_memories"))["memories"] == []
            assert (await call("recall", question="How does Ana travel?"))["memories"] == []
            assert "train" not in (await call("get_context", question="Ana?"))["text"]
            for tool, arguments in (
                ("forget", {"id": made["id"]}),
                ("correct", {"id": made["id"], "text": "mine", "reason": "r"}),
                ("add_turn", {"role": "user", "text": "x", "session_id": turn["session_id"]}),
                ("get_context", {"question": "Ana?", "session_id": turn["session_id"]}),
            ):
                refusal = await call.refused(tool, **arguments)
                assert "not found" in refusal or "no such session" in refusal, (tool, refusal)


async def test_a_bound_connection_stays_bound(connection: Callable[..., Any]) -> None:
    """The model does not choose another person than the one that the connection is for."""
    async with await connection("billing") as call:
        await call("remember", text="Ana travels by train", person="ana")
    async with await connection("billing", user="bob") as call:
        await call("remember", text="Bob walks", person="bob")
        for tool in ("list_memories", "recall", "get_context"):
            arguments = {} if tool == "list_memories" else {"question": "How does Ana travel?"}
            assert "another person" in await call.refused(tool, person="ana", **arguments)


async def test_forgetting_a_person_empties_it(
    connection: Callable[..., Any], service: RunningService
) -> None:
    admin = await service.agent("boss", permissions=list(Permission))
    async with await connection("billing") as call:
        await call("remember", text="Ana travels by train", person="ana")
        turn = await call("add_turn", role="user", text="Ana is in Rome", person="ana")
        await call("remember", text="Ships are blue")
        reply = await admin.post("/api/v1/subjects/ana/forget")
        assert reply.status_code == 200, reply.text
        listed = await call("list_memories")
        assert [one["text"] for one in listed["memories"]] == ["Ships are blue"]
        await call.refused("get_context", question="Ana?", session_id=turn["session_id"])
        assert (await call("recall", question="How does Ana travel?"))["memories"] == []


async def test_the_audit_names_who(connection: Callable[..., Any], service: RunningService) -> None:
    async with await connection("billing") as call:
        made = await call("remember", text="Ana travels by train", person="ana")
        own = {"id": made["id"], "person": "ana", "reason": "she said so"}
        await call("correct", text="Ana travels by boat", **own)
        await call("forget", id=made["id"])
    own = await service.agent("billing")
    reply = await own.get("/api/v1/agents/billing/events", params={"entry_id": made["id"]})
    events = reply.json()["events"]
    assert [one["type"] for one in events] == [
        "memory.created", "memory.updated", "memory.deleted",
    ]  # fmt: skip
    assert {one["actor"] for one in events} == {"billing"}


async def test_bad_input_is_a_result(connection: Callable[..., Any]) -> None:
    async with await connection("billing") as call:
        made = await call("remember", text="Ana travels by train")
        for tool, arguments, part in (
            ("remember", {}, "`arguments.text` is required"),
            ("remember", {"text": ""}, "`arguments.text` must be a text of at least 1"),
            ("remember", {"text": 7}, "`arguments.text` must be a text"),
            ("remember", {"text": "x", "colour": "secret-red"}, "colour"),
            ("recall", {"question": "x", "limit": 0}, "`arguments.limit` must be an integer"),
            ("correct", {"id": made["id"], "text": "x"}, "`arguments.reason`"),
            ("correct", {"id": made["id"], "reason": "r"}, "either `text` or `value`"),
            ("correct", {"id": "nothing", "text": "x", "reason": "r"}, "not found"),
        ):
            text = await call.refused(tool, **arguments)
            assert part in text, (tool, text)
            assert "secret-red" not in text
        assert (await call("list_memories"))["total"] == 1
        with pytest.raises(MCPError, match="no tool"):
            await call.client.call_tool("erase_everything", {})


class _Away(httpx.AsyncBaseTransport):
    """A server that cannot be reached."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)


async def test_the_tools_say_that_memory_is_away() -> None:
    clock = TestClock()
    async with (
        AsyncClient("http://m", "key", transport=_Away()) as memory,
        in_process(memory, clock) as call,
    ):
        first = await call.refused("recall", question="How does Ana travel?")
        assert "memory is unavailable since 2026-02-02T02:40:00.000Z" in first
        clock.advance(60)
        assert await call.refused("remember", text="Ana travels by train") == first
    assert clock.now() == START + 60_000


async def test_a_server_without_its_store_says_so(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can be authenticated then, and still it is the tool that answers."""
    key = await service.key("billing")
    async with over_http(app_of(service), {"X-API-Key": key}) as call:

        async def fail(*_: Any, **__: Any) -> Any:
            raise UnavailableError

        with monkeypatch.context() as patch:
            patch.setattr(service.services.store, "generation", fail)
            text = await call.refused("recall", question="How does Ana travel?")
            assert "memory is unavailable since 2026-02-02T02:40:00.000Z" in text
            service.clock.advance(60)
        assert (await call("recall", question="How does Ana travel?"))["memories"] == []
        with monkeypatch.context() as patch:
            patch.setattr(service.services.store, "generation", fail)
            assert "since 2026-02-02T02:41:00.000Z" in await call.refused("recall", question="Ana")


async def test_a_memory_that_waits_for_a_person_says_so(
    connection: Callable[..., Any], service: RunningService
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    async with await connection("billing") as call:
        kept = await call("remember", text="Ann prefers window seats on every flight.")
        await admin.put("/api/v1/tiers/episodic", json={"admission": "promoted"})
        waits = await call("remember", text="Ben prefers aisle seats on every flight.")
        old = {"id": kept["id"], "reason": "she said so"}
        changed = await call("correct", text="Ann prefers aisle seats.", **old)
        listed = await call("list_memories")
    assert (kept["waits"], kept["note"]) == (False, "")
    for one in (waits, changed):
        assert one["waits"]
        assert "waits for the decision of a person" in one["note"]
    assert [one["text"] for one in listed["memories"]] == [
        "Ann prefers window seats on every flight."
    ]


async def test_the_result_says_what_memory_thinks_of_a_text(
    connection: Callable[..., Any], service: RunningService
) -> None:
    admin = await service.agent("root", permissions=[*Permission])
    async with await connection("billing") as call:
        text = "Ann prefers window seats on every flight."
        made = await call("remember", text=text)
        again = await call("remember", text=text)
        junk = await call("remember", text="Hello, how are you?")
        assert (made["known"], made["worth_keeping"], made["note"]) == (False, True, "")
        assert (again["known"], again["id"]) == (True, made["id"])
        assert "says this already" in again["note"]
        assert (junk["known"], junk["worth_keeping"]) == (False, False)
        assert "not worth keeping" in junk["note"]
        assert (await call("list_memories"))["total"] == 2
        await admin.put("/api/v1/worthiness", json={"mode": "refuse"})
        refusal = await call.refused("remember", text="Good morning, how are you?")
        assert "not worth keeping" in refusal
        result = await call.client.call_tool("remember", {"text": text})
        # Hosts that know no structured results read the same.
        assert json.loads(result.content[0].text) == result.structured_content


async def test_texts_of_any_size_are_remembered(connection: Callable[..., Any]) -> None:
    text = "Ana travels by train. " + "é " * 60_000
    other = "Ana travels by boat. " + "ü " * 60_000
    async with await connection("billing") as call:
        made = await call("remember", text=text, tags=["travel"], person="ana")
        again = await call("remember", text=text, person="ana")
        assert (again["known"], again["id"]) == (True, made["id"])
        found = await call("recall", question="How does Ana travel?", person="ana")
        assert "by train" in found["memories"][0]["text"]
        (listed,) = (await call("list_memories", tags=["travel"]))["memories"]
        assert text.startswith(listed["text"])
        assert listed["size"] == len(text.encode())
        assert await _read(call, made["id"]) == text
        own = {"id": made["id"], "reason": "she said so", "person": "ana"}
        await call("correct", text=other, **own)
        assert await _read(call, made["id"]) == other
        await call("correct", text="Ana walks.", **own)
        assert await _read(call, made["id"]) == "Ana walks."
        await call("forget", id=made["id"])
        with pytest.raises(MCPError, match="not found"):
            await _read(call, made["id"])
        turn = await call("add_turn", role="user", text=text, person="ana")
        context = await call(
            "get_context", question="Train?", session_id=turn["session_id"], person="ana"
        )
        assert "by train" in context["text"]


async def _read(call: Caller, entry_id: str) -> str:
    """The text of the resource of a memory."""
    (contents,) = (await call.client.read_resource(f"memory://entries/{entry_id}")).contents
    return str(contents.text)


async def test_memories_are_resources(connection: Callable[..., Any]) -> None:
    async with await connection("billing", user="ana") as call:
        made = [await call("remember", text=f"Ana has lived in {one}.") for one in ("Rome", "Bonn")]
        await call("add_turn", role="user", text="I am in Rome")
        resources = (await call.client.list_resources()).resources
        assert {str(one.uri): (one.title, one.mime_type) for one in resources} == {
            f"memory://entries/{made[0]['id']}": ("Ana has lived in Rome.", "text/plain"),
            f"memory://entries/{made[1]['id']}": ("Ana has lived in Bonn.", "text/plain"),
        }
        (template,) = (await call.client.list_resource_templates()).resource_templates
        assert template.uri_template == "memory://entries/{id}"
        assert await _read(call, made[0]["id"]) == "Ana has lived in Rome."
        for uri in ("memory://entries/", "memory://other/x", f"memory://entries/{'x' * 30}"):
            with pytest.raises(MCPError) as absent:
                await call.client.read_resource(uri)
            assert absent.value.error.code == -32602
    for agent, tenant, user in (("billing", "other", None), ("billing", "default", "bob")):
        async with await connection(agent, tenant, user=user) as call:
            assert (await call.client.list_resources()).resources == []
            with pytest.raises(MCPError, match="not found"):
                await _read(call, made[0]["id"])


async def test_lost_replies_and_missing_rights_are_no_silence(service: RunningService) -> None:
    network = Network(service)
    network.loses_replies = True
    memory = connect(network, await service.key("billing"))
    async with in_process(memory, service.clock) as call:
        made = await call("remember", text="Ana travels by train")
        await call("correct", id=made["id"], text="Ana travels by boat", reason="she said so")
        large = await call("remember", text="x" * 90_000)
        turn = await call("add_turn", role="user", text="one")
        again = await call("add_turn", role="user", text="two", session_id=turn["session_id"])
        assert again["sequence"] == 2
        for one in (made, large):
            await call("forget", id=one["id"])
        assert (await call("list_memories"))["total"] == 0
        assert network.lost >= 10
        assert "JSON" in await call.refused("remember", text="\ud800")
        limit = service.services.settings.attachment_limit
        for tool, options in (("remember", {}), ("add_turn", {"role": "user"})):
            assert str(limit) in await call.refused(tool, text="x" * (limit + 1), **options)
        assert (await call("list_memories"))["total"] == 0
        network.is_away = True
        with pytest.raises(MCPError, match="memory is unavailable since"):
            await call.client.list_resources()
    reader = connect(Network(service), await service.key("eve", permissions=(Permission.READ,)))
    async with in_process(reader, service.clock) as call:
        for tool, arguments in (
            ("remember", {"text": "Ana travels by train"}),
            ("remember", {"text": "x" * 90_000}),
            ("add_turn", {"role": "user", "text": "one"}),
            ("claim_key", {"key": "deploy"}),
        ):
            assert "memory.write" in await call.refused(tool, **arguments), tool
