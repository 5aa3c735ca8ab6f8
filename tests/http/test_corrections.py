"""Corrections and retractions: what goes with them, what comes back, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from memorywall.records.decision import Verb
from memorywall.records.principal import Permission
from memorywall.service.access.targets import load_authorized_entry
from memorywall.service.entries.state import set_state
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.runner.operation_runner import run_write
from tests.http.checks import MEMORY, assert_problem, events_of, everything, make
from tests.http.test_contexts import compiled, texts
from tests.http.test_sessions import begin
from tests.http.test_states import ADA
from tests.support.rounds import sweep
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio

Entry = dict[str, Any]
WHY = "the office has moved"
DAYS = 24 * 3600


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        yield client


async def note(
    client: httpx.AsyncClient, key: str, text: str, *sources: Entry, **fields: Any
) -> Entry:
    derived = [{"id": one["id"], "version": one["version"]} for one in sources]
    fields = {"memory_type": "episodic", "namespace": "notes", **fields}
    if derived:
        fields["derived_from"] = derived
    return await make(client, key, **{"value": {"text": text}, **fields})


async def act(client: httpx.AsyncClient, entry: Entry, verb: str, **body: Any) -> Entry:
    """Corrects, retracts or undoes, and returns the reply."""
    reply = await client.post(f"{MEMORY}/{entry['id']}/{verb}", json=body)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def read(client: httpx.AsyncClient, entry: Entry) -> Entry:
    reply = await client.get(f"{MEMORY}/{entry['id']}")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def states(client: httpx.AsyncClient, *entries: Entry) -> list[str]:
    return [(await read(client, one)).get("state", "live") for one in entries]


async def found(client: httpx.AsyncClient, query: str) -> set[str]:
    """The keys that a list and a search show, which must agree."""
    page = (await client.get(MEMORY, params={"namespace": "notes"})).json()["entries"]
    hits = (
        await client.post(f"{MEMORY}/search", json={"query": query, "namespace": "notes"})
    ).json()
    keys = {one["key"] for one in page}
    assert {one["entry"]["key"] for one in hits["results"]} == keys
    return keys


@pytest.mark.parametrize("tier", ["working", "episodic", "semantic", "procedural"])
@pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
async def test_a_correction_replaces_the_text_and_undo_brings_it_back(
    service: RunningService, ada: httpx.AsyncClient, tier: str, sensitivity: str
) -> None:
    fields = {"memory_type": tier, "sensitivity": sensitivity}
    office = await note(ada, "office", "The office is in Graz.", **fields)
    trip = await note(ada, "trip", "Visit the office in Graz.", office, **fields)
    plan = await note(ada, "plan", "Book a hotel in Graz.", trip, **fields)
    made = await act(ada, office, "correct", text="The office is in Linz.", reason=WHY)
    assert made["withdrawn"] == sorted([trip["id"], plan["id"]])
    assert made["hidden"] == 0
    assert (made["entry"]["value"], made["entry"]["version"]) == (
        {"text": "The office is in Linz."},
        2,
    )
    kept = made["entry"]["provenance"]["correction"]
    # The provenance of a sealed entry is in clear text.
    assert kept.get("reason") == (WHY if sensitivity == "internal" else None)
    assert await states(ada, office, trip, plan) == ["live", "withdrawn", "withdrawn"]
    if tier in ("working", "episodic"):
        earlier = await read(ada, {"id": kept["kept"]})
        assert (earlier["state"], earlier["value"]) == ("withdrawn", office["value"])
    assert (await ada.get(MEMORY, params={"namespace": "notes"})).json()["total"] == 1

    back = await act(ada, office, "undo")
    assert back["reinstated"] == made["withdrawn"]
    assert await states(ada, office, trip, plan) == ["live"] * 3
    now = await read(ada, office)
    assert (now["value"], now["version"]) == (office["value"], 3)
    assert now["provenance"] == office["provenance"]
    assert (await read(ada, plan))["provenance"] == plan["provenance"]
    assert (await ada.get(MEMORY, params={"namespace": "notes"})).json()["total"] == 3
    assert_problem(await ada.post(f"{MEMORY}/{office['id']}/undo"), 409, "INVALID_TRANSITION")
    await everything(service)


async def test_what_is_retracted_leaves_lists_searches_and_contexts_at_once(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada)
    await talk.add("Where is the office?")
    office = await note(ada, "office", "The office is in Graz.")
    await note(ada, "trip", "Visit the office in Graz on Tuesday.", office)
    await note(ada, "other", "The office opens at nine.")
    asked = {"session_id": talk.id, "window": 4_000}
    assert "Graz" in texts(await compiled(ada, **asked, user="the office?"))
    assert await found(ada, "office") == {"office", "trip", "other"}
    await act(ada, office, "retract", reason=WHY)
    assert await found(ada, "office") == {"other"}
    # The slices of the session keep nothing of it either.
    for user in ("the office?", "zebra?"):
        assert "Graz" not in texts(await compiled(ada, **asked, user=user))
    shown = await read(ada, office)
    assert (shown["state"], shown["value"]) == ("withdrawn", office["value"])
    assert shown["provenance"]["withdrawal"]["reason"] == WHY
    named = await ada.get(f"{MEMORY}/by-name", params={"namespace": "notes", "key": "office"})
    assert named.json()["entry"] is None
    events = await events_of(ada, "ada")
    assert [one["data"]["state"] for one in events if "state" in one["data"]] == ["withdrawn"] * 2
    # The log outlives the entry, and a reason is text of the caller.
    assert WHY not in str(events)
    await act(ada, office, "undo")
    assert await found(ada, "office") == {"office", "trip", "other"}


async def test_the_reply_lists_what_the_caller_may_read_and_counts_the_rest(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    bob = await service.agent("bob")
    fact = await note(ada, "fact", "The office is in Graz.", memory_type="semantic")
    own = await note(bob, "own", "Go to Graz.", fact)
    further = await note(bob, "further", "Pack for Graz.", own)
    shared = await note(bob, "shared", "Graz!", fact, memory_type="semantic", namespace="b")
    assert_problem(await bob.post(f"{MEMORY}/{fact['id']}/retract", json={"reason": WHY}), 403)
    assert await states(bob, own, shared) == ["live", "live"]
    made = await act(ada, fact, "retract", reason=WHY)
    assert (made["withdrawn"], made["hidden"]) == ([shared["id"]], 2)
    assert await states(bob, own, further, shared) == ["withdrawn"] * 3
    # Bob stays the last writer of his own memory.
    assert (await read(bob, own))["provenance"]["principal"] == "bob"
    back = await act(ada, fact, "undo")
    assert (back["reinstated"], back["hidden"]) == ([shared["id"]], 2)
    assert await states(bob, own, further, shared) == ["live"] * 3


async def test_what_has_two_wrong_sources_waits_for_both(ada: httpx.AsyncClient) -> None:
    one = await note(ada, "one", "The office is in Graz.")
    two = await note(ada, "two", "The hotel is in Graz.")
    both = await note(ada, "both", "Stay in Graz.", one, two)
    await act(ada, one, "retract", reason=WHY)
    corrected = await act(ada, two, "correct", text="The hotel is in Linz.", reason=WHY)
    assert corrected["withdrawn"] == [both["id"]]
    assert (await act(ada, one, "undo"))["reinstated"] == []
    assert await states(ada, one, both) == ["live", "withdrawn"]
    assert (await act(ada, two, "undo"))["reinstated"] == [both["id"]]
    assert await states(ada, both) == ["live"]
    # One that was withdrawn for another entry can be reinstated alone.
    await act(ada, one, "retract", reason=WHY)
    await act(ada, both, "undo")
    assert await states(ada, one, both) == ["withdrawn", "live"]
    assert (await act(ada, one, "undo"))["reinstated"] == []


async def test_corrections_are_undone_one_after_the_other(ada: httpx.AsyncClient) -> None:
    office = await note(ada, "office", "Graz", memory_type="semantic")
    for text in ("Linz", "Wels"):
        await act(ada, office, "correct", text=text, reason=WHY)
    await act(ada, office, "retract", reason=WHY)
    assert_problem(
        await ada.post(f"{MEMORY}/{office['id']}/retract", json={"reason": WHY}),
        409,
        "INVALID_TRANSITION",
    )
    for text in ("Wels", "Linz", "Graz"):
        assert (await act(ada, office, "undo"))["entry"]["value"] == {"text": text}
    # A correction may confirm the value, and withdraws what was derived from it even so.
    trip = await note(ada, "trip", "Visit Graz.", office)
    same = await act(ada, office, "correct", text="Graz", reason=WHY)
    assert same["withdrawn"] == [trip["id"]]
    assert (await act(ada, office, "undo"))["reinstated"] == [trip["id"]]
    # Undo never loses a value that was written after the correction.
    made = await act(ada, office, "correct", text="Linz", reason=WHY)
    headers = {"If-Match": str(made["entry"]["version"])}
    path = f"{MEMORY}/{office['id']}"
    await ada.patch(path, json={"value": {"text": "Enns"}}, headers=headers)
    assert_problem(await ada.post(f"{path}/undo"), 409, "INVALID_TRANSITION")


async def test_the_earlier_value_is_kept_while_its_return_waits_for_a_person(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    value = {"text": "The office is in Graz.", "confidence": 0.1}
    office = await note(ada, "office", "", value=value)
    await act(ada, office, "correct", text="The office is in Linz.", reason=WHY)
    admin = await service.agent("root", permissions=[*Permission])
    closed = await admin.put("/api/v1/tiers/episodic", json={"admission": "promoted"})
    assert closed.status_code == 200, closed.text
    waits = await ada.post(f"{MEMORY}/{office['id']}/undo")
    assert (waits.status_code, waits.json()["entry"]["kind"]) == (202, "proposal")
    await admin.put("/api/v1/tiers/episodic", json={})
    back = await act(ada, office, "undo")
    assert (back["entry"]["id"], back["entry"]["value"]) == (office["id"], value)


async def test_cyclic_provenance_ends(service: RunningService, ada: httpx.AsyncClient) -> None:
    one = await note(ada, "one", "The office is in Graz.")
    two = await note(ada, "two", "Go to Graz.", one)
    three = await note(ada, "three", "Stay in Graz.", two)
    derived = {"pinned": True, "derived_from": [{"id": three["id"], "version": 1}]}
    reply = await ada.patch(f"{MEMORY}/{one['id']}", json=derived, headers={"If-Match": "1"})
    assert reply.status_code == 200, reply.text
    made = await act(ada, one, "retract", reason=WHY)
    assert made["withdrawn"] == sorted([two["id"], three["id"]])
    await act(ada, one, "undo")
    assert await states(ada, one, two, three) == ["live"] * 3


async def test_a_summary_that_quotes_a_retracted_turn_or_entry_is_withdrawn(
    ada: httpx.AsyncClient,
) -> None:
    office = await note(ada, "office", "The office is in Graz.")
    talk = await begin(ada)
    turns = [
        {"role": "user", "content": "My cat is called Mimi, remember that."},
        {"role": "user", "content": "The office is in Graz.", "source": f"mem:{office['id']}"},
        {"role": "user", "content": "I must pay 42 euros by Friday."},
    ]
    added = (await talk.do("POST", "/turns", turns=turns))["turns"]
    await talk.do("POST", "/checkpoints", trigger="periodic")
    later = await begin(ada, continues=talk.id)
    for wrong, word in ((added[0], "Mimi"), (office, "Graz")):
        for one in (talk, later):
            assert word in (await one.do("POST", "/resume", replay=1))["summary"]
        made = await act(ada, wrong, "retract", reason=WHY)
        assert len(made["withdrawn"]) >= 3
        for one in (talk, later):
            resumed = await one.do("POST", "/resume", replay=1)
            assert word not in resumed["summary"]
        assert word not in str(await talk.do("GET", "/checkpoints"))
        assert word not in str(await talk.texts())
        assert word not in texts(await compiled(ada, session_id=later.id, window=4_000))
        await act(ada, wrong, "undo")
        for one in (talk, later):
            assert word in (await one.do("POST", "/resume", replay=1))["summary"]
    # A summary is made anew from the turns that remain.
    await act(ada, added[0], "retract", reason=WHY)
    assert await talk.texts() == [one["content"] for one in turns[1:]]
    await talk.do("POST", "/checkpoints", trigger="periodic")
    summary = (await talk.do("POST", "/resume", replay=1))["summary"]
    assert "42 euros" in summary
    assert "Mimi" not in summary
    fork = await talk.do("POST", "/fork", title="Fork")
    assert fork["counts"]["turn_count"] == 2


async def test_withdrawn_memory_expires_with_its_retention(service: RunningService) -> None:
    ada = await service.agent("ada")
    lasting = await note(ada, "lasting", "The office is in Graz.")
    short = await note(ada, "short", "Go to Graz.", lasting, ttl="duration:P2D")
    wrong = await note(ada, "wrong", "Graz is in Italy.")
    await act(ada, lasting, "retract", reason=WHY)
    await act(ada, wrong, "correct", text="Graz is in Austria.", reason=WHY)
    assert (await read(ada, lasting))["expires_at"] == "2026-03-04T02:40:00.000Z"
    assert (await read(ada, short))["expires_at"] == short["expires_at"]
    service.clock.advance(DAYS)
    await act(ada, lasting, "undo")
    assert (await read(ada, lasting))["expires_at"] is None
    assert (await read(ada, short))["expires_at"] == short["expires_at"]
    await act(ada, lasting, "retract", reason=WHY)
    service.clock.advance(30 * DAYS)
    await sweep(service.services)
    assert (await ada.get(f"{MEMORY}/{lasting['id']}")).status_code == 404
    assert (await read(ada, wrong))["value"] == {"text": "Graz is in Austria."}
    reply = await ada.post(f"{MEMORY}/{wrong['id']}/undo")
    assert "not kept" in assert_problem(reply, 409, "INVALID_TRANSITION")["detail"]


async def test_the_states_from_before_come_back(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    older = await note(ada, "older", "The office is in Graz.")
    newer = await note(ada, "newer", "The office is in Linz.")
    headers = {"If-Match": "1"}
    path = f"{MEMORY}/{older['id']}/superseded_by"
    await ada.put(path, json={"newer_id": newer["id"]}, headers=headers)
    await act(ada, older, "retract", reason=WHY)
    back = (await act(ada, older, "undo"))["entry"]
    assert (back["state"], back["provenance"]["superseded_by"]) == ("superseded", newer["id"])

    async def quarantine(context: OperationContext) -> Any:
        entry = await load_authorized_entry(context, Verb.UPDATE, newer["id"])
        return await set_state(context, entry, "quarantined")

    await run_write(service.services, ADA, quarantine)
    await act(ada, newer, "retract", reason=WHY)
    await act(ada, newer, "undo")
    assert await states(ada, newer) == ["quarantined"]


async def test_json_rpc_names_the_same_operations(ada: httpx.AsyncClient) -> None:
    office = await note(ada, "office", "Graz")
    for method, params, text in (
        ("correct_entry", {"text": "Linz", "reason": WHY, "if_match": 1}, "Linz"),
        ("retract_entry", {"reason": WHY}, "Linz"),
        ("undo_correction", {}, "Linz"),
        ("undo_correction", {}, "Graz"),
    ):
        given = {"entry_id": office["id"], **params}
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        reply = (await ada.post("/rpc", json=call)).json()
        assert reply["result"]["entry"]["value"] == {"text": text}, reply


async def test_forgetting_a_person_finds_the_earlier_value(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    about = {"subjects": ["ann"], "sensitivity": "restricted"}
    wrong = await note(ada, "wrong", "Ann lives in Graz.", **about)
    await act(ada, wrong, "correct", text="Ann lives in Linz.", reason=WHY)
    assert len((await everything(service)).entries) == 2
    chief = await service.agent("chief", permissions=tuple(Permission))
    reply = await chief.post("/api/v1/subjects/ann/forget")
    assert reply.status_code == 200, reply.text
    assert (await everything(service)).entries == ()


async def test_a_key_makes_a_repeated_request_harmless(ada: httpx.AsyncClient) -> None:
    office = await note(ada, "office", "The office is in Graz.")
    path, headers = f"{MEMORY}/{office['id']}/correct", {"Idempotency-Key": "one"}
    body = {"text": "The office is in Linz.", "reason": WHY}
    first = await ada.post(path, json=body, headers=headers)
    assert first.status_code == 200
    assert (await ada.post(path, json=body, headers=headers)).json() == first.json()
    assert (await read(ada, office))["version"] == 2


async def test_what_is_refused_changes_nothing(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    office = await note(ada, "office", "The office is in Graz.")
    number = await make(ada, "n", memory_type="episodic", value={"n": 1})
    talk = await begin(ada)
    turn = (await talk.add("a"))["turns"][0]
    path = f"{MEMORY}/{office['id']}"
    before = await everything(service)
    right = {"text": "x", "reason": WHY}
    for target, verb, body, status in (
        (office, "correct", {"text": "x"}, 422),
        (office, "correct", {"reason": WHY}, 422),
        (office, "correct", {"text": "x", "value": {}, "reason": WHY}, 422),
        (office, "correct", {"text": "x", "reason": " "}, 422),
        (office, "correct", {"text": "x", "reason": "x" * 1_001}, 422),
        (office, "correct", {"text": "x" * 70_000, "reason": WHY}, 413),
        (office, "retract", {}, 422),
        (number, "correct", right, 422),
        (turn, "correct", right, 422),
        ({"id": talk.id}, "retract", {"reason": WHY}, 422),
        ({"id": "mem_missing"}, "retract", {"reason": WHY}, 404),
        (office, "undo", {}, 409),
    ):
        reply = await ada.post(f"{MEMORY}/{target['id']}/{verb}", json=body)
        assert_problem(reply, status)
    stale = {"If-Match": "9"}
    for verb, body in (("correct", right), ("retract", {"reason": WHY}), ("undo", {})):
        reply = await ada.post(f"{path}/{verb}", json=body, headers=stale)
        assert_problem(reply, 409, "VERSION_MISMATCH")
    assert await everything(service) == before
    async with await service.agent("ada", permissions=(Permission.READ,)) as reader:
        assert_problem(await reader.post(f"{path}/retract", json={"reason": WHY}), 403)


@pytest.mark.parametrize("verb", ["correct", "retract", "undo"])
async def test_a_caller_that_may_not_read_gets_nothing_to_read(
    service: RunningService, ada: httpx.AsyncClient, verb: str
) -> None:
    office = await note(ada, "office", "The office is in Graz.", tags=["x"])
    await note(ada, "trip", "Visit Graz.", office)
    async with await service.agent("ada", permissions=(Permission.WRITE,)) as blind:
        given: Entry = {"reason": WHY}
        if verb == "undo":
            await act(ada, office, "retract", **given)
            given = {}
        if verb == "correct":
            path = f"{MEMORY}/{office['id']}/correct"
            assert_problem(await blind.post(path, json={"text": "x", **given}), 403)
            given["value"] = {"text": "The office is in Linz."}
        made = await act(blind, office, verb, **given)
    assert (made["withdrawn"], made["reinstated"], made["hidden"]) == ([], [], 1)
    assert made["entry"].get("value") == given.get("value")
    assert made["entry"]["tags"] == []
    assert made["entry"]["provenance"].keys().isdisjoint({"withdrawal", "correction"})


async def test_many_derived_entries_are_withdrawn_and_too_many_are_refused(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    root = await note(ada, "root", "Graz", memory_type="semantic")
    element = {
        "memory_type": "semantic",
        "namespace": "many",
        "value": {"text": "Graz"},
        "derived_from": [{"id": root["id"], "version": 1}],
    }
    elements = [{**element, "key": f"k{number}"} for number in range(1_000)]
    reply = await ada.post(f"{MEMORY}/batch", json={"entries": elements})
    assert reply.status_code == 200, reply.text
    assert len((await act(ada, root, "retract", reason=WHY))["withdrawn"]) == 1_000
    assert len((await act(ada, root, "undo"))["reinstated"]) == 1_000
    one = {**element, "key": "one-more", "derived_from": [{"id": root["id"], "version": 3}]}
    assert (await ada.post(MEMORY, json=one)).status_code == 201
    refused = await ada.post(f"{MEMORY}/{root['id']}/retract", json={"reason": WHY})
    assert "1000" in assert_problem(refused, 422)["detail"]
    assert await states(ada, root) == ["live"]


async def test_a_reason_is_masked_by_the_policy_of_personal_data(tmp_path: Any) -> None:
    async with open_service(tmp_path, personal_data="mask") as service:
        ada = await service.agent("ada")
        office = await note(ada, "office", "The office is in Graz.")
        made = await act(ada, office, "retract", reason="ask ann@example.com")
        assert "ann@" not in str(made)
        assert "ask" in made["entry"]["provenance"]["withdrawal"]["reason"]
