"""PATCH with a merge patch (RFC 7396) changes parts of a value."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import memorywall
from memorywall.exceptions import MemoryConflictError
from memorywall.records.draft import merge_patch
from memorywall.records.principal import Permission
from tests.http.checks import MEMORY, assert_problem, everything, make
from tests.http.test_governed_kinds import FREE, VERDICT, register_kind
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio

MERGE = "application/merge-patch+json"


async def merge(
    client: httpx.AsyncClient,
    entry: dict[str, Any],
    patch: Any,
    *,
    version: int = 1,
    media: str = MERGE,
) -> httpx.Response:
    return await client.patch(
        f"{MEMORY}/{entry['id']}",
        content=json.dumps(patch),
        headers={"Content-Type": media, "If-Match": str(version)},
    )


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_examples_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    before = json.dumps(target)
    assert merge_patch(target, patch) == result
    assert json.dumps(target) == before


@pytest.mark.parametrize("media", [MERGE, f"{MERGE}; charset=utf-8", MERGE.upper()])
async def test_value_is_merged_at_every_depth(service: RunningService, media: str) -> None:
    ada = await service.agent("ada")
    value = {"state": {"done": 1, "left": 2}, "by": "ada", "list": [1, 2]}
    made = await make(ada, value=value, tags=["a"], sensitivity="restricted")
    patch = {"value": {"state": {"done": 2, "left": None}, "list": [3]}}
    changed = await merge(ada, made, patch, media=media)
    assert changed.status_code == 200, changed.text
    shown = changed.json()
    assert shown["value"] == {"state": {"done": 2}, "by": "ada", "list": [3]}
    assert (shown["version"], shown["tags"], shown["sensitivity"]) == (2, ["a"], "restricted")
    assert (await ada.get(f"{MEMORY}/{made['id']}")).json() == shown


async def test_other_media_types_replace_the_value(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await make(ada, value={"a": 1, "b": 2})
    for version, media in ((1, "application/json"), (2, "text/plain")):
        changed = await merge(ada, made, {"value": {"a": None}}, version=version, media=media)
        assert changed.json()["value"] == {"a": None}


async def test_null_removes_the_fields_that_may_be_absent(service: RunningService) -> None:
    ada = await service.agent("ada")
    with register_kind(FREE):
        made = await make(
            ada,
            memory_type="episodic",
            tags=["a"],
            ttl="duration:PT1H",
            subjects=["ann"],
            scope={"session_id": "s1"},
            **VERDICT,
        )
        names = ("tags", "subjects", "ttl", "kind")
        removed = (await merge(ada, made, dict.fromkeys(names))).json()
        assert [removed.get(name) or None for name in (*names, "expires_at")] == [None] * 5
        assert removed["value"] == VERDICT["value"]
        assert removed["scope"] == {"session_id": "s1"}
    moved = (await merge(ada, made, {"scope": {"session_id": None}}, version=2)).json()
    assert moved["scope"] == {}


@pytest.mark.parametrize(
    "patch",
    [
        {},
        [],
        {"value": None},
        {"value": [1]},
        {"pinned": None},
        {"sensitivity": None},
        {"scope": {"team": "x"}},
        {"key": "other"},
        {"value": {"text": "x" * 70_000}},
    ],
)
async def test_patch_of_another_form_is_refused(service: RunningService, patch: Any) -> None:
    ada = await service.agent("ada")
    made = await make(ada)
    before = await everything(service)
    assert_problem(await merge(ada, made, patch), 413 if "text" in str(patch) else 422)
    assert await everything(service) == before


async def test_value_that_grows_beyond_the_limit_is_refused(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await make(ada, value={"a": "x" * 40_000})
    assert_problem(await merge(ada, made, {"value": {"b": "x" * 40_000}}), 413)


async def test_merge_needs_the_current_version(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await make(ada)
    problem = assert_problem(await merge(ada, made, {"value": {"n": 1}}, version=2), 409)
    assert problem["current"] == made
    path = f"{MEMORY}/{made['id']}"
    reply = await ada.patch(path, content=b"{}", headers={"Content-Type": MERGE})
    assert_problem(reply, 428)


async def test_merge_of_a_value_needs_read_access(service: RunningService) -> None:
    ada = await service.agent("ada")
    made = await make(ada, value={"secret": 1})
    writer = await service.agent("ada", permissions=[Permission.WRITE])
    refused = await merge(writer, made, {"value": {"n": 2}})
    assert "secret" not in json.dumps(assert_problem(refused, 403))
    assert_problem(await merge(writer, made, {"scope": {"session_id": "s"}}), 403)
    changed = await merge(writer, made, {"tags": ["a"]})
    assert (changed.status_code, "value" in changed.json()) == (200, False)
    other = await service.agent("ben")
    assert_problem(await merge(other, made, {"value": {"n": 2}}, version=2), 403)


def test_merge_patch_over_the_sdk(place: Any) -> None:
    with memorywall.open(place, agent="ada") as client:
        made = client.call("create_entry", **draft(value={"a": 1, "b": 2}))
        call = {"entry_id": made["id"], "media_type": MERGE}
        changed = client.call("update_entry", if_match=1, value={"a": None}, **call)
        assert changed["value"] == {"b": 2}
        with pytest.raises(MemoryConflictError):
            client.call("update_entry", if_match=1, value={"b": 3}, **call)
