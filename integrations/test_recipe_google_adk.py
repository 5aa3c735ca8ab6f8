"""The recipe for Google ADK: the page, and what ADK's tests demand of every service.

The tests of services follow those of ADK (`tests/unittests/sessions`), which run against each of
its own services: `service` is in turn two of these, and the recipe's in process and over HTTP.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import InMemoryMemoryService, SqliteMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

import memorywall
from integrations.other_process import run_elsewhere
from integrations.recipes import run_recipe
from integrations.scripted_model import Reply, ScriptedModel, says, scripted_model
from integrations.tea import answers
from memorywall.exceptions import MemoryTransportError, ValueTooLargeError
from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission
from memorywall.sdk.client import AsyncClient
from tests.support.process import ServerProcess
from tests.support.service import open_service

pytestmark = pytest.mark.anyio

IN_PROCESS, OVER_HTTP = "the recipe in process", "the recipe over HTTP"
ANN = {"app_name": "app", "user_id": "ann"}
BOB = {"app_name": "app", "user_id": "bob"}


def quotes(body: dict[str, Any]) -> Reply:
    return says(body["contents"][0]["parts"][0]["text"])


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names of the page, which has been run."""
    directory = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch, scripted_model() as model:
        for name, value in model.environment.items():
            patch.setenv(name, value)
        patch.chdir(directory)
        model.will(says("Noted."), quotes, answers, answers, answers)
        recipe = partial(run_recipe, directory=directory)
        return recipe("google-adk")


async def open_client(stack: AsyncExitStack, kind: str, directory: Path) -> Any:
    """A client of a new store with the rights to erase a person."""
    if kind == IN_PROCESS:
        opened = memorywall.open_async(directory / "memory.db", agent="ada")
        return await stack.enter_async_context(opened)
    service = await stack.enter_async_context(open_service(directory))
    key = await service.key("ada", permissions=[*DEFAULT_PERMISSIONS, Permission.TENANT_ADMIN])
    transport = httpx.ASGITransport(service.app)
    return AsyncClient("http://memorywall.test", key, transport=transport)


@pytest.fixture(params=["in memory", "SQLite", IN_PROCESS, OVER_HTTP])
async def service(
    request: pytest.FixtureRequest, names: dict[str, Any], tmp_path: Path
) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        if request.param == "in memory":
            yield InMemorySessionService()
        elif request.param == "SQLite":
            yield SqliteSessionService(str(tmp_path / "sessions.db"))
        else:
            yield names["MemorywallSessions"](await open_client(stack, request.param, tmp_path))


@pytest.fixture(params=["in memory", "SQLite", IN_PROCESS, OVER_HTTP])
async def memory(
    request: pytest.FixtureRequest, names: dict[str, Any], tmp_path: Path
) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        if request.param == "in memory":
            yield InMemoryMemoryService()
        elif request.param == "SQLite":
            yield SqliteMemoryService(tmp_path / "memory.db")
        else:
            yield names["MemorywallMemory"](await open_client(stack, request.param, tmp_path))


async def test_a_session_is_created_read_and_deleted(service: Any) -> None:
    assert await service.get_session(**ANN, session_id="s") is None
    await service.delete_session(**ANN, session_id="s")
    made = await service.create_session(**ANN, state={"key": "value"})
    assert (made.app_name, made.user_id, made.state) == ("app", "ann", {"key": "value"})
    assert 0 < made.last_update_time <= time.time()
    assert await service.get_session(**ANN, session_id=made.id) == made
    await service.delete_session(**ANN, session_id=made.id)
    assert await service.get_session(**ANN, session_id=made.id) is None


async def test_a_name_is_taken_once_by_each_person(service: Any) -> None:
    made = await service.create_session(**ANN, session_id="s")
    await service.append_event(made, Event(invocation_id="i", author="user"))
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ANN, session_id="s")
    await service.create_session(**BOB, session_id="s")
    found = await service.get_session(**BOB, session_id="s")
    assert (found.user_id, found.events) == ("bob", [])
    await service.create_session(app_name="other", user_id="ann", session_id="s")


async def test_a_padded_name_is_the_name(service: Any) -> None:
    made = await service.create_session(**ANN, session_id="  s ")
    assert made.id == "s"
    assert (await service.get_session(**ANN, session_id=" s  ")).id == "s"
    await service.delete_session(**ANN, session_id=" s")
    assert await service.get_session(**ANN, session_id="s") is None


async def test_lists_have_states_and_no_events(service: Any) -> None:
    for name in ("a", "b", "c"):
        made = await service.create_session(**ANN, session_id=name, state={"key": name})
        await service.append_event(made, Event(author="user"))
    await service.create_session(**BOB, session_id="d", state={"key": "d", "user:u": 1, "app:a": 2})
    await service.create_session(app_name="other", user_id="ann", session_id="e")
    of_ann = (await service.list_sessions(**ANN)).sessions
    assert {one.id: one.state for one in of_ann} == {
        name: {"key": name, "app:a": 2} for name in ("a", "b", "c")
    }
    assert not any(one.events for one in of_ann)
    everyone = (await service.list_sessions(app_name="app")).sessions
    assert {(one.user_id, one.id) for one in everyone} == {
        ("ann", "a"), ("ann", "b"), ("ann", "c"), ("bob", "d"),
    }  # fmt: skip
    (of_bob,) = (await service.list_sessions(**BOB)).sessions
    assert of_bob.state == {"key": "d", "user:u": 1, "app:a": 2}


async def test_lists_are_in_the_order_of_the_last_update(service: Any) -> None:
    now = time.time()
    for name, later in (("a", 30), ("b", 10), ("c", 20)):
        made = await service.create_session(**ANN, session_id=name)
        await service.append_event(made, Event(author="user", timestamp=now + later))
    found = (await service.list_sessions(**ANN)).sessions
    assert [one.id for one in found] == ["b", "c", "a"]


async def test_states_have_their_scopes(service: Any) -> None:
    first = await service.create_session(
        **ANN, session_id="1", state={"own": 1, "user:one": 1, "app:one": 1, "temp:one": 1}
    )
    delta = {"own": 2, "user:two": {"n": [2]}, "app:two": 2, "temp:two": 2}
    event = Event(author="helper", actions=EventActions(state_delta=delta))
    await service.append_event(first, event)
    assert first.state["temp:two"] == 2
    assert "temp:two" not in event.actions.state_delta
    shared = {"app:one": 1, "app:two": 2}
    mine = {"user:one": 1, "user:two": {"n": [2]}}
    found = await service.get_session(**ANN, session_id="1")
    assert found.state == {"own": 2, **shared, **mine}
    assert "temp:two" not in found.events[0].actions.state_delta
    assert (await service.create_session(**ANN, session_id="2")).state == {**shared, **mine}
    assert (await service.create_session(**BOB)).state == shared
    assert (await service.create_session(app_name="other", user_id="ann")).state == {}
    await service.append_event(
        first, Event(author="helper", actions=EventActions(state_delta={"user:one": 3}))
    )
    assert await service.get_user_state(**ANN) == {"one": 3, "two": {"n": [2]}}
    assert await service.get_user_state(**BOB) == {}
    assert await service.get_user_state(app_name="other", user_id="ann") == {}


async def test_an_event_comes_back_as_it_was(service: Any) -> None:
    session = await service.create_session(**ANN)
    part = types.Part.from_bytes(data=bytes(range(256)) * 400, mime_type="image/png")
    call = types.Part.from_function_call(name="look", args={"b": [1, None, {"é": 2.5}]})
    events = [
        Event(
            invocation_id="invocation",
            author="user",
            content=types.Content(role="user", parts=[types.Part(text="text"), part]),
            turn_complete=True,
            partial=False,
            actions=EventActions(
                artifact_delta={"file": 0}, transfer_to_agent="agent", escalate=True
            ),
            long_running_tool_ids={"tool1"},
            error_code="error_code",
            error_message="error_message",
            interrupted=True,
            grounding_metadata=types.GroundingMetadata(
                web_search_queries=["query1"],
                search_entry_point=types.SearchEntryPoint(sdk_blob=b"blob"),
            ),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=1, candidates_token_count=1, total_token_count=2
            ),
            citation_metadata=types.CitationMetadata(),
            custom_metadata={"custom_key": "custom_value"},
            timestamp=1700000000.123,
            input_transcription=types.Transcription(text="in", finished=True),
            output_transcription=types.Transcription(text="out", finished=True),
        ),
        Event(author="helper", branch="a.b", content=types.Content(role="model", parts=[call])),
        Event(author="helper", content=types.Content(role="model", parts=[])),
        Event(author="helper"),
    ]
    for event in events:
        await service.append_event(session, event)
    found = await service.get_session(**ANN, session_id=session.id)
    assert found == session
    assert found.events == events


async def test_a_state_is_kept_as_json(service: Any) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    session = await service.create_session(**ANN, session_id="s", state={"user:then": moment})
    actions = EventActions(state_delta={"now": moment, "many": (1, 2), "odd": print})
    await service.append_event(session, Event(author="helper", actions=actions))
    state = (await service.get_session(**ANN, session_id="s")).state
    if not isinstance(service, InMemorySessionService):
        text = moment.isoformat().replace("+00:00", "Z")
        odd = state.pop("odd")
        assert "print" in odd
        assert state == {"now": text, "many": [1, 2], "user:then": text}


async def test_a_state_that_is_too_large_changes_nothing(
    names: dict[str, Any], tmp_path: Path
) -> None:
    async with memorywall.open_async(tmp_path / "memory.db", agent="ada") as client:
        service = names["MemorywallSessions"](client)
        session = await service.create_session(**ANN, session_id="s", state={"key": 1})
        for name in ("key", "user:key", "app:key"):
            actions = EventActions(state_delta={name: "x" * 70_000})
            with pytest.raises(ValueTooLargeError):
                await service.append_event(session, Event(author="helper", actions=actions))
        assert session.events == []
        assert await service.get_session(**ANN, session_id="s") == session
        assert session.state == {"key": 1}


async def test_the_last_update_is_the_time_of_the_last_event(service: Any) -> None:
    session = await service.create_session(**ANN)
    later = session.last_update_time + 10
    await service.append_event(session, Event(author="user", timestamp=later))
    found = await service.get_session(**ANN, session_id=session.id)
    for one in (session, found):
        assert one.last_update_time == pytest.approx(later, abs=1e-6)


async def test_some_events_are_wanted(service: Any) -> None:
    session = await service.create_session(**ANN)
    for second in range(1, 6):
        await service.append_event(session, Event(author="user", timestamp=second))
    for recent, after, wanted in (
        (None, None, [1, 2, 3, 4, 5]),
        (0, None, []),
        (3, None, [3, 4, 5]),
        (9, None, [1, 2, 3, 4, 5]),
        (None, 4.0, [4, 5]),
        (None, 60.0, []),
        (3, 4.0, [4, 5]),
        (1, 4.0, [5]),
    ):
        config = GetSessionConfig(num_recent_events=recent, after_timestamp=after)
        found = await service.get_session(**ANN, session_id=session.id, config=config)
        assert [one.timestamp for one in found.events] == wanted


async def test_partial_events_are_not_kept(service: Any) -> None:
    session = await service.create_session(**ANN)
    await service.append_event(session, Event(author="user", partial=True))
    assert session.events == []
    assert (await service.get_session(**ANN, session_id=session.id)).events == []


async def test_a_session_that_is_gone_takes_no_events(service: Any) -> None:
    session = await service.create_session(**ANN)
    await service.delete_session(**ANN, session_id=session.id)
    with pytest.raises((SessionNotFoundError, ValueError)):
        await service.append_event(session, Event(author="user"))
    assert await service.get_session(**ANN, session_id=session.id) is None


def said(text: str, author: str = "user") -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, content=content, timestamp=1_700_000_000.5)


async def found_by(memory: Any, query: str, **names: str) -> list[str]:
    found = await memory.search_memory(**{**ANN, **names}, query=query)
    return [one.content.parts[0].text for one in found.memories]


async def test_memory_finds_what_was_added_for_the_person(memory: Any) -> None:
    sessions = InMemorySessionService()
    session = await sessions.create_session(**ANN)
    for event in (said("I eat no nuts."), said("Noted.", "helper"), Event(author="helper")):
        await sessions.append_event(session, event)
    for _ in range(2):
        await memory.add_session_to_memory(session)
    events = [said("I eat everything with nuts.")]
    await memory.add_events_to_memory(**BOB, events=events, session_id="s")
    assert (await found_by(memory, "nuts"))[0] == "I eat no nuts."
    assert await found_by(memory, "nuts", user_id="bob") == ["I eat everything with nuts."]
    assert await found_by(memory, "nuts", app_name="other") == []
    assert await found_by(memory, "weather") == []
    (entry, *rest) = (await memory.search_memory(**ANN, query="nuts")).memories
    assert [one.content.parts[0].text for one in rest] in ([], ["Noted."])
    assert entry.id
    assert entry.author == "user"
    assert entry.timestamp.startswith("2023-11-14T22:13:20.5")


async def test_a_deleted_memory_stays_deleted(names: dict[str, Any], tmp_path: Path) -> None:
    async with memorywall.open_async(tmp_path / "memory.db", agent="ada") as client:
        memory, event = names["MemorywallMemory"](client), said("I eat no nuts.")
        await memory.add_events_to_memory(**ANN, events=[event])
        await memory.delete_memory(**BOB, memory_id=event.id)
        assert await found_by(memory, "nuts") == ["I eat no nuts."]
        await memory.delete_memory(**ANN, memory_id=event.id)
        await memory.add_events_to_memory(**ANN, events=[event])
        assert await found_by(memory, "nuts") == []
        assert await found_by(memory, "deleted") == []


async def test_thoughts_are_not_remembered(names: dict[str, Any], tmp_path: Path) -> None:
    async with memorywall.open_async(tmp_path / "memory.db", agent="ada") as client:
        memory, event = names["MemorywallMemory"](client), said("Nuts are not allowed.")
        event.content.parts.insert(0, types.Part(text="Are nuts allowed?", thought=True))
        await memory.add_events_to_memory(**ANN, events=[event])
        assert await found_by(memory, "nuts") == ["Nuts are not allowed."]


async def test_a_memory_is_added_as_it_is(names: dict[str, Any], tmp_path: Path) -> None:
    async with memorywall.open_async(tmp_path / "memory.db", agent="ada") as client:
        memory = names["MemorywallMemory"](client)
        content = types.Content(role="user", parts=[types.Part(text="Ann eats no nuts.")])
        entry = MemoryEntry(content=content, author="import", custom_metadata={"source": "crm"})
        await memory.add_memory(**ANN, memories=[entry], custom_metadata={"ttl": "30d"})
        (found,) = (await memory.search_memory(**ANN, query="nuts")).memories
        assert found == entry.model_copy(update={"id": found.id})
        await memory.delete_memory(**ANN, memory_id=found.id)
        assert await found_by(memory, "nuts") == []


@pytest.mark.parametrize("kind", [IN_PROCESS, OVER_HTTP])
async def test_a_person_is_forgotten(names: dict[str, Any], kind: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        client = await open_client(stack, kind, tmp_path)
        service, memory = names["MemorywallSessions"](client), names["MemorywallMemory"](client)
        for who in (ANN, BOB):
            session = await service.create_session(
                **who, session_id="s", state={"user:k": 1, "app:k": 1}
            )
            await service.append_event(session, said("I eat no nuts."))
            await memory.add_session_to_memory(session)
        assert (await client.for_user("ann").recall("Are nuts all right?"))[0].session_id
        await client.forget("ann")
        assert await service.get_session(**ANN, session_id="s") is None
        assert await service.get_user_state(**ANN) == {}
        assert await found_by(memory, "nuts") == []
        assert await found_by(memory, "nuts", user_id="bob") == ["I eat no nuts."]
        (left,) = (await service.list_sessions(app_name="app")).sessions
        assert (left.user_id, left.state) == ("bob", {"user:k": 1, "app:k": 1})


async def test_two_processes_lose_no_state(names: dict[str, Any], tmp_path: Path) -> None:
    async with memorywall.open_async(tmp_path / "memory.db", agent="ada") as client:
        service = names["MemorywallSessions"](client)
        await service.create_session(**ANN, session_id="s")

        async def change(name: str) -> None:
            session = await names["MemorywallSessions"](client).get_session(**ANN, session_id="s")
            for number in range(5):
                delta = {f"{name}{number}": 1, f"user:{name}{number}": 1}
                actions = EventActions(state_delta=delta)
                await service.append_event(session, Event(author=name, actions=actions))

        async with names["asyncio"].TaskGroup() as group:
            for name in "abcd":
                group.create_task(change(name))
        found = await service.get_session(**ANN, session_id="s")
        assert len(found.events) == 20
        assert len(found.state) == 40


def test_another_process_goes_on(
    names: dict[str, Any], model: ScriptedModel, tmp_path: Path
) -> None:
    with ServerProcess(tmp_path / "data") as server:
        opening = f"memorywall.AsyncClient({server.url!r}, {server.dev_key!r})"

        async def begin() -> None:
            model.will(says("Noted."))
            async with AsyncClient(server.url, server.dev_key) as client:
                told = await names["ask"](client, "ann", "monday", "I only drink green tea.")
                assert told == "Noted."

        async def end() -> None:
            model.will(answers, answers)
            async with AsyncClient(server.url, server.dev_key) as client:
                await client.forget("ann")
                for conversation in ("monday", "tuesday"):
                    told = await names["ask"](client, "ann", conversation, "Which tea?")
                    assert told == "I do not know yet."

        names["asyncio"].run(begin())
        model.will(quotes, answers, answers, answers)
        code = f"""
async def main():
    async with {opening} as client:
        for user in ("ann", "bob"):
            for conversation in ("monday", "tuesday"):
                print(await ask(client, user, conversation, "Which tea?"))


asyncio.run(main())
"""
        assert run_elsewhere("google-adk", code, tmp_path).splitlines() == [
            "I only drink green tea.", "Green tea.", "I do not know yet.", "I do not know yet.",
        ]  # fmt: skip
        names["asyncio"].run(end())


async def test_a_server_that_is_away_is_no_silence(names: dict[str, Any]) -> None:
    async with AsyncClient("http://127.0.0.1:9", "mw_none") as client:
        with pytest.raises(MemoryTransportError):
            await names["MemorywallSessions"](client).get_session(**ANN, session_id="s")
        with pytest.raises(MemoryTransportError):
            await names["MemorywallMemory"](client).search_memory(**ANN, query="nuts")
