"""Bodies that cannot be taken: a clear problem each, nothing changed, nothing echoed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.records.principal import Permission
from memorywall.wire.operations import OPERATIONS
from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    make,
    raw_request,
)
from tests.http.test_json_rpc import error
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

DEEP = 100_000


@dataclass(frozen=True, slots=True)
class Target:
    """A place that takes a JSON body, with a good body for it."""

    method: str
    path: str
    good: dict[str, Any]
    headers: dict[str, str]


@asynccontextmanager
async def unchanged(
    service: RunningService,
) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, Target]]]:
    """A client and every place that takes a body; at the end nothing may have changed."""
    agent = await service.agent("ada", permissions=list(Permission))
    made = await make(agent, "old", tags=["kept"], value={"kept": True})
    await make(agent, "fact", memory_type="semantic", namespace="facts")
    version = {"If-Match": "1"}
    targets = {
        "create": Target("POST", MEMORY, draft(), {}),
        "update": Target("PATCH", f"{MEMORY}/{made['id']}", {"value": {}, "tags": []}, version),
        "batch": Target("POST", BATCH, {"entries": [draft()]}, {}),
        "search": Target("POST", f"{MEMORY}/search", {"query": "kept"}, {}),
        "namespace": Target(
            "PATCH", f"{NAMESPACES}/facts", {"permissions": {"default": "none"}}, {}
        ),
    }
    before = await everything(service)
    yield agent, targets
    assert await everything(service) == before


async def _send(client: httpx.AsyncClient, target: Target, content: bytes) -> httpx.Response:
    return await client.request(target.method, target.path, content=content, headers=target.headers)


def _text(body: Any) -> bytes:
    return json.dumps(body).encode()


def _with(body: dict[str, Any], extra: bytes) -> bytes:
    """The body's text with one more member."""
    return _text(body)[:-1] + b", " + extra + b"}"


UNREADABLE = {
    "empty": b"",
    "spaces": b"  \n ",
    "word": b"hello",
    "single-quotes": b"{'value': {}}",
    "trailing-comma": b'{"value": {},}',
    "comment": b'{"value": {} /* here */}',
    "two-documents": b"{}{}",
    "trailing-text": b'{"value": {}} x',
    "form": b"value=1&namespace=n",
    "nul": b"\x00",
    "nul-after": b'{"value": {}}\x00',
    "bom": b"\xef\xbb\xbf{}",
    "utf-16": '{"value": {}}'.encode("utf-16"),
    "utf-16-le": '{"value": {}}'.encode("utf-16-le"),
    "invalid-utf-8": b'{"value": {"text": "\xff\xfe"}}',
    "invalid-utf-8-key": b'{"value": {"\xc3": 1}}',
    "overlong-utf-8": b'{"value": {"text": "\xc0\xaf"}}',
    "raw-surrogate": b'{"value": {"text": "\xed\xa0\x80"}}',
    "escaped-high-surrogate": rb'{"value": {"text": "\ud800"}}',
    "escaped-low-surrogate": rb'{"value": {"text": "\udc00 x"}}',
    "escaped-surrogate-key": rb'{"value": {"\udbff": 1}}',
    "swapped-surrogates": rb'{"value": {"text": "\udc00\ud800"}}',
    "control-in-string": b'{"value": {"text": "a\nb"}}',
    "bad-escape": rb'{"value": {"text": "\x41"}}',
    "nan": b'{"value": {"n": NaN}}',
    "infinity": b'{"value": {"n": Infinity}}',
    "minus-infinity": b'{"value": {"n": -Infinity}}',
    "too-large-a-number": b'{"value": {"n": 1e400}}',
    "too-small-a-number": b'{"value": {"n": -1e400}}',
    "huge-integer": b'{"value": {"n": ' + b"9" * 5_000 + b"}}",
    "leading-zero": b'{"value": {"n": 01}}',
    "hexadecimal": b'{"value": {"n": 0x10}}',
    "plus-sign": b'{"value": {"n": +1}}',
    "bare-point": b'{"value": {"n": 1.}}',
    "deep-arrays": b"[" * DEEP,
    "deep-closed-arrays": b"[" * DEEP + b"]" * DEEP,
    "deep-objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep-value": b'{"value": {"a": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deep-value-objects": b'{"value": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "a-little-deep": b'{"value": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}",
    "repeated-key": b'{"value": {}, "value": {"n": 1}}',
    "repeated-key-compact": b'{"value":{},"value":{"n":1}}',
    "repeated-key-in-value": b'{"value": {"a": 1, "b": 2, "a": 1}}',
    "repeated-key-in-value-compact": b'{"value":{"a":1,"b":2,"a":1}}',
    "repeated-key-in-array": b'{"value":{"list":[{"a":1},{"a":1,"a":1}]}}',
    "repeated-key-by-escape": rb'{"value": {"a": 1, "\u0061": 2}}',
    "repeated-empty-key": b'{"value":{"":1,"":1}}',
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_lenient_json_is_refused(service: RunningService, name: str) -> None:
    async with unchanged(service) as (client, targets):
        for where, target in targets.items():
            response = await _send(client, target, UNREADABLE[name])
            assert response.status_code == 400, (where, response.text[:500])
            assert_problem(response, 400, "VALIDATION_ERROR")
            assert len(response.content) < 2_000


@pytest.mark.parametrize("where", ["create", "update", "batch", "namespace"])
async def test_a_body_cut_short_anywhere_is_refused(service: RunningService, where: str) -> None:
    async with unchanged(service) as (client, targets):
        content = _text(targets[where].good)
        for length in range(0, len(content), 3):
            response = await _send(client, targets[where], content[:length])
            assert_problem(response, 400, "VALIDATION_ERROR")


@pytest.mark.parametrize("content", ["null", "true", "1", '"text"', "[]", "[{}]", '["value"]'])
async def test_body_that_is_not_an_object_is_refused(service: RunningService, content: str) -> None:
    async with unchanged(service) as (client, targets):
        for where, target in targets.items():
            response = await _send(client, target, content.encode())
            assert response.status_code == 422, (where, response.text[:500])
            assert_problem(response, 422, "VALIDATION_ERROR")


@pytest.mark.parametrize("where", ["create", "update", "batch", "namespace"])
async def test_a_repeated_key_is_refused_beside_a_good_body(
    service: RunningService, where: str
) -> None:
    async with unchanged(service) as (client, targets):
        good = targets[where].good
        name = next(iter(good))
        again = json.dumps({name: good[name]})[1:-1].encode()
        for content in (_with(good, again), _with(good, again).replace(b" ", b"")):
            response = await _send(client, targets[where], content)
            assert_problem(response, 400, "VALIDATION_ERROR")


WRONG_TYPES: dict[str, list[Any]] = {
    "namespace": [None, 1, True, [MARKER], {}],
    "key": [None, 1.5, False, [MARKER], {}],
    "value": [None, MARKER, [], [MARKER], 1, True],
    "memory_type": [None, 1, MARKER, "", "Working", "archival", ["working"]],
    "agent_id": [1, ["ada"], {}],
    "scope": [MARKER, [], 1, {"task_id": 1}, {"task_id": [MARKER]}, {"session_id": {}}],
    "tags": [MARKER, {}, 1, [1], [None], [[MARKER]], ["ok", {}]],
    "ttl": [1, [], {}, True],
    "expires_at": [1, [], {}, True],
    "pinned": [None, "true", 1, [], MARKER],
    "priority": [None, 1, MARKER, "", "HIGH", "urgent"],
    "sensitivity": [None, 1, MARKER, "", "secret", "Public"],
}


@pytest.mark.parametrize(
    ("field", "wrong"),
    [(field, wrong) for field, list_of_wrong in WRONG_TYPES.items() for wrong in list_of_wrong],
    ids=lambda part: json.dumps(part) if not isinstance(part, str) else part[:12] or "empty",
)
async def test_a_field_of_the_wrong_type_is_refused_by_name(
    service: RunningService, field: str, wrong: Any
) -> None:
    async with unchanged(service) as (client, targets):
        bodies = {
            "create": {**targets["create"].good, field: wrong},
            "batch": {"entries": [{**draft(), field: wrong}]},
        }
        if field not in ("namespace", "key", "memory_type", "agent_id"):
            bodies["update"] = {field: wrong}
        for where, body in bodies.items():
            response = await _send(client, targets[where], _text(body))
            document = assert_problem(response, 422, "VALIDATION_ERROR")
            assert field in document["detail"], document
            assert MARKER not in response.text


def _is_list(kind: Any) -> bool:
    """Whether a type of a field is a list and no text."""
    kind = kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind
    if isinstance(kind, msgspec.inspect.UnionType):
        is_text = any(isinstance(one, msgspec.inspect.StrType) for one in kind.types)
        return not is_text and any(map(_is_list, kind.types))
    return isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.VarTupleType)


LISTS = [
    (operation, field.encode_name)
    for operation in OPERATIONS
    if isinstance(shape := msgspec.inspect.type_info(operation.body), msgspec.inspect.StructType)
    for field in shape.fields
    if _is_list(field.type)
]


@pytest.mark.parametrize("surface", ["http", "json-rpc"])
async def test_a_text_for_a_list_is_refused_by_name(service: RunningService, surface: str) -> None:
    """It is never taken letter by letter."""
    named = {(operation.name, field) for operation, field in LISTS}
    assert {("create_entry", "subjects"), ("next_task", "capabilities")} < named
    client = await service.agent("ada", permissions=list(Permission))
    before = await everything(service)
    for operation, field in LISTS:
        ids = dict.fromkeys(operation.path_parameters, "x")
        needs_version = operation.if_match == "required"
        if surface == "http":
            path = operation.path.replace(":path", "").format(**ids)
            headers = {"If-Match": "1"} if needs_version else {}
            refused = await client.request(
                operation.method, path, json={field: "ann"}, headers=headers
            )
            detail = assert_problem(refused, 422, "VALIDATION_ERROR")["detail"]
        else:
            version = {"if_match": 1} if needs_version else {}
            problem = await error(client, operation.name, **ids, **version, **{field: "ann"})
            assert problem["code"] == -32602, (operation.name, field)
            detail = problem["data"]["detail"]
        assert f"`{field}`" in detail, (operation.name, field)
    assert await everything(service) == before


@pytest.mark.parametrize("field", ["namespace", "key", "value", "memory_type"])
async def test_a_missing_field_is_named(service: RunningService, field: str) -> None:
    async with unchanged(service) as (client, targets):
        body = draft()
        del body[field]
        for where, content in (("create", body), ("batch", {"entries": [body]})):
            if (field, where) == ("key", "create"):
                # The server makes the key of a single entry.
                continue
            response = await _send(client, targets[where], _text(content))
            assert field in assert_problem(response, 422, "VALIDATION_ERROR")["detail"]


async def test_unknown_fields_are_all_named(service: RunningService) -> None:
    async with unchanged(service) as (client, targets):
        unknown = {"colour": MARKER, "valeu": {"text": MARKER}, "If-Match": 1}
        elements = {"entries": [{**draft(), **unknown}]}
        nested = {"scope": {"task_id": "t", **unknown}}
        for where, body in (
            ("create", {**draft(), **unknown}),
            ("update", {"value": {}, **unknown}),
            ("batch", {"entries": [draft()], **unknown}),
            ("namespace", {"permissions": {"default": "none"}, **unknown}),
            ("batch", elements),
            ("create", {**draft(), **nested}),
            ("update", nested),
            ("namespace", {"permissions": {"default": "none", **unknown}}),
        ):
            response = await _send(client, targets[where], _text(body))
            document = assert_problem(response, 422, "VALIDATION_ERROR")
            assert MARKER not in response.text
            for name in unknown:
                assert name in document["detail"], (where, body)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**40], ids=str)
async def test_a_large_integer_is_kept_exactly_or_refused(
    service: RunningService, number: int
) -> None:
    agent = await service.agent("ada")
    response = await agent.post(MEMORY, json=draft(value={"n": number}))
    if response.status_code == 201:
        stored = await agent.get(response.headers["location"])
        assert stored.json()["value"] == {"n": number}
    else:
        assert response.status_code in (400, 422)
        assert_problem(response, response.status_code, "VALIDATION_ERROR")
        assert (await everything(service)).entries == ()


@pytest.mark.parametrize("version", [-1, 0, 10**30, 1.5, "1", None, True], ids=repr)
async def test_invalid_version_changes_nothing(service: RunningService, version: Any) -> None:
    async with unchanged(service) as (client, targets):
        entry_id = targets["update"].path.rpartition("/")[2]
        element = {"id": entry_id, "version": version, "value": {}}
        response = await _send(client, targets["batch"], _text({"entries": [element]}))
        assert response.status_code in (409, 422), response.text
        assert_problem(response, response.status_code)


async def test_too_many_tags_are_refused(service: RunningService) -> None:
    async with unchanged(service) as (client, targets):
        tags = [f"{MARKER}-{number}" for number in range(10_000)]
        for where, body in (
            ("create", draft(tags=tags)),
            ("update", {"tags": tags}),
            ("batch", {"entries": [draft(tags=tags)]}),
        ):
            response = await _send(client, targets[where], _text(body))
            assert "tags" in assert_problem(response, 422, "VALIDATION_ERROR")["detail"]
            assert MARKER not in response.text


async def test_ten_thousand_equal_tags_are_one(service: RunningService) -> None:
    agent = await service.agent("ada")
    assert (await make(agent, tags=["x"] * 10_000))["tags"] == ["x"]


@pytest.mark.parametrize("where", ["create", "update", "namespace", "batch"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in-pieces"])
async def test_a_body_over_the_limit_is_refused(
    service: RunningService, where: str, announced: bool
) -> None:
    async with unchanged(service) as (client, targets):
        target = targets[where]
        limit = 16 * 1024 * 1024 if where == "batch" else 1024 * 1024
        piece = MARKER.encode() * 2_000
        pieces = [piece] * (limit // len(piece) + 2)
        headers = [(b"x-api-key", client.headers["x-api-key"].encode())]
        headers += [(name.lower().encode(), text.encode()) for name, text in target.headers.items()]
        if announced:
            headers.append((b"content-length", str(sum(map(len, pieces))).encode()))
        response = await raw_request(
            service, target.method, target.path, headers=headers, pieces=pieces
        )
        assert_problem(response, 413, "VALUE_TOO_LARGE")
        assert MARKER not in response.text


async def test_a_value_is_opaque(service: RunningService) -> None:
    """What looks odd but is JSON is kept as it is."""
    agent = await service.agent("ada")
    value = {
        "nul": "\x00", "bidi": "\u202e", "zero": "\u200b", "pair": "\U0001f9e0", "": "",
        "deep": json.loads("[" * 60 + "]" * 60), "numbers": [0, -1, 2**53, 1e-300, 0.1, 1e300],
        "words": [None, True, False], "__proto__": {"constructor": {}}, "$ref": "#/", "id": "x",
    }  # fmt: skip
    made = await make(agent, value=value)
    assert (await agent.get(f"{MEMORY}/{made['id']}")).json()["value"] == value
