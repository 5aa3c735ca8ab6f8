"""Sessions over HTTP: turns, checkpoints, resuming, forking, participants and the end of a
session."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.job_runner import run_everywhere
from memorywall.kinds.sessions import Turn
from memorywall.records.entry import Entry
from memorywall.records.principal import Permission
from memorywall.service.erasure.entry_erasure import forget
from memorywall.service.erasure.subject_erasure import erase_subject
from memorywall.storage.port import Transaction
from tests.http.checks import BATCH, MEMORY, assert_problem
from tests.support.damage import verified
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

SESSIONS = "/api/v1/sessions"
TENANT = "default"


class Talk:
    """A client of one session."""

    def __init__(self, client: httpx.AsyncClient, session_id: str) -> None:
        self.client = client
        self.id = session_id
        self.path = f"{SESSIONS}/{session_id}"

    async def ask(self, method: str, rest: str = "", **body: Any) -> httpx.Response:
        return await self.client.request(method, self.path + rest, json=body or None)

    async def do(self, method: str, rest: str = "", **body: Any) -> Any:
        response = await self.ask(method, rest, **body)
        assert response.status_code < 300, response.text
        return response.json() if response.content else None

    async def add(self, *texts: str, **fields: Any) -> Any:
        turns = [{"role": "user", "content": text, **fields} for text in texts]
        return await self.do("POST", "/turns", turns=turns)

    async def texts(self, query: str = "") -> list[str]:
        return [one["content"] for one in (await self.do("GET", f"/turns{query}"))["turns"]]

    def by(self, client: httpx.AsyncClient) -> Talk:
        return Talk(client, self.id)


async def begin(client: httpx.AsyncClient, **fields: Any) -> Talk:
    response = await client.post(SESSIONS, json=fields)
    assert response.status_code == 201, response.text
    return Talk(client, response.json()["id"])


async def open_sessions(client: httpx.AsyncClient, status: str = "open", **query: Any) -> list[str]:
    """The ids of the sessions with a status, newest first."""
    page = await client.get(SESSIONS, params={"status": status, **query})
    return [one["id"] for one in page.json()["sessions"]]


@pytest.fixture
async def ada(service: RunningService) -> httpx.AsyncClient:
    return await service.agent("ada")


async def test_turns_are_counted_from_one_and_paged(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada, subject="ann", title="Refund")
    assert (await talk.add("a", "b"))["counts"]["last_sequence"] == 2
    added = await talk.add("c")
    assert [one["sequence"] for one in added["turns"]] == [3]
    assert await talk.texts() == ["a", "b", "c"]
    assert await talk.texts("?after=1&limit=1") == ["b"]
    assert await talk.texts("?newest_first=true&before_sequence=3") == ["b", "a"]
    shown = await talk.do("GET")
    assert (shown["status"], shown["subject"], shown["version"]) == ("active", "ann", 1)
    assert shown["counts"]["turn_count"] == 3
    assert shown["counts"]["token_usage"] == sum(one["tokens"] for one in added["turns"]) * 3


async def test_a_repeated_client_id_returns_the_turn_that_is_there(ada: httpx.AsyncClient) -> None:
    talk, other = await begin(ada), await begin(ada)
    first = await talk.add("a", client_id="c1")
    assert (await talk.add("a", client_id="c1"))["turns"] == first["turns"]
    mixed = [{"role": "user", "content": text, "client_id": one} for text, one in ("a1", "b2")]
    mixed[0] |= {"client_id": "c1", "valid_for": "PT1H"}
    added = (await talk.do("POST", "/turns", turns=mixed))["turns"]
    assert [one["sequence"] for one in added] == [1, 2]
    assert (await other.add("b", client_id="c1"))["turns"][0]["sequence"] == 1
    await talk.do("POST", "/close", reason="x")
    assert (await talk.add("a", client_id="c1"))["turns"] == first["turns"]


async def test_only_the_last_turn_is_removed_on_request(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    await talk.add("a", "b", "c")
    answer = await talk.ask("DELETE", "/turns?first=2&last=2")
    assert_problem(answer, 409, "VERSION_MISMATCH")
    assert await talk.texts() == ["a", "b", "c"]
    path, headers = f"{SESSIONS}/{talk.id}/turns?first=3&last=3", {"Idempotency-Key": "k"}
    removed = [await ada.delete(path, headers=headers) for _ in range(2)]
    assert removed[0].status_code == 200
    assert removed[1].content == removed[0].content
    assert await talk.texts() == ["a", "b"]


async def test_a_session_is_found_by_the_name_that_its_agent_gave_it(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    bob, other = await service.agent("bob"), await service.agent("ada", tenant="other")
    about = ({}, {"user": "ann"}, {"user": "bea"})
    made = [
        (await begin(client, client_id="t 1", **user)).id
        for client in (ada, bob, other)
        for user in about
    ]
    assert len(set(made)) == 9
    assert (await begin(ada, client_id="t 1", user="ann", title="x")).id == made[1]
    for place, user in enumerate(about):
        found = (await ada.get(SESSIONS, params={"client_id": "t 1", **user})).json()
        assert [one["id"] for one in found["sessions"]] == [made[place]]
        assert found["sessions"][0]["client_id"] == "t 1"
    bound = {"X-Subject": "bea"}
    found = (await ada.get(SESSIONS, params={"client_id": "t 1"}, headers=bound)).json()
    assert [one["id"] for one in found["sessions"]] == [made[2]]
    talk = Talk(ada, made[1])
    assert (await talk.do("POST", "/fork", title="y"))["client_id"] is None
    await talk.do("POST", "/close", reason="x")
    assert (await begin(ada, client_id="t 1", user="ann")).id == made[1]
    await talk.do("DELETE")
    assert (await ada.get(SESSIONS, params={"client_id": "t 1", "user": "ann"})).json() == {
        "sessions": [],
        "next": None,
    }
    assert (await begin(ada, client_id="t 1", user="ann")).id not in made
    wrong: tuple[tuple[dict[str, Any], int], ...] = (
        ({"client_id": "\0"}, 422), ({"client_id": "x" * 257}, 422),
        ({"client_id": "x", "reuse": True}, 422),
        ({"client_id": "ann@example.com", "policy": {"personal_data": "mask"}}, 422),
    )  # fmt: skip
    for body, status in wrong:
        assert "client_id" in assert_problem(await ada.post(SESSIONS, json=body), status)["detail"]
    answer = await ada.get(SESSIONS, params={"client_id": "x", "status": "open"})
    assert "client_id" in assert_problem(answer, 400)["detail"]
    assert verified(service.services.settings.sqlite_path).problems == []


@pytest.mark.parametrize(
    "other",
    [
        {"content": "other"},
        {"role": "assistant"},
        {"source": "file:a"},
        {"trusted": False},
        {"metadata": {"a": 1}},
    ],
    ids=str,
)
async def test_a_client_id_with_other_content_is_refused(
    ada: httpx.AsyncClient, other: dict[str, Any]
) -> None:
    talk = await begin(ada)
    await talk.add("a", client_id="c1")
    turn = {"role": "user", "content": "a", "client_id": "c1"}
    turns = [{"role": "user", "content": "before"}, turn | other]
    refused = await talk.ask("POST", "/turns", turns=turns)
    assert "turns[1].client_id" in assert_problem(refused, 409)["detail"]
    assert await talk.texts() == ["a"]


async def test_authors_choose_client_ids_for_themselves(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, participants=[{"agent_id": "bob"}])
    bob = talk.by(await service.agent("bob"))
    mine = (await talk.add("from ada", client_id="a-0"))["turns"]
    his = (await bob.add("from bob", client_id="a-0"))["turns"]
    assert await talk.texts() == ["from ada", "from bob"]
    assert (await bob.add("from bob", client_id="a-0"))["turns"] == his
    assert (await talk.add("from ada", client_id="a-0"))["turns"] == mine


async def test_a_request_has_each_client_id_once(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    turns = [{"role": "user", "content": one, "client_id": "d"} for one in ("a", "b")]
    refused = await talk.ask("POST", "/turns", turns=turns)
    detail = assert_problem(refused, 422)["detail"]
    assert "`turns[1].client_id`" in detail
    assert "`turns[0]`" in detail
    assert await talk.texts() == []


async def test_a_repeat_is_known_after_a_change_of_the_policy(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    for policy in ("keep", "mask", "mark", "keep"):
        await talk.do("PATCH", policy={"personal_data": policy})
        for text in ("Mail ann@example.com", "Mail bob@example.com"):
            await talk.add(text, client_id=f"{text[5:8]} {policy}")
            for _ in range(2):
                await talk.add(text, client_id=f"{text[5:8]} keep")
    assert len(await talk.texts()) == 6
    refused = {"role": "user", "content": "Mail bob@example.com", "client_id": "ann keep"}
    assert_problem(await talk.ask("POST", "/turns", turns=[refused]), 409)


async def test_bad_turns_change_nothing(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    good = {"role": "user", "content": "good"}
    for bad, status in (
        ({"role": "assistant", "content": "x", "note": "x" * 70_000}, 413),
        ({"role": "user", "content": "x", "tool_call_id": "t"}, 422),
        ({"role": "user", "content": "x", "tool_calls": [{"id": "1", "name": "n"}]}, 422),
        ({"role": "user", "content": "x", "valid_for": "soon"}, 422),
        ({"role": "user", "content": "x", "said_at": "2026-01-01"}, 422),
        ({"role": "user", "content": "x", "client_id": ""}, 422),
        ({"role": "user", "content": "x", "metadata": {"a=b": 1}}, 422),
        ({"role": "user", "content": "x", "metadata": {"a": "x" * 257}}, 422),
        ({"role": "user", "content": "x", "metadata": {"a": {}}}, 422),
        ({"role": "user", "content": "x", "metadata": dict.fromkeys(map(str, range(17)), 1)}, 422),
        ({"role": "robot", "content": "x"}, 422),
        ({"role": "user", "content": [{"foo": "text"}]}, 422),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, 422),
    ):
        response = await talk.ask("POST", "/turns", turns=[good, bad])
        assert_problem(response, status)
    assert_problem(await talk.ask("POST", "/turns", turns=[]), 422)
    assert_problem(await talk.ask("POST", "/turns", turns=[good] * 101), 422)
    parts = [{"type": "text", "text": "x"}, {"text": "no type"}]
    response = await talk.ask("POST", "/turns", turns=[good, {"role": "user", "content": parts}])
    assert "`turns[1].content[1].type`" in response.json()["detail"]
    large = {"role": "user", "content": "x" * 17_000_000}
    assert_problem(await talk.ask("POST", "/turns", turns=[large]), 413)
    assert await talk.texts() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"ttl": "soon"},
        {"ttl": "PT1H", "ends_at": "2027-01-01T00:00:00Z"},
        {"ends_at": "2020-01-01T00:00:00Z"},
        {"idle_timeout": "PT"},
        {"policy": {"retention": "1 day"}},
        {"participants": [{"agent_id": "ada"}]},
        {"title": "x" * 257},
    ],
    ids=str,
)
async def test_invalid_session_is_refused(ada: httpx.AsyncClient, fields: dict[str, Any]) -> None:
    assert_problem(await ada.post(SESSIONS, json=fields), 422)
    assert (await ada.get(SESSIONS)).json() == {"sessions": [], "next": None}


async def test_unknown_and_foreign_sessions_look_alike(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    entry = (await ada.post(MEMORY, json={"namespace": "n", "memory_type": "episodic",
                                          "value": {}})).json()  # fmt: skip
    eve = talk.by(await service.agent("eve"))
    unknown, plain = Talk(ada, "unknown"), Talk(ada, entry["id"])
    turn = {"turns": [{"role": "user", "content": "x"}]}
    for method, rest, body in (
        ("GET", "", {}),
        ("GET", "/turns", {}),
        ("GET", "/checkpoints", {}),
        ("GET", "/export", {}),
        ("POST", "/turns", turn),
        ("POST", "/checkpoints", {"working": []}),
        ("POST", "/resume", {"replay": 1}),
        ("POST", "/fork", {"sequence": 0}),
        ("POST", "/close", {"reason": "x"}),
        ("POST", "/archive", {}),
        ("PATCH", "", {"title": "x"}),
        ("PUT", "/participants/bob", {"access": "read"}),
        ("DELETE", "/participants/bob", {}),
        ("DELETE", "/turns", {}),
        ("DELETE", "", {}),
    ):
        answers = [await one.ask(method, rest, **body) for one in (eve, unknown, plain)]
        assert [one.json() for one in answers] == [answers[0].json()] * 3
        assert_problem(answers[0], 404, "NOT_FOUND")


async def test_participants_do_what_their_access_says(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, participants=[{"agent_id": "bob", "access": "read"}])
    bob = talk.by(await service.agent("bob"))
    await talk.add("a")
    assert await bob.texts() == ["a"]
    turn = {"turns": [{"role": "assistant", "content": "b"}]}
    assert_problem(await bob.ask("POST", "/turns", **turn), 403)
    await talk.do("PUT", "/participants/bob", access="append")
    assert (await bob.do("POST", "/turns", **turn))["turns"][0]["author"] == "bob"
    await bob.do("POST", "/checkpoints", trigger="shutdown")
    assert (await bob.do("POST", "/resume", replay=9))["session"]["status"] == "active"
    for method, rest, body in (
        ("POST", "/close", {"reason": "x"}),
        ("DELETE", "/turns", {}),
        ("DELETE", "", {}),
        ("PUT", "/participants/eve", {"access": "read"}),
    ):
        assert_problem(await bob.ask(method, rest, **body), 403)
    found = (await bob.client.get(SESSIONS, params={"agent_id": "ada"})).json()["sessions"]
    assert [one["id"] for one in found] == [talk.id]
    await bob.do("DELETE", "/participants/bob")
    assert_problem(await bob.ask("GET"), 404)
    assert (await bob.client.get(SESSIONS, params={"agent_id": "ada"})).json()["sessions"] == []


async def test_a_checkpoint_is_resumed_with_the_turns_after_its_summary(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada, state={"step": 1})
    await talk.add("The invoice 4711 must be paid by 3 May.", "Never call before 9.")
    made = await talk.do("POST", "/checkpoints", working=[{"a": 1}], state={"step": 2})
    assert (made["number"], made["first"], made["last"]) == (1, 1, 2)
    assert "4711" in made["summary"]
    assert (await talk.do("GET"))["status"] == "checkpointed"
    await talk.add("c")
    assert (await talk.do("GET"))["status"] == "active"
    resumed = await talk.do("POST", "/resume", replay=10)
    assert resumed["checkpoint"] == made
    assert resumed["session"]["state"] == {"step": 2}
    assert [one["content"] for one in resumed["turns"]] == ["c"]
    assert resumed["has_more"] is False
    later = await talk.do("POST", "/checkpoints", trigger="error_recovery")
    assert (later["number"], later["first"], later["last"]) == (2, 3, 3)
    again = await talk.do("POST", "/resume", checkpoint=1)
    assert again["checkpoint"]["number"] == 1
    assert_problem(await talk.ask("POST", "/resume", checkpoint=9), 404)


async def test_the_policy_makes_checkpoints_and_keeps_the_newest(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    policy = {"checkpoint_turns": 2, "checkpoints_kept": 2, "checkpoint_interval": "PT1H"}
    talk = await begin(ada, policy=policy, token_budget=20)
    for number in range(8):
        await talk.add(f"The amount is {number} euros.")
    found = (await talk.do("GET", "/checkpoints"))["checkpoints"]
    assert [(one["number"], one["first"], one["last"]) for one in found] == [(4, 7, 8), (3, 5, 6)]
    assert {one["trigger"] for one in found} == {"turn_count"}
    # The budget is used up, and the job summarizes.
    assert found[0]["summarized_through"] == 0
    assert await run_everywhere(service.services, END_SESSIONS_JOB, early=True) == 1
    assert await run_everywhere(service.services, END_SESSIONS_JOB, early=True) == 0
    assert (await talk.do("GET"))["counts"]["summarized_through"] == 8
    service.clock.advance(3_600)
    await talk.add("later")
    newest = (await talk.do("GET", "/checkpoints"))["checkpoints"][0]
    assert (newest["trigger"], newest["first"]) == ("periodic", 9)
    assert (newest["summarized_through"], "euros" in newest["summary"]) == (8, True)


async def test_fields_of_the_policy_are_replaced(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada, policy={"checkpoint_turns": 2, "retention": "P1D"})
    before = (await talk.do("GET"))["policy"]
    assert (await talk.do("PATCH", title="x"))["policy"] == before
    changed = await talk.do("PATCH", policy={"personal_data": "mask", "retention": None})
    # What has its default is omitted.
    assert changed["policy"] == {"checkpoint_turns": 2, "personal_data": "mask"}
    for bad in ({"retention": "1 day"}, {"checkpoints_kept": 0}, {"keep": True}):
        assert_problem(await talk.ask("PATCH", policy=bad), 422)
    assert (await talk.do("GET"))["policy"] == changed["policy"]


async def test_a_large_checkpoint_goes_to_an_attachment(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada)
    await talk.add("a")
    working = [{"text": "x" * 70_000}]
    made = await talk.do("POST", "/checkpoints", working=working)
    resumed = await talk.do("POST", "/resume", replay=0)
    assert resumed["checkpoint"]["working"] == made["working"] == working
    files = await ada.get(f"{MEMORY}/{made['id']}/attachments")
    assert len(files.json()) == 1
    assert verified(service.services.settings.sqlite_path).problems == []
    await talk.do("DELETE")

    async def count(to: Transaction) -> int:
        return len(await to.attachments.page())

    assert await service.services.store.read(TENANT, count) == 0


async def test_removed_turns_leave_no_trace_in_checkpoints(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    await talk.add("The code is 1111.")
    await talk.do("POST", "/checkpoints", trigger="shutdown")
    await talk.add("The code is 2222.", "The code is 3333.", client_id=None)
    await talk.do("POST", "/checkpoints", trigger="shutdown")
    shown = await talk.do("DELETE", "/turns?first=2")
    assert shown["counts"]["turn_count"] == shown["counts"]["last_sequence"] == 1
    assert shown["counts"]["summarized_through"] == 1
    export = await talk.do("GET", "/export")
    assert "2222" not in str(export)
    assert [one["number"] for one in export["checkpoints"]] == [1]
    assert (await talk.add("b"))["turns"][0]["sequence"] == 2
    cleared = await talk.do("DELETE", "/turns")
    assert cleared["counts"]["token_usage"] == cleared["counts"]["turn_count"] == 0
    assert (await talk.do("GET", "/checkpoints"))["checkpoints"] == []


async def test_a_fork_has_copies_and_continues_the_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, subject="ann", state={"a": 1})
    await talk.add("a", "b", "c")
    made = await talk.do("POST", "/fork", sequence=2, title="second")
    fork = Talk(ada, made["id"])
    assert (made["continues"], made["title"], made["subject"]) == (talk.id, "second", "ann")
    await fork.add("d")
    assert await fork.texts() == ["a", "b", "d"]
    assert await talk.texts() == ["a", "b", "c"]
    assert_problem(await talk.ask("POST", "/fork", sequence=4), 422)
    other = await ada.post(SESSIONS, json={"subject": "bob", "continues": talk.id})
    assert_problem(other, 422)
    assert verified(service.services.settings.sqlite_path).problems == []


async def test_sessions_are_listed_by_status_and_subject(ada: httpx.AsyncClient) -> None:
    talks = [await begin(ada, subject=name) for name in ("ann", "bob", "ann")]
    await talks[0].do("POST", "/close", reason="x")

    async def listed(**query: Any) -> list[int]:
        page = (await ada.get(SESSIONS, params=query)).json()
        return [[one.id for one in talks].index(one["id"]) for one in page["sessions"]]

    assert await listed() == [2, 1, 0]
    assert await listed(subject="ann") == [2, 0]
    assert await listed(subject="ann", status="active") == [2]
    page = (await ada.get(SESSIONS, params={"limit": 2})).json()
    assert page["next"] == talks[1].id
    assert await listed(before=page["next"]) == [0]


async def test_open_sessions_are_those_that_accept_turns(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    idle = [await begin(ada, idle_timeout="PT30M") for _ in range(3)]
    paused, closed = await begin(ada), await begin(ada)
    await paused.add("a")
    await paused.do("POST", "/checkpoints", trigger="shutdown")
    await closed.do("POST", "/close", reason="x")
    assert await open_sessions(ada) == [paused.id, *(one.id for one in reversed(idle))]
    service.clock.advance(20 * 60)
    await idle[1].add("b")
    assert (await idle[1].do("GET"))["idle_at"] > (await idle[0].do("GET"))["idle_at"]
    service.clock.advance(20 * 60)
    # The job has closed none of them. A page contains what has the status now.
    assert await open_sessions(ada, limit=1) == [paused.id]
    assert await open_sessions(ada) == [paused.id, idle[1].id]
    assert await open_sessions(ada, "active") == [idle[1].id]
    assert await open_sessions(ada, "checkpointed") == [paused.id]
    assert await open_sessions(ada, "closed") == [closed.id, idle[2].id, idle[0].id]
    listed = (await ada.get(SESSIONS, params={"status": "checkpointed"})).json()["sessions"]
    assert listed == [await paused.do("GET")]
    assert listed[0]["counts"]["turn_count"] == 1


async def test_an_open_session_is_used_again(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    first = await begin(ada, subject="ann", title="one", idle_timeout="PT30M", reuse=True)
    nobodys, bobs = await begin(ada, reuse=True), await begin(ada, subject="bob", reuse=True)
    assert len({first.id, nobodys.id, bobs.id}) == 3
    again = await ada.post(SESSIONS, json={"subject": "ann", "title": "two", "reuse": True})
    assert (again.json()["id"], again.json()["title"]) == (first.id, "one")
    assert (await begin(ada, reuse=True)).id == nobodys.id
    bound = await ada.post(SESSIONS, json={"reuse": True}, headers={"X-Subject": "bob"})
    assert bound.json()["id"] == bobs.id
    eve = await service.agent("eve")
    assert (await begin(eve, subject="ann", reuse=True)).id != first.id
    await first.do("POST", "/checkpoints", trigger="shutdown")
    assert (await begin(ada, subject="ann", reuse=True)).id == first.id
    service.clock.advance(31 * 60)
    later = await begin(ada, subject="ann", reuse=True)
    assert later.id != first.id
    await later.do("POST", "/close", reason="x")
    assert (await begin(ada, subject="ann", reuse=True)).id not in (first.id, later.id)


async def test_resume_returns_the_newest_turns_of_those_that_no_summary_covers(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada, policy={"checkpoint_turns": 4})
    await talk.add(*"abcdefg")
    resumed = await talk.do("POST", "/resume", replay=3)
    assert resumed["checkpoint"]["summarized_through"] == 0
    assert [one["content"] for one in resumed["turns"]] == ["e", "f", "g"]
    assert resumed["has_more"] is True
    first = resumed["turns"][0]["sequence"]
    assert await talk.texts(f"?before_sequence={first}") == ["a", "b", "c", "d"]
    whole = await talk.do("POST", "/resume", replay=7)
    assert [one["content"] for one in whole["turns"]] == list("abcdefg")
    assert whole["has_more"] is False


async def test_a_request_bound_to_a_person_sees_only_their_sessions(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada, subject="ann")
    own, other = {"X-Subject": "ann"}, {"X-Subject": "bob"}
    assert (await ada.get(talk.path, headers=own)).status_code == 200
    assert_problem(await ada.get(talk.path, headers=other), 404)
    assert (await ada.get(SESSIONS, headers=other)).json()["sessions"] == []
    made = await ada.post(SESSIONS, json={}, headers=other)
    assert made.json()["subject"] == "bob"


async def test_a_session_ends_by_its_limits_and_by_request(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    hard = await begin(ada, ttl="PT1H")
    idle = await begin(ada, idle_timeout="PT30M")
    free = await begin(ada)
    service.clock.advance(20 * 60)
    await idle.add("a")
    service.clock.advance(20 * 60)
    assert await run_everywhere(service.services, END_SESSIONS_JOB, early=True) == 1
    assert (await idle.do("GET"))["status"] == "active"
    service.clock.advance(20 * 60)
    for talk in (hard, idle):
        # The session has ended, whether or not the job has closed it.
        turn = {"turns": [{"role": "user", "content": "x"}]}
        assert_problem(await talk.ask("POST", "/turns", **turn), 409, "SESSION_CLOSED")
        assert (await talk.do("GET"))["status"] == "closed"
    assert await open_sessions(ada) == [free.id]
    await run_everywhere(service.services, END_SESSIONS_JOB, early=True)
    assert await run_everywhere(service.services, END_SESSIONS_JOB, early=True) == 0
    for talk, reason in ((hard, "expired"), (idle, "idle")):
        shown = await talk.do("GET")
        assert (shown["status"], shown["closed_reason"]) == ("closed", reason)
    await free.do("POST", "/close", reason="solved")
    assert (await free.do("POST", "/close", reason="again"))["closed_reason"] == "solved"
    for rest, body in (
        ("/turns", {"turns": [{"role": "user", "content": "x"}]}),
        ("/checkpoints", {"working": []}),
        ("/resume", {"replay": 1}),
    ):
        assert_problem(await free.ask("POST", rest, **body), 409, "SESSION_CLOSED")
    assert_problem(await free.ask("DELETE", "/turns"), 409, "SESSION_CLOSED")


async def test_a_session_has_the_default_lifetime_of_its_tier(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    chief = await service.agent("chief", permissions=tuple(Permission))
    free = await begin(ada)
    assert (await free.do("GET"))["ends_at"] is None
    narrowed = await chief.put("/api/v1/tiers/session", json={"default_ttl": "duration:PT1H"})
    assert narrowed.status_code == 200, narrowed.text
    default, short, long = (
        await begin(ada),
        await begin(ada, ttl="PT5M"),
        await begin(ada, ttl="P9D"),
    )
    ends = [(await one.do("GET"))["ends_at"] for one in (default, short, long)]
    assert ends == ["2026-02-02T03:40:00.000Z", "2026-02-02T02:45:00.000Z",
                    "2026-02-11T02:40:00.000Z"]  # fmt: skip
    fork = await free.do("POST", "/fork", title="again")
    assert fork["ends_at"] == ends[0]
    service.clock.advance(3_600)
    turn = {"turns": [{"role": "user", "content": "x"}]}
    assert_problem(await default.ask("POST", "/turns", **turn), 409, "SESSION_CLOSED")
    await free.add("still open")


async def test_plain_requests_delete_nothing_that_belongs_to_a_session(
    ada: httpx.AsyncClient,
) -> None:
    talk = await begin(ada)
    await talk.add("a", "b")
    made = await talk.do("POST", "/checkpoints", trigger="periodic")
    before = (await ada.get(MEMORY, params={"limit": 100})).json()
    for kind, operation in (
        ("turn", "`remove_turns` or `delete_session`"),
        ("checkpoint", "`remove_turns` or `delete_session`"),
        ("summary", "`remove_turns` or `delete_session`"),
        ("session", "`delete_session`"),
    ):
        page = (await ada.get(MEMORY, params={"kind": kind, "limit": 100})).json()
        assert page["entries"], kind
        for one in page["entries"]:
            refused = await ada.delete(f"{MEMORY}/{one['id']}")
            detail = assert_problem(refused, 422, "VALIDATION_ERROR")["detail"]
            assert f"`{kind}`" in detail
            assert operation in detail
        several = {"kind": kind, "agent_id": "ada", "memory_type": "session"}
        assert operation in assert_problem(await ada.delete(BATCH, params=several), 422)["detail"]
    everything = await ada.delete(BATCH, params={"agent_id": "ada", "namespace": "*"})
    assert everything.json() == {"deleted": 0}
    assert (await ada.get(MEMORY, params={"limit": 100})).json() == before
    assert (await talk.do("POST", "/resume", replay=9))["checkpoint"] == made


async def test_plain_entries_of_a_session_are_deleted_with_it(ada: httpx.AsyncClient) -> None:
    kept, gone = await begin(ada), await begin(ada)
    made = {}
    for talk in (kept, gone):
        for tier in ("session", "working", "episodic"):
            body = {"namespace": talk.id, "key": tier, "memory_type": tier, "value": {}}
            answer = await ada.post(MEMORY, json=body, headers={"X-Session-ID": talk.id})
            assert answer.status_code == 201, answer.text
            made[talk.id, tier] = answer.json()["id"]
    assert (await gone.ask("DELETE")).status_code == 204
    left = {place for place, one in made.items() if (await ada.get(f"{MEMORY}/{one}")).is_success}
    # An episode outlives the session that it comes from.
    assert left == made.keys() - {(gone.id, "session"), (gone.id, "working")}


async def test_an_archived_session_is_deleted_after_its_retention(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    kept, gone = await begin(ada), await begin(ada, policy={"retention": "P1D"})
    for talk in (kept, gone):
        await talk.add("a")
        plain = {"namespace": "n", "key": "k", "memory_type": "session", "value": {}}
        inside = {"X-Session-ID": talk.id}
        assert (await ada.post(MEMORY, json=plain, headers=inside)).status_code == 201
        assert (await talk.do("POST", "/archive"))["status"] == "archived"
    service.clock.advance(86_400)
    await run_everywhere(service.services, END_SESSIONS_JOB, early=True)
    assert_problem(await gone.ask("GET"), 404)
    assert await kept.texts() == ["a"]
    left = (await ada.get(MEMORY, params={"namespace": "n", "agent_id": "ada"})).json()["entries"]
    assert [one["scope"]["session_id"] for one in left] == [kept.id]
    assert verified(service.services.settings.sqlite_path).problems == []


async def test_a_clock_that_was_set_back_loses_no_turn(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, idle_timeout="PT30M", policy={"checkpoint_interval": "PT1M"})
    await talk.add("a")
    service.clock.advance(-3_600)
    await talk.add("b")
    await run_everywhere(service.services, END_SESSIONS_JOB, early=True)
    assert await talk.texts() == ["a", "b"]
    assert (await talk.do("GET"))["status"] == "active"


async def test_a_foreign_turn_quarantines_the_session(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    talk = await begin(ada, subject="ann")
    made = (await talk.add("a"))["turns"][0]

    async def plant(to: Transaction) -> None:
        entry = await to.entries.get(made["id"], service.services.now())
        assert isinstance(entry, Entry)
        turn = Turn(session_id=talk.id, sequence=2, role="user", content="foreign", author="eve")
        foreign = msgspec.structs.replace(
            entry, id="mem_x", owner="eve", agent_id="eve", key="0000000002",
            value=msgspec.json.encode(turn),
        )  # fmt: skip
        assert await to.entries.insert(foreign, service.services.now())

    await service.services.store.write(TENANT, plant)
    for _ in range(2):
        answer = await talk.ask("POST", "/resume", replay=9)
        assert_problem(answer, 409, "SESSION_QUARANTINED")
        assert "foreign" not in answer.text
    assert (await talk.do("GET"))["status"] == "quarantined"
    turn = {"turns": [{"role": "user", "content": "x"}]}
    assert_problem(await talk.ask("POST", "/turns", **turn), 409, "SESSION_QUARANTINED")
    assert_problem(await talk.ask("POST", "/close", reason="x"), 409, "SESSION_QUARANTINED")
    await talk.do("DELETE")


async def test_plain_requests_write_no_turns(ada: httpx.AsyncClient) -> None:
    talk = await begin(ada)
    made = (await talk.add("a"))["turns"][0]
    draft = {"namespace": "turns", "memory_type": "session", "kind": "turn",
             "value": {"sequence": 1, "role": "user", "content": "x", "author": "ada"}}  # fmt: skip
    assert_problem(await ada.post(MEMORY, json=draft), 422)
    change = await ada.patch(
        f"{MEMORY}/{made['id']}", json={"value": draft["value"]}, headers={"If-Match": '"1"'}
    )
    assert_problem(change, 422)
    assert (await ada.get(f"{MEMORY}/{made['id']}")).json()["scope"] == {"session_id": talk.id}


async def test_personal_data_is_masked_by_policy(ada: httpx.AsyncClient) -> None:
    text = "Write to ann@example.com please."
    masked = await begin(ada, policy={"personal_data": "mask"})
    marked = await begin(ada, policy={"personal_data": "mark"})
    assert (await masked.add(text))["turns"][0]["content"] == "Write to [email] please."
    turn = (await marked.add(text))["turns"][0]
    assert (turn["content"], turn["personal_data"]) == (text, ["email"])


async def test_a_session_leaves_with_its_agent_and_with_its_person(
    service: RunningService, ada: httpx.AsyncClient
) -> None:
    bob = await service.agent("bob")
    for client, name in ((ada, "ann"), (bob, "ann"), (bob, "carl")):
        talk = await begin(client, subject=name)
        await talk.add("a")
        await talk.do("POST", "/checkpoints", trigger="shutdown")
    await forget(service.services, TENANT, "ada")
    assert verified(service.services.settings.sqlite_path).problems == []
    await erase_subject(service.services, TENANT, "ann")
    assert verified(service.services.settings.sqlite_path).problems == []
    left = (await bob.get(SESSIONS)).json()["sessions"]
    assert [one["subject"] for one in left] == ["carl"]


async def test_a_turn_is_found_by_the_day_on_which_it_was_said(service: RunningService) -> None:
    """The clock of these tests stands in February 2026."""
    client = await service.agent("writer")
    talk = await begin(client)
    await talk.add("Ordered a stove", client_id="a", said_at="2025-03-04T10:00:00+01:00")
    await talk.add("Ordered a lamp")
    later, now = (await talk.do("GET", "/turns"))["turns"]
    assert later["said_at"] == "2025-03-04T09:00:00.000Z"
    assert "said_at" not in now
    # A repeat is the same turn, whenever it says that it was said.
    again = await talk.add("Ordered a stove", client_id="a", said_at="2025-05-05T00:00:00Z")
    assert again["turns"] == [later]
    for asked, first in (
        ("What was ordered in March 2025?", "Ordered a stove"),
        ("What was ordered in February 2026?", "Ordered a lamp"),
    ):
        found = await client.post("/api/v1/memory/search", json={"query": asked})
        assert found.status_code == 200, found.text
        assert found.json()["results"][0]["entry"]["value"]["content"] == first
