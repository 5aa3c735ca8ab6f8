"""Governed kinds: only their own operations write their entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import msgspec
import pytest

from memorywall.kinds.registry import register_kind
from memorywall.kinds.spec import KindSpec
from tests.http.checks import BATCH, MEMORY, assert_problem, make
from tests.support.service import RunningService, draft

pytestmark = pytest.mark.anyio


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A made-up kind."""

    text: str


FREE = KindSpec(name="verdict", schema=Verdict, description="A verdict.")
GOVERNED = replace(FREE, operations=("pronounce_verdict", "revise_verdict"))
VERDICT: dict[str, Any] = {"kind": "verdict", "value": {"text": "guilty"}}


def _assert_refused(response: httpx.Response) -> None:
    detail = assert_problem(response, 422, "VALIDATION_ERROR")["detail"]
    assert "`pronounce_verdict` or `revise_verdict`" in detail
    assert "guilty" not in detail


async def test_an_entry_of_a_governed_kind_is_not_created_from_outside(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    with register_kind(GOVERNED):
        _assert_refused(await ana.post(MEMORY, json=draft("one", **VERDICT)))
        batch = {"entries": [draft("free"), draft("two", **VERDICT)]}
        refused = await ana.post(BATCH, json=batch)
        _assert_refused(refused)
        assert refused.json()["index"] == 1
        body = {"jsonrpc": "2.0", "id": 1, "method": "create_entry", "params": draft(**VERDICT)}
        answer = (await ana.post("/rpc", json=body)).json()
        assert answer["error"]["data"]["status"] == 422
        assert (await ana.get(MEMORY)).json()["total"] == 0


async def test_an_entry_of_a_governed_kind_is_not_changed_from_outside(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    with register_kind(FREE):
        made = await make(ana, "one", **VERDICT)
    path, at_first = f"{MEMORY}/{made['id']}", {"If-Match": "1"}
    with register_kind(GOVERNED):
        for change in ({"value": {"text": "not guilty"}}, {"tags": ["x"]}, {"kind": None}):
            _assert_refused(await ana.patch(path, json=change, headers=at_first))
        element = {"id": made["id"], "version": 1, "tags": ["x"]}
        _assert_refused(await ana.post(BATCH, json={"entries": [element]}))
        assert (await ana.get(path)).json() == made
        kind = (await ana.get("/api/v1/schemas")).json()
    assert "pronounce_verdict" in str(kind)


async def test_an_entry_does_not_become_one_of_a_governed_kind_from_outside(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    made = await make(ana, "one")
    path = f"{MEMORY}/{made['id']}"
    with register_kind(GOVERNED):
        _assert_refused(await ana.patch(path, json=VERDICT, headers={"If-Match": "1"}))
        assert (await ana.get(path)).json() == made


async def test_an_entry_of_a_governed_kind_takes_no_file_from_outside(
    service: RunningService,
) -> None:
    ana = await service.agent("ana")
    with register_kind(FREE):
        files = f"{MEMORY}/{(await make(ana, 'one', **VERDICT))['id']}/attachments"
        earlier = (await ana.post(files, json={"filename": "a"})).json()
    with register_kind(GOVERNED):
        _assert_refused(await ana.post(files, json={"filename": "b"}))
        _assert_refused(await ana.put(f"{files}/{earlier['id']}/content", content=b"content"))
        assert (await ana.get(files)).json() == {"attachments": [earlier]}
