"""Names that could be taken for others: control, invisible and bidirectional characters."""

from __future__ import annotations

import unicodedata
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import (
    BATCH,
    MARKER,
    MEMORY,
    NAMESPACES,
    assert_problem,
    everything,
    make,
)
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

BAD = {
    "empty": "",
    "space": " ",
    "leading-space": " name",
    "trailing-space": "name ",
    "nul": "na\x00me",
    "newline": "na\nme",
    "return": "name\r",
    "tab": "na\tme",
    "escape": "na\x1bme",
    "delete": "na\x7fme",
    "c1-control": "na\x85me",
    "no-break-space": "na\xa0me",
    "soft-hyphen": "na\xadme",
    "zero-width-space": "na\u200bme",
    "zero-width-joiner": "na\u200dme",
    "left-to-right-mark": "name\u200e",
    "line-separator": "na\u2028me",
    "right-to-left-override": "na\u202eme",
    "isolate": "na\u2066me\u2069",
    "word-joiner": "na\u2060me",
    "bom": "\ufeffname",
    "interlinear": "na\ufff9me",
    "tag-character": "na\U000e0041me",
    "variation-selector": "na\ufe0fme",
    "unassigned": "na\uffffme",
    "too-long": MARKER * 100,
}


def _create(**fields: Any) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    return "POST", MEMORY, draft(**fields), {}


def _update(name: str, **fields: Any) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    return "PATCH", name, fields, {"If-Match": "1"}


def _requests(path: str, bad: str) -> dict[str, tuple[str, str, dict[str, Any], dict[str, str]]]:
    """Everywhere in a body or a path where a name can be given."""
    grant = {"allow": [{"agent": bad, "access": "read"}]}
    return {
        "namespace": _create(namespace=bad),
        "semantic-namespace": _create(namespace=bad, memory_type="semantic"),
        "key": _create(key=bad),
        "tag": _create(tags=["fine", bad]),
        "changed-tag": _update(path, tags=[bad]),
        "task": _create(scope={"task_id": bad}),
        "intent": _create(scope={"intent_id": bad}),
        "session": _create(scope={"session_id": bad}),
        "changed-task": _update(path, scope={"task_id": bad}),
        "batch-key": ("POST", BATCH, {"entries": [draft(), draft(bad)]}, {}),
        "grant": ("PATCH", f"{NAMESPACES}/facts", {"permissions": grant}, {}),
    }


@pytest.mark.parametrize("name", BAD)
async def test_a_misleading_name_is_refused_everywhere(service: RunningService, name: str) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    made = await make(agent, "old")
    await make(agent, "fact", memory_type="semantic", namespace="facts")
    before = await everything(service)
    requests = _requests(f"{MEMORY}/{made['id']}", BAD[name])
    for where, (method, path, body, headers) in requests.items():
        response = await agent.request(method, path, json=body, headers=headers)
        assert response.status_code == 422, (where, response.text[:500])
        document = assert_problem(response, 422, "VALIDATION_ERROR")
        assert BAD[name].strip() == "" or BAD[name] not in document["detail"], where
        assert MARKER not in response.text, where
    assert await everything(service) == before


@pytest.mark.parametrize("name", [name for name in BAD if BAD[name]])
async def test_a_misleading_namespace_in_a_path_is_refused(
    service: RunningService, name: str
) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    path = f"{NAMESPACES}/{quote(BAD[name], safe='')}"
    before = await everything(service)
    response = await agent.patch(path, json={"permissions": {"default": "read"}})
    assert_problem(response, 422, "VALIDATION_ERROR")
    assert_problem(await agent.get(path), 404)
    assert MARKER not in response.text
    assert await everything(service) == before


# What no HTTP client or server lets into a header at all is left out.
IN_HEADERS = [name for name in BAD if name not in ("empty", "space", "nul", "newline", "return")]


@pytest.mark.parametrize("name", IN_HEADERS)
async def test_a_misleading_agent_in_a_header_is_refused(
    service: RunningService, name: str
) -> None:
    runner = service.client(await service.key("runner", permissions=list(Permission)))
    before = await everything(service)
    headers = [(b"X-Agent-ID", BAD[name].encode())]
    response = await runner.post(MEMORY, json=draft(), headers=headers)
    assert response.status_code in (403, 422), response.text
    assert_problem(response, response.status_code)
    assert MARKER not in response.text
    assert await everything(service) == before


@pytest.mark.parametrize("name", IN_HEADERS)
@pytest.mark.parametrize("path", [MEMORY, BATCH], ids=["create", "batch"])
async def test_a_misleading_idempotency_key_is_refused(
    service: RunningService, name: str, path: str
) -> None:
    agent = await service.agent("ada")
    before = await everything(service)
    body = draft() if path == MEMORY else {"entries": [draft()]}
    headers = [(b"Idempotency-Key", BAD[name].encode())]
    response = await agent.post(path, json=body, headers=headers)
    assert_problem(response, 422, "VALIDATION_ERROR")
    assert MARKER not in response.text
    assert await everything(service) == before


@pytest.mark.parametrize(
    "header", ["X-API-Key", "X-Agent-ID", "Idempotency-Key", "If-Match", "Authorization"]
)
async def test_a_header_that_is_not_utf_8_is_refused(service: RunningService, header: str) -> None:
    agent = await service.agent("ada", permissions=list(Permission))
    made = await make(agent)
    before = await everything(service)
    headers: list[tuple[bytes, bytes]] = [
        (name, text)
        for name, text in agent.headers.raw
        if header not in ("X-API-Key", "Authorization") or name.lower() != b"x-api-key"
    ]
    headers.append((header.encode(), b"\xff\xfe" + MARKER.encode()))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(service.app), base_url="http://memorywall.test"
    ) as bare:
        if header == "If-Match":
            path = f"{MEMORY}/{made['id']}"
            response = await bare.patch(path, json={"tags": []}, headers=headers)
        else:
            response = await bare.post(MEMORY, json=draft("new"), headers=headers)
    assert response.status_code in (400, 401, 403, 422, 428), response.text
    assert_problem(response, response.status_code)
    assert MARKER not in response.text
    assert await everything(service) == before


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("namespace", "a*b"),
        ("namespace", "a*"),
        ("tags", "a,b"),
        ("tags", ","),
    ],
    ids=["star-in-namespace", "star-at-end", "comma-in-tag", "comma"],
)
async def test_a_name_that_no_query_could_ask_for_is_refused(
    service: RunningService, field: str, name: str
) -> None:
    agent = await service.agent("ada")
    bad: dict[str, Any] = {field: [name] if field == "tags" else name}
    response = await agent.post(MEMORY, json=draft(**bad))
    assert field in assert_problem(response, 422, "VALIDATION_ERROR")["detail"]
    assert (await everything(service)).entries == ()


@pytest.mark.parametrize(
    "name",
    ["a", "Å", "日本語", "a b", "\U0001f9e0", "é", "e\u0301", "a'b", 'a"b', "a\\b", "%00", "--"],
)
async def test_any_printable_name_is_kept_in_nfc(service: RunningService, name: str) -> None:
    agent = await service.agent("ada")
    made = await make(agent, name, namespace=name, tags=[name], scope={"task_id": name})
    stored = unicodedata.normalize("NFC", name)
    assert (made["key"], made["namespace"], made["tags"]) == (stored, stored, [stored])
    query = {"namespace": name, "key": name, "tags": name, "scope.task_id": name}
    found = (await agent.get(MEMORY, params=query)).json()["entries"]
    assert found == [made]


async def test_names_compare_by_code_point(service: RunningService) -> None:
    agent = await service.agent("ada")
    for name in ("é", "É", "e"):
        await make(agent, name)
    # Another form of the same characters is the same name.
    assert_problem(await agent.post(MEMORY, json=draft("e\u0301")), 409)
    assert len((await everything(service)).entries) == 3
