"""JSON-RPC 2.0 at /rpc: every operation that takes and answers JSON, by its name."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.records.principal import Permission
from memorywall.sdk.effects import Request
from memorywall.wire.operations import OPERATIONS, Operation
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

BY_NAME = {operation.name: operation for operation in OPERATIONS}
RESERVED = {"if_match", "idempotency_key", "fencing_token"}
DRAFT = {"namespace": "n", "key": "k", "value": {"n": 1}, "memory_type": "working"}
NOT_JSON = {
    "export_entries",
    "subscribe_intent",
    "upload_attachment",
    "download_attachment",
    "upload_entry_attachment",
    "download_entry_attachment",
    "metrics",
}
PATHS = {"memory_type": "working", "agent_id": "billing"}


async def send(client: httpx.AsyncClient, request: Any) -> Any:
    """What a request is answered, None for nothing."""
    reply = await client.post("/rpc", json=request)
    if reply.status_code == 204:
        assert reply.content == b""
        return None
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    return reply.json()


async def ask(client: httpx.AsyncClient, method: str, **params: Any) -> Any:
    """The response object of one call, with its envelope checked."""
    answer = await send(client, call(method, 7, **params))
    assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", 7)
    assert len(answer) == 1
    return answer


async def result(client: httpx.AsyncClient, method: str, **params: Any) -> Any:
    return (await ask(client, method, **params))["result"]


async def error(client: httpx.AsyncClient, method: str, **params: Any) -> Any:
    return (await ask(client, method, **params))["error"]


def call(method: str, request_id: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}


def path_of(operation: Operation) -> dict[str, str]:
    # The erasure of the caller would revoke the key that the test uses.
    paths = {} if operation.name == "forget_agent" else PATHS
    return {name: paths.get(name, "missing") for name in operation.path_parameters}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
async def test_operation_returns_the_same_result_as_over_http(
    service: RunningService, operation: Operation
) -> None:
    """With nothing but a path, which is enough for most of those that read; what the others lack is
    told in the same words."""
    client = await service.agent("billing", permissions=tuple(Permission))
    path = path_of(operation)
    if operation.name in NOT_JSON:
        assert not operation.is_json
        assert (await error(client, operation.name, **path))["code"] == -32601
        return
    target = Request(operation=operation.name, path=path).target
    body = {} if operation.body is not None else None
    reply = await client.request(operation.method, target, json=body)
    answer = await ask(client, operation.name, **path)
    if reply.status_code == 204:
        assert answer == {"result": None}
    elif operation.name in {"create_session", "create_context"}:
        # They need no field, so each request creates one with an id of its own.
        assert {**answer["result"], "id": reply.json()["id"]} == reply.json()
    elif reply.status_code < 300:
        assert answer == {"result": reply.json()}
    else:
        assert answer["error"]["data"] == reply.json()
        assert answer["error"]["message"] == reply.json()["title"]
        codes = {400: -32602, 422: -32602, 404: -32004, 409: -32009, 428: -32028}
        assert answer["error"]["code"] == codes[reply.status_code]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_parameters_go_by_names_that_are_not_taken_for_one_another(operation: Operation) -> None:
    path = set(operation.path_parameters)
    assert path == {name.removesuffix(":path") for name in re.findall(r"{(.+?)}", operation.path)}
    query = names_of(operation.query)
    body = names_of(operation.body) if operation.is_json else set()
    assert not (path | query | body) & RESERVED
    assert not path & query
    assert not query & body
    # An intent's id in the body of its access list is the one in the path.
    assert path & body <= ({"intent_id"} if operation.name == "set_access" else set())


def names_of(kind: Any) -> set[str]:
    if kind is None:
        return set()
    return {field.encode_name for field in msgspec.structs.fields(kind)}


async def test_entries_are_written_and_read(service: RunningService) -> None:
    client = await service.agent("billing")
    made = await result(client, "create_entry", **DRAFT)
    assert (made["version"], made["value"]) == (1, {"n": 1})
    assert await result(client, "get_entry", entry_id=made["id"]) == made
    over_http = (await client.get(f"/api/v1/memory/{made['id']}")).json()
    assert over_http == made
    changed = await result(
        client, "update_entry", entry_id=made["id"], if_match=1, value={"n": 2}, tags=["t"]
    )
    assert (changed["version"], changed["tags"]) == (2, ["t"])
    page = await result(
        client, "query_entries", agent_id="billing", memory_type="working", limit=5, tags="t"
    )
    assert page == {"entries": [changed], "total": 1, "limit": 5, "offset": 0}
    assert await result(client, "find_entry", namespace="n", key="k") == {"entry": changed}
    assert await result(client, "delete_entry", entry_id=made["id"], if_match="2") is None
    events = await result(client, "list_events", agent_id="billing", limit=10)
    assert [event["type"] for event in events["events"]] == [
        "memory.created",
        "memory.updated",
        "memory.deleted",
    ]


async def test_an_error_carries_its_problem_document(service: RunningService) -> None:
    client = await service.agent("billing")
    made = await result(client, "create_entry", **DRAFT)
    conflict = await error(client, "update_entry", entry_id=made["id"], if_match=9, value={})
    assert conflict["code"] == -32009
    assert conflict["data"]["error"] == "VERSION_MISMATCH"
    assert (conflict["data"]["current_version"], conflict["data"]["current"]) == (1, made)
    exists = await error(client, "create_entry", **DRAFT)
    assert exists["data"]["error"] == "ENTRY_EXISTS"
    missing = await error(client, "update_entry", entry_id=made["id"], value={})
    assert (missing["code"], missing["data"]["status"]) == (-32028, 428)
    unknown = await error(client, "create_entry", **{**DRAFT, "colour": "red"})
    assert (unknown["code"], "colour" in unknown["data"]["detail"]) == (-32602, True)
    unknown = await error(client, "query_entries", colour="red")
    assert (unknown["code"], "colour" in unknown["data"]["detail"]) == (-32602, True)
    for bad in ({}, {"entry_id": ""}, {"entry_id": 7}):
        assert (await error(client, "get_entry", **bad))["code"] == -32602
    for name in ("if_match", "fencing_token", "idempotency_key"):
        for value in (True, 1.5, [], {}):
            bad = {"entry_id": made["id"], name: value}
            assert (await error(client, "delete_entry", **bad))["data"]["status"] == 400


async def test_keys_are_those_of_http(service: RunningService) -> None:
    anonymous = service.client()
    assert (await result(anonymous, "health"))["status"]
    refused = await error(anonymous, "whoami")
    assert (refused["code"], refused["data"]["status"]) == (-32001, 401)
    wrong = service.client("mw_wrong.wrong")
    assert (await error(wrong, "whoami"))["code"] == -32001
    key = await service.key("billing")
    bearer = service.client()
    bearer.headers["Authorization"] = f"Bearer {key}"
    assert (await result(bearer, "whoami"))["agent_id"] == "billing"
    other = service.client(key, agent="other")
    assert (await error(other, "whoami"))["code"] == -32003
    reader = await service.agent("reader", permissions=(Permission.READ,))
    assert (await error(reader, "create_entry", **DRAFT))["code"] == -32003


async def test_one_agent_does_not_see_the_memory_of_another(service: RunningService) -> None:
    made = await result(await service.agent("billing"), "create_entry", **DRAFT)
    other = await service.agent("other")
    assert (await error(other, "get_entry", entry_id=made["id"]))["code"] == -32003
    foreign = await service.agent("billing", tenant="elsewhere")
    assert (await error(foreign, "get_entry", entry_id=made["id"]))["code"] == -32004


async def test_a_request_may_be_bound_to_a_person(service: RunningService) -> None:
    client = await service.agent("billing")
    client.headers["X-Subject"] = "ada"
    made = await result(client, "create_entry", **DRAFT)
    assert made["subjects"] == ["ada"]
    assert (await result(client, "find_entry", namespace="n", key="k"))["entry"] == made
    client.headers["X-Subject"] = "bob"
    assert (await result(client, "find_entry", namespace="n", key="k"))["entry"] is None
    assert (await error(client, "get_entry", entry_id=made["id"]))["code"] in (-32003, -32004)
    assert (await error(client, "list_intents"))["code"] == -32003


async def test_a_batch_is_run_in_order_and_each_call_for_itself(service: RunningService) -> None:
    client = await service.agent("billing")
    answers = await send(
        client,
        [
            call("create_entry", "a", **DRAFT),
            call("create_entry", "b", **DRAFT),
            {"jsonrpc": "2.0", "method": "create_entry", "params": {**DRAFT, "key": "silent"}},
            call("nothing", 3),
            17,
            call("query_entries", None, agent_id="billing", memory_type="working"),
        ],
    )
    assert [answer["id"] for answer in answers] == ["a", "b", 3, None, None]
    assert answers[0]["result"]["version"] == 1
    assert answers[1]["error"]["data"]["error"] == "ENTRY_EXISTS"
    assert answers[2]["error"]["code"] == -32601
    assert answers[3]["error"]["code"] == -32600
    assert answers[4]["result"]["total"] == 2


async def test_a_notification_is_run_and_not_answered(service: RunningService) -> None:
    client = await service.agent("billing")
    silent = {"jsonrpc": "2.0", "method": "create_entry", "params": DRAFT}
    assert await send(client, silent) is None
    # Neither are errors.
    assert await send(client, silent) is None
    assert await send(client, [silent, {"jsonrpc": "2.0", "method": "nothing"}]) is None
    assert (await result(client, "query_entries", agent_id="billing"))["total"] == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc": "2.0", "jsonrpc": "2.0", "method": "health", "id": 1}', -32700),
        (b"[" * 200 + b"]" * 200, -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b"null", -32600),
        (b'{"method": "health", "id": 1}', -32600),
        (b'{"jsonrpc": "1.0", "method": "health", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": 1, "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": "health", "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "method": "health", "id": true}', -32600),
        (b'{"jsonrpc": "2.0", "method": "health", "id": 1, "more": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": "health", "id": 1, "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "method": "health", "id": 1, "params": null}', -32602),
        (b'{"jsonrpc": "2.0", "method": "health", "id": 1, "params": {"x": 1}}', -32602),
    ],
)
async def test_what_is_no_request_is_told(service: RunningService, text: bytes, code: int) -> None:
    reply = await service.client().post("/rpc", content=text)
    assert (reply.status_code, reply.json()["jsonrpc"]) == (200, "2.0")
    assert reply.json()["error"]["code"] == code


async def test_too_large_input_is_refused(service: RunningService) -> None:
    client = await service.agent("billing")
    assert (await client.post("/rpc", content=b" " * (16 * 1024 * 1024 + 1))).status_code == 413
    answer = await send(client, [call("health", number) for number in range(101)])
    assert answer["error"]["code"] == -32600
    # What one operation takes over HTTP it takes here, and no more.
    large = await error(client, "create_intent", title="t", state={"x": "y" * 1024 * 1024})
    assert large["code"] == -32013
    assert (await client.get("/rpc")).status_code == 405
    assert (await client.post("/rpc?x=1", content=b"{}")).status_code == 400


async def test_an_idempotency_key_gives_the_first_result_again(service: RunningService) -> None:
    client = await service.agent("billing")
    first = await result(client, "create_entry", idempotency_key="once", **DRAFT)
    again = await result(client, "create_entry", idempotency_key="once", **DRAFT)
    assert again == first
    other = {**DRAFT, "key": "other"}
    refused = await error(client, "create_entry", idempotency_key="once", **other)
    assert refused["data"]["error"] == "IDEMPOTENCY_KEY_REUSED"
    # The same request over HTTP is the same request.
    text = json.dumps(DRAFT, separators=(",", ":"))
    reply = await client.post("/api/v1/memory", content=text, headers={"Idempotency-Key": "once"})
    assert (reply.status_code, reply.json()) == (201, first)


async def test_fencing_token_is_checked(service: RunningService) -> None:
    client, rival = await service.agent("billing"), await service.agent("rival")
    claim = await result(client, "acquire_claim", key="item", scope="global", ttl_seconds=60)
    shared = {**DRAFT, "namespace": "shared/global", "key": "item", "memory_type": "shared"}
    fenced = await error(rival, "create_entry", **shared)
    assert fenced["data"]["error"] == "FENCED"
    token = claim["fencing_token"]
    assert (await result(client, "create_entry", fencing_token=token, **shared))["version"] == 1
    held = await error(rival, "acquire_claim", key="item", scope="global", ttl_seconds=60)
    assert held["data"]["existing_lease"]["id"] == claim["id"]
    assert await result(client, "next_task", capabilities=[]) is None
