"""Arguments that the SDK refuses: the message names the argument and what it must be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import memorywall
from memorywall.exceptions import (
    AuthenticationError,
    EntryExistsError,
    MemorywallError,
    ValidationError,
)
from memorywall.sdk.client import AsyncClient
from tests.support.service import RunningService

Call = Callable[[Any, Any], Any]
REFUSED: list[tuple[str, Call]] = [
    ("`turns[0]` must be a dict, such as", lambda _, one: one.add_many([("user", "hi")])),
    ("unknown fields: `moood`", lambda _, one: one.add("assistant", "hi", moood=1)),
    ("`turns` must be a list", lambda _, one: one.add_many("hi")),
    ("`working` must be a list", lambda _, one: one.checkpoint(working={"name": "a"})),
    ("`tools[0]` must be a dict, such as", lambda to, _: to.context(tools=["f"])),
    ("`budgets` must be a dict, such as", lambda to, _: to.context(budgets=[1])),
    ("`count` must be a function", lambda to, _: to.context(count=5)),
    ("`revalidate` must be a function", lambda to, _: to.context(revalidate=True)),
    ("`context_id` must be a text", lambda to, _: to.context.outcome(None, "success")),
    (
        "`outcome` is required: `corrected`, `failure` or `success`",
        lambda to, _: to.context.outcome("mem_a", None),
    ),
    ("`used` must be a list", lambda to, _: to.context.outcome("mem_a", "success", used="mem_b")),
    (
        "`participants[0]` must be a dict, such as",
        lambda to, _: to.sessions.create(participants=["bob"]),
    ),
    (
        "`participants[0].access` must be `append` or `read`",
        lambda to, _: to.sessions.create(participants={"bob": "write"}),
    ),
    ("`name` must not contain `/`", lambda to, _: to.working.keep("task", "a b/c", "x")),
]


def test_an_argument_is_refused_in_process(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        session = client.sessions.create()
        for detail, call in REFUSED:
            with pytest.raises(ValidationError) as refused:
                call(client, session)
            assert refused.value.detail.startswith(detail), detail


@pytest.mark.anyio
async def test_an_argument_is_refused_before_it_is_sent(service: RunningService) -> None:
    key = await service.key("ada")
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", key, transport=transport) as client:
        session = await client.sessions.create()
        for detail, call in REFUSED:
            with pytest.raises(ValidationError) as refused:
                await call(client, session)
            assert refused.value.detail.startswith(detail), detail
        await client.memory.put("notes", "a", {"text": "x"}, "episodic")
        with pytest.raises(EntryExistsError) as exists:
            await client.memory.put("notes", "a", {}, "episodic", if_absent=True)
        _check_exists(exists.value)
        with pytest.raises(ValidationError, match=r"`title` is a timedelta, which cannot be sent"):
            await client.sessions.create(title=timedelta(days=1))  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_a_client_without_a_key_is_told_where_to_give_it(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORYWALL_API_KEY", raising=False)
    transport = httpx.ASGITransport(service.app)
    async with AsyncClient("http://memorywall.test", transport=transport) as client:
        with pytest.raises(AuthenticationError, match="set MEMORYWALL_API_KEY or pass `api_key`"):
            await client.whoami()


def test_messages_name_what_to_call(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        participants = [{"agent_id": "bob", "access": "read"}]
        session = client.sessions.create(participants=participants)
        assert [one.agent_id for one in session.info.participants] == ["bob"]
        client.memory.put("notes", "a", {"text": "x"}, "episodic")
        with pytest.raises(EntryExistsError) as exists:
            client.memory.put("notes", "a", {}, "episodic", if_absent=True)
        _check_exists(exists.value)
        with pytest.raises(ValidationError, match=r"`state\.day` is a timedelta, which cannot"):
            session.update(state={"day": timedelta(days=1)})
        with pytest.raises(ValidationError, match=r"`value\.x` is an object, which cannot"):
            client.memory.put("notes", "b", {"x": object()}, "episodic")
        with pytest.raises(TypeError, match="`count` must return the number of the tokens"):
            client.context(session.id, user="hi", count=str.split)  # type: ignore[arg-type]
        with pytest.raises(MemorywallError, match="`create_session` is not available inside"):
            client.in_session(session.id).sessions.create()


def _check_exists(error: EntryExistsError) -> None:
    assert "`memory.put`" in error.detail
    assert "If-Match" not in error.detail
    assert error.current_version == 1
