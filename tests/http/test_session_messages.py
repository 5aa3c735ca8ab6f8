"""What refused requests about sessions say: the field, what it must be, and what to do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.http.checks import MARKER, assert_problem
from tests.http.test_session_binding import inside
from tests.http.test_sessions import SESSIONS, begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def refused(
    client: httpx.AsyncClient, status: int, path: str, body: Any, method: str = "POST"
) -> str:
    response = await client.request(method, SESSIONS + path, json=body)
    assert MARKER not in response.text
    return str(assert_problem(response, status)["detail"])


async def test_values_of_enumerations_are_listed(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    turns = f"/{talk.id}/turns"
    turn = {"role": "user", "content": "x"}
    for path, body, detail in (
        (
            turns,
            {"turns": [turn, {**turn, "role": MARKER}]},
            "`turns[1].role` must be `assistant`, `developer`, `system`, `tool` or `user`",
        ),
        (
            "",
            {"policy": {"personal_data": MARKER}},
            "`policy.personal_data` must be `keep`, `mark` or `mask`",
        ),
        (turns, turn, "unknown fields: `role`, `content`; `turns` is required: a list of"),
        (f"/{talk.id}/checkpoints", {"trigger": MARKER}, "`trigger` must be `error_recovery`, "),
    ):
        assert (await refused(ada, 422, path, body)).startswith(detail)
    listed = await refused(ada, 400, f"?status={MARKER}", None, "GET")
    assert listed.startswith("`status` must be `active`, ")


async def test_an_absent_body(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    assert "send `{}`" in await refused(ada, 400, f"/{talk.id}/checkpoints", None)
    assert "send an object with `turns`" in await refused(ada, 400, f"/{talk.id}/turns", None)


DURATIONS = {
    "30x": "a duration such as `30m`",
    "PT5": "a duration such as `30m`",
    "PT0S": "longer than zero",
    "P1M": "not have years or months",
    "P1Y2DT3H": "not have years or months",
    "P9999999999D": "at most 999999999 days",
}


async def test_a_wrong_duration(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    for wrong, told in DURATIONS.items():
        turn = {"role": "user", "content": "x", "valid_for": wrong}
        for field, path, body in (
            ("ttl", "", {"ttl": wrong}),
            ("idle_timeout", "", {"idle_timeout": wrong}),
            ("policy.retention", "", {"policy": {"retention": wrong}}),
            ("ttl", f"/{talk.id}/token", {"ttl": wrong}),
            ("turns[0].valid_for", f"/{talk.id}/turns", {"turns": [turn]}),
        ):
            detail = await refused(ada, 422, path, body)
            assert detail.startswith(f"`{field}` must ")
            assert told in detail
            assert "`P30D` (30 days) or `PT15M` (15 minutes)" in detail
            assert wrong not in detail


async def test_what_is_too_large(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    turns = [{"role": "assistant", "content": text} for text in "abc"]
    turns[2]["note"] = "x" * 70_000
    detail = await refused(ada, 413, f"/{talk.id}/turns", {"turns": turns})
    assert detail.startswith("`turns[2].content` has 70")
    assert "at most 65536" in detail
    turns = [{"role": "user", "content": "x" * 17_000_000}]
    detail = await refused(ada, 413, f"/{talk.id}/turns", {"turns": turns})
    assert detail.startswith("`turns[0].content` may have at most 16777216 bytes")
    large = {"state": {"a": "x" * 70_000}}
    for path, method in (("", "POST"), (f"/{talk.id}", "PATCH")):
        assert (await refused(ada, 413, path, large, method)).startswith("`state` has 70")


async def test_a_body_above_the_limit_is_told_what_to_shorten(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    large = {"a": "x" * 2_000_000}
    turn = {"role": "user", "content": "x" * 24_000_000}
    for path, method, body, told in (
        ("", "POST", {"state": large}, "; keep less in `state`"),
        (f"/{talk.id}", "PATCH", {"state": large}, "; keep less in `state`"),
        (f"/{talk.id}/turns", "POST", {"turns": [turn]}, "; send fewer turns at once"),
        (f"/{talk.id}/checkpoints", "POST", {"working": [large]}, "; keep less in `working`"),
        (f"/{talk.id}/close", "POST", {"reason": large["a"]}, "; shorten it"),
    ):
        detail = await refused(ada, 413, path, body, method)
        assert detail.startswith("the body may have at most ")
        assert told in detail
        assert "attachment" not in detail
    response = await ada.post("/api/v1/context", json={"tools": [large]})
    assert "; send fewer `tools`" in assert_problem(response, 413)["detail"]


async def test_what_a_participant_needs(service: RunningService, ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    await talk.do("PUT", "/participants/bob", access="read")
    bob = await service.agent("bob")
    turns = {"turns": [{"role": "user", "content": "x"}]}
    for path, body in (("turns", turns), ("checkpoints", {}), ("resume", {})):
        detail = await refused(bob, 403, f"/{talk.id}/{path}", body)
        assert detail == "this needs the access `append` to the session; its owner gives it"
    await talk.do("PUT", "/participants/bob", access="append")
    for method, path, body in (
        ("POST", "/close", {}),
        ("POST", "/fork", {}),
        ("PATCH", "", {"title": "x"}),
        ("DELETE", "/turns", None),
        ("DELETE", "", None),
        ("PUT", "/participants/cal", {}),
    ):
        detail = await refused(bob, 403, f"/{talk.id}{path}", body, method)
        assert detail.startswith("only the owner of the session may do this")
    cal = await service.agent("cal")
    assert await refused(cal, 404, f"/{talk.id}/turns", turns) == "there is no such session"


async def test_an_operation_that_is_not_available(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    for headers, how in ((inside(talk.id), "X-Session-ID"), ({"X-Subject": "ann"}, "X-User")):
        response = await ada.get("/api/v1/groups", headers=headers)
        detail = assert_problem(response, 403)["detail"]
        assert detail.startswith("`list_groups` is not available")
        assert f"without `{how}`" in detail
