"""One word for a person on every surface: `user` binds, `about` filters, earlier names stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from memorywall.exceptions import RequestError, SubjectForgottenError, ValidationError
from memorywall.records.argument_names import current_names, nearest_name, unknown_names
from tests.cli.groups import group
from tests.cli.shell import Shell, misuse, new_directory, succeed
from tests.http.checks import MEMORY, assert_problem
from tests.support.service import RunningService, draft
from tests.test_sdk_support import World, fresh, server, take, world

pytestmark = pytest.mark.anyio
__all__ = ["server", "world"]


async def _three(client: httpx.AsyncClient) -> None:
    for key, people in (("ana", ["ana"]), ("bob", ["bob"]), ("nobody", [])):
        made = draft(key, memory_type="episodic", value={"text": "likes tea"}, subjects=people)
        assert (await client.post(MEMORY, json=made)).status_code == 201


@pytest.fixture
async def ada(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    async with await service.agent("ada") as client:
        await _three(client)
        yield client


async def _keys(client: httpx.AsyncClient, **asked: Any) -> list[str]:
    headers = asked.pop("headers", {})
    reply = await client.get(MEMORY, params=asked, headers=headers)
    assert reply.status_code == 200, reply.text
    return sorted(one["key"] for one in reply.json()["entries"])


async def test_the_header_and_the_parameter_bind_as_the_earlier_header_does(
    ada: httpx.AsyncClient,
) -> None:
    bound = ["ana", "nobody"]
    assert await _keys(ada, headers={"X-Subject": "ana"}) == bound
    assert await _keys(ada, headers={"X-User": "ana"}) == bound
    assert await _keys(ada, user="ana") == bound
    assert await _keys(ada, user="ana", headers={"X-User": "ana", "X-Subject": "ana"}) == bound
    assert await _keys(ada, user="ana,bob") == ["ana", "bob", "nobody"]
    for path, body in (("recall", {"question": "tea"}), ("memory/search", {"query": "tea"})):
        found = await ada.post(f"/api/v1/{path}", json={**body, "user": "ana"})
        assert sorted(one["entry"]["key"] for one in found.json()["results"]) == bound
    made = await ada.post("/api/v1/remember", json={"text": "likes jam", "user": "ana"})
    assert made.json()["subjects"] == ["ana"]


async def test_two_names_for_different_people_are_refused(ada: httpx.AsyncClient) -> None:
    both = {"X-Subject": "ana", "X-User": "bob"}
    detail = assert_problem(await ada.get(MEMORY, headers=both), 400)["detail"]
    assert "`X-Subject` and `X-User`" in detail
    call = {"jsonrpc": "2.0", "id": 1, "method": "query_entries", "params": {}}
    answer = (await ada.post("/rpc", json=call, headers=both)).json()
    assert "`X-Subject` and `X-User`" in answer["error"]["data"]["detail"]
    refused = await ada.get(MEMORY, params={"user": "ana"}, headers={"X-User": "bob"})
    assert "`X-User` and `user`" in assert_problem(refused, 400)["detail"]
    refused = await ada.get(MEMORY, params={"about": "ana", "subject": "bob"})
    assert "`about` and `subject`" in assert_problem(refused, 400)["detail"]
    twice = [("X-User", "ana"), ("X-User", "bob")]
    assert "`X-User` once" in assert_problem(await ada.get(MEMORY, headers=twice), 400)["detail"]


async def test_earlier_names_stay_valid(ada: httpx.AsyncClient) -> None:
    assert await _keys(ada, subject="ana") == await _keys(ada, about="ana") == ["ana"]
    for name in ("subject", "user"):
        made = await ada.post("/api/v1/sessions", json={name: "ana"})
        assert made.json()["subject"] == "ana", name
        listed = await ada.get("/api/v1/sessions", params={name: "ana"})
        assert made.json()["id"] in [one["id"] for one in listed.json()["sessions"]]
        matched = await ada.post("/api/v1/sessions/match", json={name: "ana", "text": "Hello"})
        assert matched.status_code == 200, matched.text
    found = await ada.post(f"{MEMORY}/search", json={"query": "tea", "subject": "bob"})
    assert [one["entry"]["key"] for one in found.json()["results"]] == ["bob"]


async def test_counts_exports_and_deletions_of_a_person_leave_what_is_about_nobody(
    ada: httpx.AsyncClient,
) -> None:
    for headers, asked in (({"X-User": "ana"}, {}), ({}, {"user": "ana"})):
        counted = await ada.get(MEMORY, params={"count_only": "true", **asked}, headers=headers)
        assert counted.json()["total"] == 1
        exported = await ada.get(f"{MEMORY}/export", params=asked, headers=headers)
        assert exported.text.count('"key"') == 1
    assert_problem(await ada.delete(f"{MEMORY}/batch"), 400)
    assert_problem(await ada.delete(f"{MEMORY}/batch", params={"user": ""}), 400)
    gone = await ada.delete(f"{MEMORY}/batch", params={"user": "ana"})
    assert gone.json() == {"deleted": 1}
    assert await _keys(ada) == ["bob", "nobody"]


async def test_unknown_names_are_refused_in_one_sentence(ada: httpx.AsyncClient) -> None:
    refused = await ada.get(MEMORY, params={"user_id": "ana", "zzz": 1})
    said = "unknown query parameters: `user_id` (do you mean `user`?), `zzz`"
    assert assert_problem(refused, 400)["detail"] == said
    refused = await ada.post(f"{MEMORY}/search", json={"query": "tea", "top_k": 3})
    assert assert_problem(refused, 422)["detail"] == (
        "unknown fields: `top_k` (do you mean `limit`?)"
    )
    refused = await ada.post(MEMORY, json={**draft("k"), "sensitivty": "public"})
    assert "`sensitivty` (do you mean `sensitivity`?)" in assert_problem(refused, 422)["detail"]


async def test_the_client_takes_a_person_for_one_call(world: World) -> None:
    client = world.client(fresh("billing"))
    for user in ("ana", "bob", None):
        await client.remember("likes tea", user=user)
    bound = [["ana"], []]
    assert sorted([list(one.subjects) for one in await client.memory.query(user="ana")]) == [
        [], ["ana"],
    ]  # fmt: skip
    for found in (
        await client.recall("tea", user="ana"),
        await client.memory.search("tea", user="ana"),
    ):
        assert sorted(list(hit.entry.subjects) for hit in found) == sorted(bound)
    assert len(await client.memory.query(about="ana")) == 1
    assert len(await client.memory.query(subject="ana")) == 1
    assert await client.memory.count(user="ana") == 1
    assert [one.subjects for one in await take(client.target.memory.export(user="ana"))] == [
        ("ana",)
    ]
    assert await client.memory.delete_matching(user="ana") == 1
    assert await client.memory.count() == 2
    session = await client.sessions.create("ana")
    earlier = await client.sessions.create(subject="ana")
    assert session.info.subject == earlier.info.subject == "ana"
    assert len((await client.sessions.list(user="ana")).sessions) == 2


async def test_the_client_says_when_something_was_said(world: World) -> None:
    client, person = world.client(fresh("billing")), fresh("ana")
    before = datetime.now(UTC)
    gone = await world.administrator().forget(person)
    assert gone.receipt is None
    late = [
        await client.for_user(person, said_at=said_at)
        for said_at in (before, before.isoformat(), "2026-01-01T00:00:00Z")
    ]
    for one in late:
        with pytest.raises(SubjectForgottenError, match="`X-Said-At`"):
            await one.memory.put("n", "k", {}, "episodic")
        with pytest.raises(SubjectForgottenError):
            await one.sessions.create()
        assert await one.memory.query() == []
    now = await client.for_user(person, said_at=datetime.now(UTC) + timedelta(seconds=5))
    session = (await now.sessions.create()).id
    for one in (late[0], await client.for_user(person)):
        inside = await one.in_session(session)
        if one is late[0]:
            with pytest.raises(SubjectForgottenError):
                await inside.memory.put("n", "k", {}, "session")
            continue
        assert (await inside.memory.put("n", "k", {}, "session")).version == 1
    for wrong in ("yesterday", datetime(2026, 1, 1)):  # noqa: DTZ001 - the one that is refused
        with pytest.raises(ValidationError, match="`said_at` must be an RFC 3339 instant"):
            await client.for_user(person, said_at=wrong)


async def test_unknown_arguments_name_the_method_and_suggest_one(world: World) -> None:
    client = world.client(fresh("billing"))
    with pytest.raises(TypeError, match=r"^search\(\): .*`top_k` \(do you mean `limit`\?\)"):
        await client.memory.search("tea", top_k=3)
    with pytest.raises(TypeError, match=r"^recall\(\): .*`user_id` \(do you mean `user`\?\)"):
        await client.recall("tea", user_id="ana")
    with pytest.raises(TypeError, match=r"^put\(\): unknown arguments: `user`; .*for_user"):
        await client.memory.put("n", "k", {}, "episodic", user="ana")
    with pytest.raises(TypeError, match=r"^sessions.create\(\): .*`usr` \(do you mean `user`\?\)"):
        await client.sessions.create(usr="ana")
    with pytest.raises(TypeError, match=r"^get\(\): missing a required argument: 'key'"):
        await client.memory.get("n")
    with pytest.raises(RequestError, match="`about` and `subject`"):
        await client.memory.query(about="ana", subject="bob")


@pytest.mark.parametrize("user", ["", "  "])
async def test_a_client_for_nobody_is_refused_at_once(world: World, user: str) -> None:
    client = world.client(fresh("billing"))
    with pytest.raises(ValidationError, match="`user` must not be empty"):
        client.target.for_user(user)


def test_commands_name_a_person_by_one_word(tmp_path: Path) -> None:
    data = tmp_path / "data"
    new_directory(data, "billing")
    shell = Shell("billing", ("--data", str(data), "--agent", "billing"))
    for person in (("--user", "ana"), ("--user", "bob"), ()):
        shell.succeed("remember", "likes tea", *person)
    assert len(shell.json("query", "--about", "ana")["entries"]) == 1
    assert shell.json("query", "--subject", "ana") == shell.json("query", "--about", "ana")
    assert len(shell.json("query", "--user", "ana")["entries"]) == 2
    assert shell.succeed("query", "--user", "ana", "--count") == "1\n"
    assert len(shell.succeed("export", "--user", "ana").splitlines()) == 1
    assert group("sessions")(shell).json("create", "--user", "ana")["subject"] == "ana"
    assert shell.succeed("delete", "--user", "ana", "--yes") == "1 deleted\n"
    assert shell.succeed("query", "--count") == "2\n"
    for options in (("bob",), ("--user", "bob"), ("--subject", "bob")):
        assert "of these derived" in succeed("forget", "--data", str(data), *options, "--yes")
    assert shell.succeed("query", "--count") == "1\n"
    assert "memorywall forget ana" in misuse("forget", "--data", str(data), "ana", "--user", "ana")


@pytest.mark.parametrize(
    "command", ["query", "search", "put", "watch", "keys create", "sessions list", "forget"]
)
def test_help_shows_no_earlier_name(command: str) -> None:
    assert "--subject" not in succeed(*command.split(), "--help")


def test_what_an_unknown_name_means() -> None:
    assert nearest_name("version", ["sessions", "events"]) is None
    assert nearest_name("user_id", ["user", "usage"]) == "user"
    assert unknown_names("fields", ["a.lmit"], ["limit"]) == (
        "unknown fields: `a.lmit` (do you mean `limit`?)"
    )
    assert current_names({"subject": "a"}, {"user"}) == {"user": "a"}
    assert current_names({"subject": "a"}, {"user", "about"}) == {"about": "a"}
    assert current_names({"subject": "a"}, {"subject", "user"}) is None
