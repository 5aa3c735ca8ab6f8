"""What contexts hold of memory: changed sources, working items of a step, core memory, the state of
other agents, and lessons."""

from __future__ import annotations

from random import Random
from typing import Any

import httpx
import pytest

from tests.http.checks import ADMINISTRATOR, MEMORY, assert_problem
from tests.http.test_contexts import CONTEXT, compiled, put, texts
from tests.http.test_sessions import begin
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService
from tests.work.crew import CLAIMS, TASKS, crew_of, ok, under

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


def items(context: Any) -> dict[str, Any]:
    return {item["id"]: item for segment in context["segments"] for item in segment["items"]}


async def assert_shown_again(client: httpx.AsyncClient, context: Any) -> None:
    """The stored context has the same segments as when it was compiled."""
    again = ok(await client.get(f"{CONTEXT}/{context['id']}"))
    assert again["segments"] == context["segments"]
    assert (again["changed"], again["erased"]) == ([], [])


async def derive(client: httpx.AsyncClient, key: str, text: str, *sources: Any) -> Any:
    named = [{"id": one["id"], "version": one["version"]} for one in sources]
    return await put(client, key, text, derived_from=named)


async def rewrite(client: httpx.AsyncClient, entry: Any, text: str) -> Any:
    """The entry with another text."""
    headers = {"If-Match": str(entry["version"])}
    body = {"value": {"text": text}}
    return ok(await client.patch(f"{MEMORY}/{entry['id']}", json=body, headers=headers))


async def test_freshness_beats_the_prefix(ada: httpx.AsyncClient) -> None:
    """In each turn documents may change. A memory is marked exactly if a document that it was
    derived from, directly or not, has changed, and the present document stands in the context; if
    nothing changed, the prompt begins like the one before."""
    source = Random(chosen_seed())
    documents = [await put(ada, f"doc{at}", f"Refund policy {at}, first text.") for at in range(3)]
    facts, of = [], {}
    for at in range(6):
        document = source.choice(documents)
        middle = [await derive(ada, f"mid{at}", f"Digest of the policy {at}.", document)]
        parents = middle if source.random() < 0.5 else [document]
        fact = await derive(ada, f"fact{at}", f"Refund fact {at} of the policy.", *parents)
        facts.append(fact)
        of[fact["id"]] = document["id"]
        of[middle[0]["id"]] = document["id"]
    talk = await begin(ada, subject="ann")
    changed: set[str] = set()
    before = ""
    for number in range(extent(8, long=60)):
        places = [at for at in range(3) if source.random() < 0.2]
        for at in places:
            documents[at] = await rewrite(ada, documents[at], f"Refund policy {at}, text {number}.")
            changed.add(documents[at]["id"])
        question = source.choice(("refund policy?", "policy fact", "digest of the refund policy"))
        await talk.add(f"{question} {number}")
        asked = {"session_id": talk.id, "window": 6_000, "memories": 30}
        context = await compiled(ada, **asked)
        await assert_shown_again(ada, context)
        shown = items(context)
        assert set(of) <= set(shown)
        for name, document_id in of.items():
            assert ("source_changed" in shown[name]["marks"]) == (document_id in changed), name
            if document_id in changed:
                current = next(one for one in documents if one["id"] == document_id)
                assert shown[document_id]["content"] == current["value"]["text"]
        text = ok(await ada.get(f"{CONTEXT}/{context['id']}?format=text"))["text"]
        again = await compiled(ada, **asked | {"format": "text"})
        assert again["text"] == text
        if not places:
            assert text.startswith(before.partition("\nuser: ")[0])
        before = text


async def test_a_source_that_is_gone_marks_what_was_derived_from_it(
    ada: httpx.AsyncClient,
) -> None:
    document = await put(ada, "doc", "Parcels leave on Tuesday.")
    fact = await derive(ada, "fact", "The parcel of ann leaves on Tuesday.", document)
    body = {"user": "When does the parcel leave?", "window": 4_000}
    assert items(await compiled(ada, **body))[fact["id"]]["marks"] == []
    await ada.delete(f"{MEMORY}/{document['id']}")
    context = await compiled(ada, **body)
    assert items(context)[fact["id"]]["marks"] == ["source_changed"]
    assert document["id"] not in items(context)
    answers = {fact["id"]: True}
    assert items(await compiled(ada, **body, revalidated=answers))[fact["id"]]["marks"] == []
    rejected = await compiled(ada, **body, revalidated={fact["id"]: False})
    assert fact["id"] not in items(rejected)
    assert [one["reason"] for one in rejected["dropped"]] == ["rejected"]


async def test_a_source_that_the_caller_may_not_read_is_like_a_missing_one(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    bob = await service.agent("bob", permissions=ADMINISTRATOR)
    office = {"memory_type": "semantic", "namespace": "office"}
    document = await put(bob, "doc", "The zebra desk opens at nine.", **office)

    async def open_to_others(access: str) -> None:
        body = {"permissions": {"default": access}}
        ok(await bob.patch(f"{MEMORY}/namespaces/office", json=body))

    await open_to_others("read")
    fact = await derive(ada, "fact", "The zebra desk opens early.", document)
    body = {"user": "zebra desk?", "window": 4_000}
    assert items(await compiled(ada, **body))[fact["id"]]["marks"] == []
    await rewrite(bob, document, "The zebra desk opens at ten.")
    seen = await compiled(ada, **body)
    assert items(seen)[fact["id"]]["marks"] == ["source_changed"]
    assert "opens at ten" in texts(seen)
    await open_to_others("none")
    hidden = await compiled(ada, **body)
    assert items(hidden)[fact["id"]]["marks"] == ["source_changed"]
    assert "opens at ten" not in texts(hidden)


async def test_working_items_of_a_step_are_in_the_context(service: RunningService) -> None:
    crew = await crew_of(service)
    task, taken = await crew.working()
    path, headers = f"{TASKS}/{task['id']}/working", under(taken.token)
    ok(await crew.a.post(f"{path}/steps", json={"goal": "invoice"}, headers=headers), 201)
    rows = [{"invoice": number, "total": number * 7} for number in range(150)]
    contents = {"rows": rows, "more rows": rows, "note": "The invoice of march is wrong. " * 40}
    for name, content in contents.items():
        body = {"content": content, "carry_forward": True}
        ok(await crew.a.put(f"{path}/items/{name}", json=body, headers=headers))
    before = ok(await crew.a.get(path))
    whole = await compiled(crew.a, task_id=task["id"], window=16_000)
    assert [one["reason"] for one in items(whole).values()] == ["working"] * 3
    small = await compiled(crew.a, task_id=task["id"], window=1_200, reserve=0)
    assert small["tokens"] <= 1_200
    shown = items(small)
    reasons = {one["content"].partition(":")[0]: one["reason"] for one in shown.values()}
    assert reasons["note"] == "working_compressed"
    assert "working_externalized" in reasons.values()
    name = next(name for name, reason in reasons.items() if reason == "working_externalized")
    text = next(one["content"] for one in shown.values() if one["content"].startswith(f"{name}:"))
    uri = text.split('"uri":"')[1].split('"')[0]
    assert '"schema_hash":"sha256:' in text
    assert ok(await crew.a.get(uri))["content"] == contents[name]
    await assert_shown_again(crew.a, small)
    await assert_shown_again(crew.a, whole)
    # The handler was asked for the context alone; the memory is as it was.
    assert ok(await crew.a.get(path)) == before
    least = await compiled(crew.a, task_id=task["id"], window=40, reserve=0)
    assert [one["reason"] for one in least["dropped"]] == ["over_budget"] * 3
    other = await compiled(crew.b, task_id=task["id"], window=16_000)
    assert "march" not in texts(other)


async def test_core_memory_begins_every_session(ada: httpx.AsyncClient) -> None:
    for key, text, about in (("persona", "I am Ada.", []), ("user", "Ann likes tea.", ["ann"])):
        value = {"label": key, "text": text}
        fields: dict[str, Any] = {"memory_type": "semantic", "namespace": f"agent/ada/{key}"}
        await put(ada, key, "", kind="core", value=value, subjects=about, **fields)
    of_ann, of_bob = await begin(ada, subject="ann"), await begin(ada, subject="bob")
    body = {"user": "hello", "window": 2_000, "memories": 0}
    first = texts(await compiled(ada, session_id=of_ann.id, **body))
    assert "I am Ada." in first
    assert "Ann likes tea." in first
    other = texts(await compiled(ada, session_id=of_bob.id, **body))
    assert "I am Ada." in other
    assert "tea" not in other


async def test_the_newest_block_of_a_label_is_in_the_context(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    async def block(key: str, text: str, *subjects: str) -> Any:
        value = {"label": "user", "text": text}
        return await put(ada, key, "", kind="core", value=value, subjects=subjects)

    first = await block("one", "Speaks French.")
    second = await block("two", "Speaks German.")
    of_ann = await block("ann", "Ann speaks Welsh.", "ann")
    talk = await begin(ada, subject="ann")
    body = {"user": "hello", "window": 2_000, "memories": 0, "session_id": talk.id}
    context = await compiled(ada, **body)
    assert set(items(context)) & {first["id"], second["id"], of_ann["id"]} == {
        second["id"], of_ann["id"],
    }  # fmt: skip
    assert [(one["id"], one["reason"]) for one in context["dropped"]] == [
        (first["id"], "superseded")
    ]
    await assert_shown_again(ada, context)
    value = {"label": "user", "text": "Speaks Danish."}
    service.clock.advance(1)
    ok(await ada.patch(f"{MEMORY}/{first['id']}", json={"value": value}, headers={"If-Match": "1"}))
    context = await compiled(ada, **body)
    assert "Danish" in texts(context)
    assert "German" not in texts(context)


@pytest.mark.parametrize("is_derived", [False, True])
async def test_a_turn_whose_source_changed_is_marked(
    ada: httpx.AsyncClient, is_derived: bool
) -> None:
    policy = await put(ada, "policy", "Refunds take 30 days.")
    named = await derive(ada, "digest", "30 days.", policy) if is_derived else policy
    talk = await begin(ada, subject="ann")
    turns = [
        {"role": "user", "content": "How long does a refund take?"},
        {"role": "assistant", "content": "30 days.", "source": f"mem:{named['id']}"},
        {"role": "user", "content": "Thanks.", "source": "mem:no-entry"},
    ]
    added = (await talk.do("POST", "/turns", turns=turns))["turns"]
    body = {"session_id": talk.id, "user": "And now?", "window": 4_000, "memories": 0}
    before = await compiled(ada, **body)
    assert all(one["marks"] == [] for one in items(before).values())
    await rewrite(ada, policy, "Refunds take 10 days.")
    context = await compiled(ada, **body)
    assert [items(context)[one["id"]]["marks"] for one in added] == [[], ["source_changed"], []]
    assert items(context)[policy["id"]]["content"] == "Refunds take 10 days."
    assert items(context)[policy["id"]]["reason"] == "current_source"
    await assert_shown_again(ada, context)
    messages = (await compiled(ada, **body, format="openai"))["messages"]
    told = [one["content"] for one in messages if one["role"] == "assistant"]
    assert told == ["[source_changed: its source changed since] 30 days."]
    again = await compiled(ada, **body, revalidated={added[1]["id"]: True})
    assert items(again)[added[1]["id"]]["marks"] == []


async def test_agents_see_what_others_are_doing_and_open_no_second_ticket(
    service: RunningService,
) -> None:
    """The triage agent opens a ticket only if its context shows neither a claim nor a ticket."""
    resolution, triage = await service.agent("resolution"), await service.agent("triage")
    claim = {"scope": "global", "key": "ticket-order-17", "purpose": "refund", "ttl_seconds": 600}
    state = {"memory_type": "shared", "namespace": "shared/global"}

    async def open_ticket(client: httpx.AsyncClient) -> bool:
        context = await compiled(client, shared="global", user="Order 17 is late.", window=4_000)
        if "order-17" in texts(context):
            return False
        ok(await client.post(CLAIMS, json=claim), 201)
        await put(client, "order-17", "ticket open, refund is being checked", **state)
        return True

    assert await open_ticket(resolution)
    context = await compiled(triage, shared="global", user="Order 17 is late.", window=4_000)
    shared = next(one for one in context["segments"] if one["name"] == "shared")
    told = "\n".join(one["content"] for one in shared["items"])
    assert "resolution holds `ticket-order-17`" in told
    assert "refund is being checked" in told
    await assert_shown_again(triage, context)
    assert not await open_ticket(triage)
    tickets = ok(await triage.get(MEMORY, params={"memory_type": "shared"}))["entries"]
    assert [one["key"] for one in tickets] == ["order-17"]
    # An agent that does not look is refused as well.
    assert_problem(await triage.post(CLAIMS, json=claim), 409)


async def test_a_rejected_source_is_not_recommended_again(ada: httpx.AsyncClient) -> None:
    """Also if an earlier context of the session began with it, and without a token about it."""
    old = await put(ada, "old", "Refunds take thirty days by the policy of refunds. " * 4)
    new = await put(ada, "new", "Money comes back in ten days, says the refunds policy.")
    talk = await begin(ada)
    body = {"session_id": talk.id, "user": "How long do refunds take by the policy?"}
    asked = {**body, "window": 4_000}
    first = await compiled(ada, **asked)
    assert list(items(first))[:2] == [old["id"], new["id"]]
    lesson = {
        "type": "negative_retrieval", "question": "How long do refunds take by the policy?",
        "rejected_doc": "old", "accepted_doc": "new",
    }  # fmt: skip
    made = await put(ada, "lesson", "", value=lesson)
    second = await compiled(ada, **asked)
    assert second["lessons"] == [made["id"]]
    order = [one for one in items(second) if one in {old["id"], new["id"]}]
    assert order[0] == new["id"]
    assert made["id"] not in items(second)
    assert sum(one["tokens"] for one in items(second).values()) <= sum(
        one["tokens"] for one in items(first).values()
    )
    # With room for one of them, it is the accepted one.
    room = first["tokens"] - items(first)[old["id"]]["tokens"] + 30
    tight = await compiled(ada, **body, window=room, reserve=0, store=False)
    assert new["id"] in items(tight)
    assert old["id"] not in items(tight)


@pytest.mark.parametrize("name", ["id", "key", "notes/key"])
async def test_a_lesson_names_a_source_by_its_id_its_key_or_both(
    ada: httpx.AsyncClient, name: str
) -> None:
    old = await put(ada, "old", "The refund policy says that refunds take 30 days.")
    new = await put(ada, "new", "Refunds take 10 days by the policy.")
    question = "How long do refunds take by the policy?"
    forms = {"id": lambda one: one["id"], "key": lambda one: one["key"],
             "notes/key": lambda one: f"notes/{one['key']}"}  # fmt: skip
    lesson = {
        "type": "negative_retrieval", "question": question,
        "rejected_doc": forms[name](old), "accepted_doc": forms[name](new),
    }  # fmt: skip
    made = await put(ada, "lesson", "", value=lesson)
    await put(ada, "idle", "", value=lesson | {"rejected_doc": "notes/gone", "accepted_doc": "x"})
    context = await compiled(ada, user=question, window=4_000)
    assert context["lessons"] == [made["id"]]
    reasons = {one: items(context)[one]["reason"] for one in (old["id"], new["id"])}
    assert reasons == {
        old["id"]: "query, demoted by a lesson", new["id"]: "query, promoted by a lesson",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("other", "acts"),
    [
        ({}, True),
        ({"valid_until": "2020-01-01T00:00:00Z"}, False),
        ({"valid_from": "2099-01-01"}, False),
        ({"confidence": 0.01}, False),
    ],
)
@pytest.mark.parametrize("by_kind", [False, True])
async def test_a_lesson_acts_in_a_context_as_it_does_on_a_query(
    ada: httpx.AsyncClient, other: dict[str, Any], *, acts: bool, by_kind: bool
) -> None:
    question = "How long do refunds take by the policy?"
    old = await put(ada, "old", "The refund policy says that refunds take 30 days.")
    new = await put(ada, "new", "Refunds take 10 days by the policy.")
    lesson = {"question": question, "rejected_doc": "old", "accepted_doc": "new", **other}
    # A lesson is known by its kind, or by the type of its value.
    fields: dict[str, Any] = {"value": lesson | {"type": "negative_retrieval"}}
    if by_kind:
        fields = {"value": lesson, "kind": "negative_retrieval"}
    made = await put(ada, "lesson", "", **fields)
    context = await compiled(ada, user=question, window=4_000)
    assert context["lessons"] == ([made["id"]] if acts else [])
    assert made["id"] not in items(context)
    reasons = {items(context)[one]["reason"] for one in (old["id"], new["id"])}
    steered = {"query, demoted by a lesson", "query, promoted by a lesson"}
    assert reasons == (steered if acts else {"query"})
    reshaped = await ada.post(f"{MEMORY}/reshape", json={"query": question})
    assert bool(reshaped.json()["guidance"]) is acts
