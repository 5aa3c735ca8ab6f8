"""The checkpointer of LangGraph: its own conformance suite, and what a graph needs of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.types import Command

import memorywall
from memorywall.adapters.langgraph import MemorywallSaver
from memorywall.exceptions import (
    MemoryAccessError,
    MemoryTransportError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.principal import Permission
from memorywall.sdk.client import AsyncClient
from tests.adapters.graphs import LongNotes, asking_graph, noting_graph, thread
from tests.adapters.networks import Network, connect
from tests.support.programs import run_python
from tests.support.service import RunningService, open_service

pytestmark = pytest.mark.anyio


def _over_http(service: RunningService, key: str) -> AsyncClient:
    transport = httpx.ASGITransport(service.app)
    return AsyncClient("http://memorywall.test", key, transport=transport)


async def _check_all_capabilities(make: Callable[[], AsyncIterator[MemorywallSaver]]) -> None:
    report = await validate(checkpointer_test(name="memorywall")(make))
    failures = [one for result in report.results.values() for one in result.failures or ()]
    assert failures == []
    assert [one.passed for one in report.results.values()] == [True] * 8


async def test_over_http_it_has_all_capabilities_of_the_official_suite(
    service: RunningService, record_testsuite_property: Callable[[str, object], None]
) -> None:
    client = _over_http(service, await service.key("ada"))

    async def make() -> AsyncIterator[MemorywallSaver]:
        yield MemorywallSaver(client)

    await _check_all_capabilities(make)
    suite = version("langgraph-checkpoint-conformance")
    record_testsuite_property("conformance", f"{suite}: 8 of 8 capabilities")


async def test_in_process_it_has_all_capabilities_of_the_official_suite(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:

        async def make() -> AsyncIterator[MemorywallSaver]:
            yield MemorywallSaver(client)

        await _check_all_capabilities(make)


_RESUMING = """
import os
import signal
import sys
import memorywall
from langgraph.types import Command
from memorywall.adapters.langgraph import MemorywallSaver
from tests.adapters.graphs import asking_graph, thread

with memorywall.open(sys.argv[1], agent="ada") as client:
    graph = asking_graph(MemorywallSaver(client))
    print(graph.invoke(Command(resume="yes"), thread("a"))["notes"], flush=True)
    graph.invoke({"notes": ["begin"]}, thread("killed"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_graph_is_interrupted_resumed_elsewhere_forked_and_travels(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        graph = asking_graph(MemorywallSaver(client))
        result = graph.invoke({"notes": ["begin"]}, thread("a"))
        assert result["__interrupt__"][0].value == "what?"
    done = run_python("-c", _RESUMING, str(place), check=False, limit=120)
    assert done.stdout == "['begin', 'first', 'begin', 'first', 'answer: yes']\n", done.stderr
    with memorywall.open(place, agent="ada") as client:
        graph = asking_graph(MemorywallSaver(client))
        assert graph.get_state(thread("killed")).next == ("inside",)
        answered = graph.invoke(Command(resume="yes"), thread("killed"))
        assert answered["notes"][-1] == "answer: yes"
        states = list(graph.get_state_history(thread("a")))
        assert states[0].values["notes"][-1] == "answer: yes"
        earlier = next(one for one in states if one.next == ("first",))
        again = graph.invoke(None, earlier.config)
        assert again["__interrupt__"][0].value == "what?"
        assert graph.invoke(Command(resume="no"), thread("a"))["notes"][-1] == "answer: no"
        forked = graph.update_state(states[-2].config, {"notes": ["fork"]})
        assert graph.get_state(forked).values["notes"] == ["begin", "fork"]
        assert graph.get_state(states[0].config).values == states[0].values
        assert (
            next(iter(graph.get_state_history(thread("a"), limit=1))).values["notes"][-1] == "fork"
        )


def test_delta_channels_and_pruning(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        saver = MemorywallSaver(client)
        graph, asking = noting_graph(saver, LongNotes), asking_graph(saver)
        config = thread("a")
        for turn in range(5):
            graph.invoke({"notes": [f"turn {turn}"]}, config)
        asking.invoke({"notes": []}, thread("b"))
        values = graph.get_state(config).values
        assert len(values["notes"]) == 10
        before = len(list(saver.list(config)))
        saver.prune(["a", "b", "absent"], older_than=timedelta(hours=1))
        assert len(list(saver.list(config))) == before
        saver.prune(["a", "b", "absent"])
        kept = len(list(saver.list(config)))
        assert 1 < kept < before
        assert graph.get_state(config).values == values
        graph.invoke({"notes": ["more"]}, config)
        assert graph.get_state(config).values["notes"][:11] == [*values["notes"], "more"]
        # The pending question of the inner graph survives as well.
        assert asking.invoke(Command(resume="x"), thread("b"))["notes"][-1] == "answer: x"
        with pytest.raises(ValidationError, match="strategy"):
            saver.prune(["a"], strategy="all")
        saver.expire(timedelta(hours=1))
        assert graph.get_state(config).values["notes"]
        saver.expire(timedelta(hours=-1))
        assert list(saver.list(None)) == []
        assert client.sessions.list().sessions == []


def test_parallel_writers_lose_nothing(place: Path | str) -> None:
    with memorywall.open(place, agent="ada") as client:
        saver = MemorywallSaver(client)
        config = saver.put(thread("a", checkpoint_ns=""), empty_checkpoint(), {"step": 0}, {})
        start = threading.Barrier(8)

        def write(number: int) -> None:
            if number < 8:
                start.wait(timeout=60)
            task = f"task {number % 20}"
            writes = [("channel", number % 20), ("other", number)][: 1 + number // 20]
            MemorywallSaver(client).put_writes(config, writes, task)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(write, range(40)))
        # A task that runs again changes nothing that it has written, except for special writes.
        saver.put_writes(config, [("channel", "again")], "task 0")
        for question in ("first?", "second?"):
            saver.put_writes(config, [("__interrupt__", question)], "task 0")
        found = saver.get_tuple(thread("a"))
        assert found is not None
        writes = found.pending_writes or []
        # Of the same place of a task, what was written first counts.
        assert [one for one in writes if one[1] == "channel"] == sorted(
            (f"task {number}", "channel", number) for number in range(20)
        )
        assert sorted(one[2] for one in writes if one[1] == "other") == list(range(20, 40))
        assert [one[2] for one in writes if one[1] == "__interrupt__"] == ["second?"]
        assert len(list(saver.list(None))) == 1


async def test_people_and_tenants_see_nothing_of_each_other(service: RunningService) -> None:
    keys = [await service.key("ada"), await service.key("bob"), await service.key("ada", "other")]
    ada, bob, foreign = [_over_http(service, key) for key in keys]
    saver = MemorywallSaver(ada, user_key="user_id")
    graph = noting_graph(saver)
    for user in ("ann", "bea"):
        await graph.ainvoke({"notes": [user]}, thread("1", user_id=user))
    for user in ("ann", "bea"):
        state = await graph.aget_state(thread("1", user_id=user))
        assert state.values["notes"] == [user, "noted 1"]
        own = MemorywallSaver(ada.for_user(user))
        found = [one async for one in own.alist(None)]
        assert {one.checkpoint["channel_values"]["notes"][0] for one in found[:1]} == {user}
    assert (await graph.aget_state(thread("1"))).values == {}
    for other in (bob, foreign):
        stranger = MemorywallSaver(other)
        assert await stranger.aget_tuple(thread("1")) is None
        assert [one async for one in stranger.alist(None)] == []
        await stranger.adelete_thread("1")
    events = await ada.events.list()
    assert {(one.actor, one.agent_id) for one in events} == {("ada", "ada")}
    assert len([one for one in events if one.type == "memory.created"]) > 8
    admin = _over_http(service, await service.key("root", permissions=tuple(Permission)))
    await admin.forget("ann")
    assert await saver.aget_tuple(thread("1", user_id="ann")) is None
    assert await saver.aget_tuple(thread("1", user_id="bea")) is not None
    await saver.adelete_thread("1")
    assert [one async for one in saver.alist(None)] == []


async def test_faults_are_told(service: RunningService) -> None:
    reader = _over_http(service, await service.key("eve", permissions=(Permission.READ,)))
    config = thread("a", checkpoint_ns="")
    with pytest.raises(MemoryAccessError):
        await MemorywallSaver(reader).aput(config, empty_checkpoint(), {}, {})
    client = _over_http(service, await service.key("ada"))
    saver = MemorywallSaver(client)
    with pytest.raises(ValidationError, match="thread_id"):
        await saver.aget_tuple({"configurable": {}})
    with pytest.raises(RuntimeError, match="await"):
        saver.get_tuple(config)
    broken: Any = {**empty_checkpoint(), "channel_values": {"a": threading.Lock()}}
    with pytest.raises(TypeError):
        await saver.aput(config, broken, {}, {})
    assert await saver.aget_tuple(config) is None
    large: Any = {**empty_checkpoint(), "channel_values": {"a": "x" * 200_000}}
    for metadata in ({"step": 1}, {"step": 2}):
        await saver.aput(config, large, metadata, {})  # type: ignore[arg-type]
    found = await saver.aget_tuple(config)
    assert found is not None
    assert (found.checkpoint, found.metadata["step"]) == (large, 2)
    # A blocking method uses the loop of the client from another thread.
    assert await asyncio.to_thread(saver.get_tuple, config) == found
    await (await client.sessions.create(client_id="a")).delete()
    await saver.aput(config, large, {}, {})
    assert len([one async for one in saver.alist(config)]) == 1


async def test_lost_replies_change_nothing(service: RunningService) -> None:
    network = Network(service)
    saver = MemorywallSaver(connect(network, await service.key("ada")))
    graph = noting_graph(saver, LongNotes)
    network.loses_replies = True
    for turn in range(3):
        await graph.ainvoke({"notes": [f"turn {turn}"]}, thread("a"))
    assert len((await graph.aget_state(thread("a"))).values["notes"]) == 6
    await saver.acopy_thread("a", "b")
    await saver.aprune(["a"])
    assert len((await graph.aget_state(thread("a"))).values["notes"]) == 6
    await saver.adelete_thread("a")
    assert await saver.aget_tuple(thread("a")) is None
    assert len((await graph.aget_state(thread("b"))).values["notes"]) == 6
    assert network.lost > 20
    network.is_away = True
    with pytest.raises(MemoryTransportError, match="cannot be reached"):
        await graph.ainvoke({"notes": ["lost"]}, thread("b"))
    network.is_away = False
    assert len((await graph.aget_state(thread("b"))).values["notes"]) == 6


async def test_what_a_checkpoint_cannot_hold_changes_nothing(tmp_path: Path) -> None:
    limit = 2_000_000
    async with open_service(tmp_path, attachment_limit=limit) as service:
        saver = MemorywallSaver(_over_http(service, await service.key("ada")))
        config = thread("a", checkpoint_ns="")
        messages: Any = {**empty_checkpoint(), "channel_values": {"a": ["x" * 100] * 10_000}}
        config = await saver.aput(config, messages, {"step": 0}, {})
        await saver.aput_writes(config, [("a", "y" * 1_000_000)], "task")
        found = await saver.aget_tuple(config)
        assert found is not None
        assert found.checkpoint == messages
        assert found.pending_writes == [("task", "a", "y" * 1_000_000)]
        large: Any = {**empty_checkpoint(), "channel_values": {"a": "x" * limit}}
        with pytest.raises(ValueTooLargeError, match=str(limit)):
            await saver.aput(config, large, {}, {})
        said: Any = {"why": "x" * 90_000}
        with pytest.raises(ValueTooLargeError, match="metadata"):
            await saver.aput(config, empty_checkpoint(), said, {})
        with pytest.raises(ValueTooLargeError, match=str(limit)):
            await saver.aput_writes(config, [("a", "y" * limit)], "other")
        assert len([one async for one in saver.alist(thread("a"))]) == 1
        assert await saver.aget_tuple(thread("a")) == found


async def test_two_processes_write_one_thread(service: RunningService) -> None:
    """Each begins the thread, because it knows of none."""
    key = await service.key("ada")
    savers = [MemorywallSaver(connect(Network(service), key)) for _ in range(2)]
    start = thread("a", checkpoint_ns="")

    async def write(number: int) -> None:
        saver = savers[number % 2]
        config = await saver.aput(start, empty_checkpoint(), {"step": number}, {})
        await saver.aput_writes(config, [("channel", number)], "task")

    await asyncio.gather(*map(write, range(20)))
    found = [one async for one in savers[0].alist(thread("a"))]
    told = [(one.metadata["step"], one.pending_writes) for one in found]
    assert sorted(told) == [(number, [("task", "channel", number)]) for number in range(20)]
    assert len((await _over_http(service, key).sessions.list()).sessions) == 1


def test_what_is_no_client_is_refused_with_what_is_one() -> None:
    with pytest.raises(TypeError, match=r"memorywall\.open"):
        MemorywallSaver("memory.db")  # type: ignore[arg-type]
