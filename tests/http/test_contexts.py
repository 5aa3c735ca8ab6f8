"""Compiled contexts over HTTP: sessions, memories, formats, showing again, and feedback."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from memorywall.context.rendering import DATA_MARK
from memorywall.records.principal import Permission, PrincipalKind
from tests.context.provider_check import check_anthropic, check_openai
from tests.http.checks import MEMORY, assert_problem
from tests.http.test_sessions import Talk, begin
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

CONTEXT = "/api/v1/context"


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def compiled(client: httpx.AsyncClient, **body: Any) -> Any:
    response = await client.post(CONTEXT, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def put(client: httpx.AsyncClient, key: str, text: str, **fields: Any) -> Any:
    draft = {"namespace": "notes", "key": key, "memory_type": "episodic", "value": {"text": text}}
    response = await client.post(MEMORY, json={**draft, **fields})
    assert response.status_code == 201, response.text
    return response.json()


def texts(context: Any) -> str:
    return "\n".join(
        str(item["content"]) for segment in context["segments"] for item in segment["items"]
    )


def names(context: Any) -> list[str]:
    return [segment["name"] for segment in context["segments"]]


async def talk_of(client: httpx.AsyncClient, number: int, **fields: Any) -> Talk:
    talk = await begin(client, **fields)
    turns = [
        {"role": "assistant" if at % 2 else "user", "content": f"Turn {at} about thing{at}. " * 4}
        for at in range(number)
    ]
    await talk.do("POST", "/turns", turns=turns)
    return talk


@pytest.mark.parametrize("in_session", [False, True])
async def test_a_context_for_nobody_says_nothing_about_people(
    ada: httpx.AsyncClient, in_session: bool
) -> None:
    for person in ("ann", "bob"):
        block = {"label": f"user-{person}", "text": f"{person} has a core block."}
        core = {"namespace": f"user/{person}/core", "memory_type": "semantic", "kind": "core"}
        await put(ada, f"core-{person}", "", **core, value=block, subjects=[person])
        await put(ada, person, f"{person} likes tea.", subjects=[person])
    await put(ada, "rule", "Everybody likes tea.")

    async def said(subject: str | None, **headers: str) -> str:
        body: dict[str, Any] = {"user": "Who likes tea?", "window": 4_000}
        if in_session:
            body["session_id"] = (await begin(ada, subject=subject)).id
        response = await ada.post(CONTEXT, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return texts(response.json())

    nobody = await said(None)
    assert "Everybody likes tea." in nobody
    assert "ann" not in nobody
    assert "bob" not in nobody
    ann = await said("ann", **({} if in_session else {"X-Subject": "ann"}))
    assert "ann likes tea." in ann
    assert "ann has a core block." in ann
    assert "bob" not in ann


async def test_a_context_holds_the_session_and_memories_within_its_window(
    ada: httpx.AsyncClient,
) -> None:
    talk = await talk_of(ada, 60, subject="ann")
    await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    context = await compiled(
        ada, session_id=talk.id, system="Be brief.", user="When do parcels to Berlin leave?",
        window=1_500, reserve=300,
    )  # fmt: skip
    assert context["tokens"] <= 1_200
    assert "leave on Tuesday" in texts(context)
    assert names(context)[0] == "system"
    assert names(context)[-1] == "user"
    # What the turns that have no room say is in the summary, although nothing asked for one.
    assert {one["reason"] for one in context["dropped"]} == {"summarized"}
    assert "summary" in names(context)
    recalled = await compiled(
        ada, session_id=talk.id, user="What about thing4?", window=1_500, reserve=300
    )
    added = next(one for one in recalled["segments"] if one["name"] == "added")
    assert "thing4" in str(added["items"])


async def test_formats_are_valid_for_their_providers(ada: httpx.AsyncClient) -> None:
    talk = await talk_of(ada, 6)
    call = {"id": "c1", "name": "look", "arguments": {"a": 1}}
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
        {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
    ]
    await talk.do("POST", "/turns", turns=turns)
    body = {"session_id": talk.id, "window": 4_000, "tools": [{"name": "look"}]}
    openai = await compiled(ada, **body, format="openai", system="Be brief.")
    check_openai(openai["messages"])
    assert openai["messages"][-1]["content"] == [{"type": "text", "text": "and now?"}]
    assert openai["tools"] == [{"type": "function", "function": {"name": "look"}}]
    anthropic = await compiled(ada, **body, format="anthropic", system="Be brief.")
    check_anthropic(anthropic["messages"])
    assert anthropic["system"][0]["text"] == "Be brief."
    text = (await compiled(ada, **body, format="text"))["text"]
    assert "tool: found" in text


async def test_a_context_is_shown_again_and_names_what_was_erased(
    ada: httpx.AsyncClient,
) -> None:
    talk = await talk_of(ada, 6)
    note = await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    body = {"session_id": talk.id, "user": "parcels to Berlin?", "window": 4_000}
    context = await compiled(ada, **body, format="openai")
    path = f"{CONTEXT}/{context['id']}"
    again = (await ada.get(f"{path}?format=openai")).json()
    assert again["messages"] == context["messages"]
    assert again["segments"] == context["segments"]
    assert sum(one["tokens"] for one in again["segments"]) == again["tokens"]
    assert (await compiled(ada, **body, format="openai"))["messages"] == context["messages"]
    await ada.delete(f"{MEMORY}/{note['id']}")
    erased = (await ada.get(path)).json()
    assert erased["erased"] == [note["id"]]
    assert "Tuesday" not in texts(erased)
    await talk.do("DELETE")
    assert_problem(await ada.get(path), 404)


async def test_a_context_with_a_summary_and_a_replaced_memory_is_shown_again(
    ada: httpx.AsyncClient,
) -> None:
    talk = await talk_of(ada, 60)
    await talk.do("POST", "/checkpoints", trigger="periodic")
    memory = {"namespace": "shared/global", "memory_type": "shared"}
    parcel = await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.", **memory)
    context = await compiled(
        ada, session_id=talk.id, user="parcels to Berlin?", window=1_500, reserve=300,
        shared="global",
    )  # fmt: skip
    assert {"summary", "shared"} <= set(names(context))
    path = f"{CONTEXT}/{context['id']}"
    assert (await ada.get(path)).json()["segments"] == context["segments"]
    await ada.patch(
        f"{MEMORY}/{parcel['id']}",
        json={"value": {"text": "Parcels leave on Friday."}},
        headers={"If-Match": "1"},
    )
    # The shared tier keeps no earlier versions.
    again = (await ada.get(path)).json()
    assert again["changed"] == [parcel["id"]]
    assert "Friday" not in texts(again)
    assert names(again) == names(context)


async def test_only_feedback_counts_as_use(service: RunningService, ada: httpx.AsyncClient) -> None:
    note = await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    context = await compiled(ada, user="parcels to Berlin?", window=4_000)
    used = service.services.usage_tracker.used
    assert not used["default"]
    path = f"{CONTEXT}/{context['id']}/outcome"
    done = await ada.post(path, json={"used": [note["id"]], "outcome": "success"})
    assert done.json()["counted"] == [note["id"]]
    assert used["default"][note["id"]] == 1
    again = await ada.post(path, json={"used": [note["id"]], "outcome": "success"})
    assert again.json()["counted"] == []
    assert used["default"][note["id"]] == 1
    assert_problem(await ada.post(path, json={"used": ["mem_x"], "outcome": "failure"}), 400)


async def test_outcomes_of_contexts_are_kept_for_each_memory(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    used = await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    other = await put(ada, "office", "The office for parcels to Berlin is closed on Sunday.")
    ids = [used["id"], other["id"]]

    async def tell(context: Any, outcome: str, *names: str) -> list[tuple[int, ...]]:
        path = f"{CONTEXT}/{context['id']}/outcome"
        response = await ada.post(path, json={"used": list(names), "outcome": outcome})
        assert response.status_code == 200, response.text
        found = await service.services.store.read("default", lambda to: to.recall.uses(ids))
        return [tuple(found[one].outcomes) for one in ids]

    first = await compiled(ada, user="parcels to Berlin?", window=4_000)
    assert await tell(first, "success", used["id"]) == [(1, 0, 1, 0), (1, 0, 0, 0)]
    assert await tell(first, "success", used["id"]) == [(1, 0, 1, 0), (1, 0, 0, 0)]
    # What is said later of the same context takes the place of what was said before.
    assert await tell(first, "corrected") == [(0, 1, 0, 1), (0, 1, 0, 0)]
    second = await compiled(ada, user="parcels to Berlin?", window=4_000)
    assert await tell(second, "success", other["id"]) == [(1, 1, 0, 1), (1, 1, 1, 0)]


async def test_the_share_of_tokens_that_were_not_used_is_kept(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await talk_of(ada, 6)
    note = await put(ada, "parcel", "Parcels to Berlin leave on Tuesday.")
    assert (await talk.do("GET"))["counts"]["context_pollution"] is None
    shown = used = 0
    for named in ([note["id"]], []):
        context = await compiled(
            ada, session_id=talk.id, user="parcels to Berlin?", system="Be brief.", window=4_000
        )
        tokens = {
            item["id"]: item["tokens"] for segment in context["segments"]
            for item in segment["items"] if not item["id"].startswith("request.")
        }  # fmt: skip
        # The same feedback twice counts once; later feedback can name more.
        for told in ([], named, named):
            body = {"used": told, "outcome": "success"}
            await ada.post(f"{CONTEXT}/{context['id']}/outcome", json=body)
        shown += sum(tokens.values())
        used += sum(tokens[one] for one in named)
    assert 0 < used < shown
    pollution = (await talk.do("GET"))["counts"]["context_pollution"]
    assert pollution == pytest.approx(1 - used / shown)
    admin = await service.agent("root", permissions=[*Permission])
    status = (await admin.get("/api/v1/status")).json()
    assert status["context_pollution"] == pytest.approx(pollution)
    metrics = (await ada.get("/metrics")).text
    assert f"memorywall_context_tokens_total {shown:.1f}" in metrics
    assert f"memorywall_context_used_tokens_total {used:.1f}" in metrics


async def test_nothing_of_other_sessions_people_and_agents(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk, other = await begin(ada, subject="ann"), await begin(ada, subject="ann")
    await talk.add("Where is my zebra?")
    await other.add("The zebra is in the other session.")
    await put(ada, "a", "The zebra of carl.", subjects=["carl"])
    await put(ada, "b", "The zebra of ann.", subjects=["ann"])
    await put(ada, "c", "A zebra of that session.", scope={"session_id": other.id})
    bob = await service.agent("bob")
    await put(bob, "d", "The zebra of bob.")
    context = await compiled(ada, session_id=talk.id, user="the zebra?", window=4_000)
    shown = texts(context)
    assert "zebra of ann" in shown
    for hidden in ("of carl", "other session", "that session", "of bob"):
        assert hidden not in shown
    assert_problem(await bob.post(CONTEXT, json={"session_id": talk.id}), 404)
    assert_problem(await bob.get(f"{CONTEXT}/{context['id']}"), 404)


async def test_core_memory_and_live_claims_are_in_the_context(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    await put(ada, "persona", "", kind="core", value={"label": "persona", "text": "I am Ada."})
    bob = await service.agent("bob")
    claim = {"scope": "global", "key": "ticket-7", "purpose": "resolving", "ttl_seconds": 60}
    assert (await bob.post("/api/v1/claims", json=claim)).status_code < 300
    context = await compiled(ada, shared="global", user="open a ticket", window=4_000)
    assert "I am Ada." in texts(context)
    assert "bob holds `ticket-7`" in texts(context)


async def test_a_rejected_source_is_demoted_and_costs_no_tokens(ada: httpx.AsyncClient) -> None:
    await put(ada, "old", "Refunds take thirty days by the old policy.")
    await put(ada, "new", "Refunds take ten days by the policy.")
    lesson = {
        "type": "negative_retrieval", "question": "How long do refunds take?",
        "rejected_doc": "old", "accepted_doc": "new",
    }  # fmt: skip
    made = await put(ada, "lesson", "", value=lesson)
    context = await compiled(ada, user="How long do refunds take by the policy?", window=4_000)
    shown = texts(context)
    assert shown.index("ten days") < shown.index("thirty days")
    assert context["lessons"] == [made["id"]]
    assert "negative_retrieval" not in shown


async def test_bad_requests_change_nothing(ada: httpx.AsyncClient) -> None:
    small = await ada.post(CONTEXT, json={"system": "word " * 300, "user": "hi", "window": 200})
    assert_problem(small, 409, "CONTEXT_BUDGET")
    needed = small.json()["needed"]
    await compiled(ada, system="word " * 300, user="hi", window=needed, reserve=25)
    for body, status in (
        ({"window": 0}, 422),
        ({"window": 100, "reserve": 100}, 400),
        ({"model": "unknown"}, 400),
        ({"strategy": "best"}, 422),
        ({"budgets": {"semantic": 0}}, 422),
        ({"user": [{"text": "no type"}]}, 422),
        ({"session_id": "no"}, 404),
    ):
        assert (await ada.post(CONTEXT, json=body)).status_code == status, body
    assert_problem(await ada.get(f"{CONTEXT}/mem_none"), 404)
    talk = await talk_of(ada, 2)
    await talk.do("POST", "/close", reason="done")
    asked = {"session_id": talk.id, "window": 4_000}
    assert_problem(await ada.post(CONTEXT, json=asked), 409, "SESSION_CLOSED")


async def test_what_an_administrator_stores_is_trusted_unless_its_origin_says_otherwise(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    """The key of the administrator is one of a service that writes for ada."""
    admin = await service.agent("boss", permissions=tuple(Permission), kind=PrincipalKind.SERVICE)
    ingest = await service.agent("ingest", kind=PrincipalKind.SERVICE)
    for client in (admin, ingest):
        for origin in (None, "tool", "document", "import"):
            fields = {} if origin is None else {"origin": origin}
            await put(client, f"refund-{origin}", f"Refunds are of {origin}.", **fields)
        found = await compiled(client, user="What of refunds?", window=4_000)
        marks = {
            item["content"]: item.get("marks", [])
            for segment in found["segments"] for item in segment["items"]
        }  # fmt: skip
        trusted = {text for text, listed in marks.items() if "untrusted" not in listed}
        own = {"Refunds are of None."} if client is admin else set()
        assert trusted - {"What of refunds?"} == own


@pytest.mark.parametrize("content", ["What of thing1?", [{"type": "text", "text": "thing1?"}]])
async def test_the_message_of_the_user_has_nothing_that_the_user_did_not_write(
    ada: httpx.AsyncClient, content: Any
) -> None:
    await put(ada, "n1", "thing1 is blue", memory_type="procedural")
    body = {"user": content, "window": 4_000}
    *_, before, last = (await compiled(ada, **body, format="openai"))["messages"]
    assert last == {"role": "user", "content": content}
    assert before["content"].startswith(f"{DATA_MARK}\n# Procedures\n")
    anthropic = await compiled(ada, **body, format="anthropic")
    data, said = anthropic["messages"][-1]["content"]
    assert data["text"].startswith(f"{DATA_MARK}\n# Procedures\n")
    assert said["text"] == (content if isinstance(content, str) else content[0]["text"])
