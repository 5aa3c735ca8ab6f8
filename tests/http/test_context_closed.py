"""A stored context shows only what its reader may read when it is shown again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.records.principal import Permission
from tests.http.checks import ADMINISTRATOR, MEMORY, NAMESPACES, assert_problem
from tests.http.test_contexts import CONTEXT, compiled, put, texts
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, ok

pytestmark = pytest.mark.anyio

FORMATS = ("segments", "openai", "anthropic", "text")
SECRET = "The zebra key lies under the mat."


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("chief", permissions=(*ADMINISTRATOR, Permission.TENANT_ADMIN))


async def permit(chief: httpx.AsyncClient, namespace: str, **permissions: Any) -> None:
    ok(await chief.patch(f"{NAMESPACES}/{namespace}", json={"permissions": permissions}))


async def assert_hidden(client: httpx.AsyncClient, context: Any, hidden: str) -> None:
    """No format of a stored context has the text of the item, whose id is named as erased."""
    for wanted in FORMATS:
        shown = await client.get(f"{CONTEXT}/{context['id']}", params={"format": wanted})
        assert shown.status_code == 200
        assert "zebra" not in shown.text, wanted
        assert shown.json()["erased"] == [hidden]


async def context_about_zebras(client: httpx.AsyncClient, talk: Talk, **body: Any) -> Any:
    question = {"user": "striped?", "query": "zebra key", "window": 4_000, "session_id": talk.id}
    context = await compiled(client, **question, **body)
    assert "zebra" in texts(context)
    return context


@pytest.mark.parametrize("names_session", [False, True])
async def test_a_namespace_that_was_closed(
    service: RunningService, chief: httpx.AsyncClient, names_session: bool
) -> None:
    bob = await service.agent("bob")
    talk = await begin(bob)
    await permit(chief, "vault", default="read")
    scope = {"scope": {"session_id": talk.id}} if names_session else {}
    vault = {"memory_type": "semantic", "namespace": "vault"}
    secret = await put(chief, "secret", SECRET, **vault, **scope)
    context = await context_about_zebras(bob, talk)
    await permit(chief, "vault", default="none")
    assert_problem(await bob.get(f"{MEMORY}/{secret['id']}"), 403)
    await assert_hidden(bob, context, secret["id"])


@pytest.mark.parametrize("names_session", [False, True])
async def test_a_group_that_was_left(
    service: RunningService, chief: httpx.AsyncClient, names_session: bool
) -> None:
    ada, bob = await service.agent("ada"), await service.agent("bob")
    talk = await begin(bob)
    ok(await chief.put("/api/v1/groups/red", json={"kind": "class"}))
    for name in ("ada", "bob"):
        ok(await chief.put(f"/api/v1/groups/red/members/{name}"))
    grant = {"agent": "group:red", "access": "read", "episodic": True}
    await permit(chief, "diary", default="none", allow=[grant])
    scope = {"scope": {"session_id": talk.id}} if names_session else {}
    secret = await put(ada, "secret", SECRET, namespace="diary", **scope)
    context = await context_about_zebras(bob, talk)
    assert (await chief.delete("/api/v1/groups/red/members/bob")).status_code == 204
    assert_problem(await bob.get(f"{MEMORY}/{secret['id']}"), 403)
    await assert_hidden(bob, context, secret["id"])


async def test_claims_of_a_scope_that_was_closed(
    service: RunningService, chief: httpx.AsyncClient
) -> None:
    bob = await service.agent("bob")
    talk = await begin(bob)
    await permit(chief, "shared/team/x", default="read")
    claim = {"scope": "team:x", "key": "zebra", "purpose": "feeding", "ttl_seconds": 600}
    claimed = ok(await chief.post(CLAIMS, json=claim), 201)
    context = await context_about_zebras(bob, talk, shared="team:x")
    again = ok(await bob.get(f"{CONTEXT}/{context['id']}"))
    assert again["segments"] == context["segments"]
    await permit(chief, "shared/team/x", default="none")
    await assert_hidden(bob, context, claimed["id"])


@pytest.mark.parametrize("access", ["read", "append"])
async def test_a_participant_is_shown_the_turns_until_it_leaves(
    service: RunningService, access: str
) -> None:
    ada, bob = await service.agent("ada"), await service.agent("bob")
    talk = await begin(ada, participants=[{"agent_id": "bob", "access": access}])
    await talk.add(*(f"Turn {number} about zebras. " * 8 for number in range(40)))
    await talk.do("POST", "/checkpoints", trigger="periodic")
    question = {"session_id": talk.id, "user": "zebras?", "window": 1_500, "reserve": 300}
    context = await compiled(bob, **question)
    assert {"turns", "summary"} <= {segment["name"] for segment in context["segments"]}
    again = ok(await bob.get(f"{CONTEXT}/{context['id']}"))
    assert (again["segments"], again["erased"]) == (context["segments"], [])
    await talk.do("DELETE", "/participants/bob")
    assert_problem(await bob.get(f"{CONTEXT}/{context['id']}"), 404)
