"""What the server says of remembered texts, what a tenant refuses, and what memory has already."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.operations import worthiness
from memorywall.records.principal import Permission, PrincipalKind
from tests.http.checks import (
    BATCH,
    EVERY_PERMISSION,
    MEMORY,
    assert_problem,
    everything,
    make,
)
from tests.support.service import RunningService, draft, open_service

pytestmark = pytest.mark.anyio

REMEMBER = "/api/v1/remember"
WORTHINESS = "/api/v1/worthiness"
FACT = "Ana is allergic to peanuts."
ROUNDS = 30
PATIENCE = 60.0


@pytest.fixture
async def chief(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("chief", permissions=EVERY_PERMISSION)


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def _remember(client: httpx.AsyncClient, text: str, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    return await client.post(REMEMBER, json={"text": text, **fields}, headers=headers)


async def _entry(client: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    response = await _remember(client, text, **fields)
    assert response.status_code in (200, 201), response.text
    entry: dict[str, Any] = response.json()
    return entry


async def _set(chief: httpx.AsyncClient, mode: str | None) -> None:
    response = await chief.put(WORTHINESS, json={"mode": mode})
    assert response.status_code == 200, response.text


async def _counts(chief: httpx.AsyncClient) -> dict[str, int]:
    shown = (await chief.get(WORTHINESS)).json()
    return {rule["name"]: rule["count"] for rule in shown["rules"] if rule["count"]}


async def test_a_remembered_text_is_stored_with_a_verdict(
    ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    made = await _remember(ada, FACT)
    assert (made.status_code, made.json()["worthiness"]["worthy"]) == (201, True)
    for text, rule in (("Thanks!", "small_talk"), ("Where is it?", "question")):
        response = await _remember(ada, text)
        assert response.status_code == 201
        assert response.json()["worthiness"] == {"worthy": False, "rule": rule}
        assert "worthiness" not in (await ada.get(f"{MEMORY}/{response.json()['id']}")).json()
    assert "worthiness" not in await make(ada)
    counts = await _counts(chief)
    assert (counts["small_talk"], counts["question"]) == (1, 1)
    scraped = (await chief.get("/metrics")).text
    assert 'memorywall_worthiness_verdicts_total{rule="small_talk"} 1.0' in scraped
    assert "default" not in scraped


async def test_a_tenant_refuses_but_never_what_a_person_says(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    other = await service.agent("bob", tenant="other")
    person = await service.agent("ana", kind=PrincipalKind.USER)
    await _set(chief, "refuse")
    before = await everything(service)
    refused = await _remember(ada, "Thanks!")
    assert assert_problem(refused, 409, "REFUSED_BY_RULE")["rule"] == "small_talk"
    assert "Thanks" not in refused.text
    assert await everything(service) == before
    assert (await _entry(ada, FACT))["worthiness"]["worthy"]
    assert (await _entry(person, "Thanks!"))["worthiness"]["rule"] == "small_talk"
    assert (await _remember(other, "Thanks!")).status_code == 201
    assert (await ada.post(MEMORY, json=draft(value={"text": "Thanks!"}))).status_code == 201
    assert (await _counts(chief))["small_talk"] == 2
    shown = (await chief.get(WORTHINESS)).json()
    assert (shown["mode"], shown["is_own"]) == ("refuse", True)
    await _set(chief, None)
    shown = (await chief.get(WORTHINESS)).json()
    assert (shown["mode"], shown["is_own"]) == ("mark", False)
    assert (await _remember(ada, "Thanks!")).status_code == 201


async def test_only_an_administrator_of_the_tenant_sets_it_and_sees_its_counts(
    service: RunningService, ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    await _entry(ada, FACT)
    shown = (await ada.get(WORTHINESS)).json()
    assert (shown["mode"], {rule["count"] for rule in shown["rules"]}) == ("mark", {None})
    assert (await _counts(chief)) == {"constraint": 1}
    mute = await service.agent("eve", permissions=[Permission.WRITE])
    assert_problem(await mute.get(WORTHINESS), 403)
    assert_problem(await ada.put(WORTHINESS, json={"mode": "off"}), 403)
    for body in ({"mode": "loud"}, {}, {"mode": "off", "x": 1}):
        assert_problem(await chief.put(WORTHINESS, json=body), 422)
    assert (await chief.get(WORTHINESS)).json()["is_own"] is False


async def test_a_server_may_judge_nothing(tmp_path: Path) -> None:
    async with open_service(tmp_path, worthiness="off") as service:
        ada = await service.agent("ada", permissions=EVERY_PERMISSION)
        first, second = await _entry(ada, FACT), await _entry(ada, FACT)
        assert first["id"] != second["id"]
        assert "worthiness" not in first
        judged = await ada.post(f"{BATCH}?judge=true", json={"entries": [draft()]})
        assert "verdicts" not in judged.json()
        await _set(ada, "refuse")
        assert_problem(await _remember(ada, "Thanks!"), 409)


async def test_what_memory_says_already_is_the_entry_that_says_it(ada: httpx.AsyncClient) -> None:
    first = await _entry(ada, FACT)
    for text in (FACT, f"- {FACT}", f"Recalled: {FACT}", FACT.lower()):
        again = await _remember(ada, text)
        assert (again.status_code, again.headers["etag"]) == (200, '"1"')
        assert again.json() == {
            **first,
            "worthiness": {"worthy": False, "rule": "duplicate"},
        }
    for text in ("Ana is no longer allergic to peanuts.", "Ben is allergic to peanuts."):
        assert (await _remember(ada, text)).status_code == 201
    assert (await ada.get(MEMORY)).json()["total"] == 3


async def test_requests_that_run_at_once_store_a_text_once(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["Ana likes tea. She drinks 3 cups a day.", "Ben must not be called before nine."] * 4
    compare, compared = worthiness.compare_text, asyncio.Barrier(len(texts))

    async def meet(*args: Any, **options: Any) -> Any:
        found = await compare(*args, **options)
        await asyncio.wait_for(compared.wait(), PATIENCE)
        return found

    monkeypatch.setattr(worthiness, "compare_text", meet)
    replies = await asyncio.gather(*(_remember(ada, text) for text in texts))
    assert sorted(one.status_code for one in replies) == [200] * 6 + [201] * 2
    assert len({one.json()["id"] for one in replies}) == 2
    assert (await ada.get(MEMORY)).json()["total"] == 2


async def test_a_text_of_many_entries_is_known(ada: httpx.AsyncClient) -> None:
    stated = [f"Machine {number} stands in hall {number + 7}." for number in range(40)]
    for one in stated:
        await _entry(ada, one)
    # Without the marks between its sentences, and with one that a stored text goes on after.
    assert (await _remember(ada, " ".join(stated).replace(".", ""))).status_code == 200
    assert (await _remember(ada, " ".join(stated).replace("hall 46", "hall"))).status_code == 201


async def test_a_long_text_beside_a_stored_one_without_an_end_delays_nobody(
    ada: httpx.AsyncClient,
) -> None:
    await _entry(ada, "tea " * 2_000)
    await _entry(ada, "tea")
    made, _ = await asyncio.wait_for(
        asyncio.gather(_remember(ada, "tea " * 3_999), ada.get(MEMORY)), PATIENCE
    )
    assert made.status_code in (200, 201)


async def test_who_may_not_read_an_entry_adds_another(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    ben = await service.agent("ben")
    await _entry(ada, FACT)
    assert (await _remember(ben, FACT)).status_code == 201
    shared = await make(
        ada, "k", namespace="facts", memory_type="semantic", value={"text": "Ana likes tea."}
    )
    known = await _remember(ben, "Ana likes tea.")
    assert (known.status_code, known.json()["id"]) == (200, shared["id"])
    writer = await service.agent("eve", read_only=True)
    assert_problem(await _remember(writer, "Ana likes tea."), 403)


async def test_an_entry_stands_only_for_what_it_is_about_and_lasts_for(
    ada: httpx.AsyncClient,
) -> None:
    text = "I prefer aisle seats."
    ana = await _entry(ada, text, subjects=["ana"])
    assert (await _entry(ada, text, subjects=["ana"]))["id"] == ana["id"]
    others = [await _entry(ada, text, subjects=some) for some in (["ben"], [], ["ana", "ben"])]
    assert len({ana["id"], *(one["id"] for one in others)}) == 4
    brief = await _entry(ada, FACT, ttl="duration:PT1H")
    assert (await _entry(ada, FACT, ttl="duration:PT30M"))["id"] == brief["id"]
    lasting = await _entry(ada, FACT)
    assert lasting["id"] != brief["id"]
    sealed = await _entry(ada, FACT, sensitivity="restricted")
    assert sealed["id"] not in (brief["id"], lasting["id"])


async def test_a_person_may_say_again_what_was_said_before_the_opposite(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    person = await service.agent("ana", kind=PrincipalKind.USER)
    for client, number in ((person, 3), (ada, 2)):
        for text in ("I like strong tea.", "I no longer like strong tea.", "I like strong tea."):
            await _entry(client, text)
            service.clock.advance(1.0)
        assert (await client.get(MEMORY)).json()["total"] == number


async def test_a_repeat_gets_the_first_reply(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    ben = await service.agent("ben")
    fact = {"namespace": "facts", "memory_type": "semantic", "value": {"text": FACT}}
    shared = await make(ada, "k", **fact)
    key = {"Idempotency-Key": "one"}
    for _ in range(2):
        # The entry is another agent's, which this one may only read.
        known = await _remember(ben, FACT, headers=key)
        assert (known.status_code, known.json()["id"]) == (200, shared["id"])
    made = await _remember(ben, "Ana likes tea.", headers={"Idempotency-Key": "two"})
    again = await _remember(ben, "Ana likes tea.", headers={"Idempotency-Key": "two"})
    assert (made.status_code, again.status_code) == (201, 201)
    assert made.content == again.content
    await ada.delete(f"{MEMORY}/{shared['id']}")
    assert_problem(await _remember(ben, FACT, headers=key), 410)
    assert (await _remember(ben, FACT)).status_code == 201


async def test_ingesting_what_was_recalled_adds_nothing(ada: httpx.AsyncClient) -> None:
    texts = [
        *(f"Customer {number} pays by invoice within {number + 10} days." for number in range(20)),
        "Ana likes tea.",
        "Ana no longer likes coffee. It keeps her awake.",
        "订单号是RE-2291。",
        "No, that's wrong: the fee is 9 euros.",
    ]
    for text in texts:
        assert (await _remember(ada, text)).status_code == 201
    seed = random.randrange(10_000)
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        asked = {"query": rng.choice(texts), "limit": 5}
        hits = (await ada.post(f"{MEMORY}/search", json=asked)).json()["results"]
        said = [hit["entry"]["value"]["text"] for hit in hits]
        rng.shuffle(said)
        listed = "\n".join(f"- {one}" for one in said)
        numbered = "\n".join(f'{place}. "{one}"' for place, one in enumerate(said, start=1))
        forms = (said[0], f"Recalled: {said[0]}", listed, f"Relevant memories:\n{numbered}")
        response = await _remember(ada, rng.choice(forms))
        assert response.status_code == 200, (seed, response.text)
    assert (await ada.get(MEMORY)).json()["total"] == len(texts), seed


async def test_a_judged_batch_leaves_out_what_the_tenant_refuses(
    ada: httpx.AsyncClient, chief: httpx.AsyncClient
) -> None:
    async def write(*texts: str, judge: bool = True, **fields: Any) -> httpx.Response:
        elements = [
            draft(f"k-{text}", value={"text": text, **fields}, memory_type="episodic")
            for text in texts
        ]
        where = f"{BATCH}?judge={'true' if judge else 'false'}"
        return await ada.post(where, json={"entries": elements})

    marked = (await write("Thanks!", FACT)).json()
    assert [one["worthy"] for one in marked["verdicts"]] == [False, True]
    assert len(marked["entries"]) == 2
    await _set(chief, "refuse")
    left = (await write("Thanks a lot!", "Ana likes tea.")).json()
    assert left["verdicts"] == [
        {"worthy": False, "rule": "small_talk", "refused": True},
        {"worthy": True, "rule": "fact"},
    ]
    assert [one["key"] for one in left["entries"]] == ["k-Ana likes tea."]
    # The index of an error counts the elements of the request.
    assert assert_problem(await write("Hello!", "Ana likes tea."), 409)["index"] == 1
    assert (await write("Bye!", "Hello!")).json()["created"] == 0
    assert (await write("Bye!", role="user")).json()["created"] == 1
    unjudged = (await write("Thank you!", judge=False)).json()
    assert "verdicts" not in unjudged
    assert unjudged["created"] == 1
