"""Following events: reconnecting after a cut, over faults and over a server that was killed."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorywall import Client
from memorywall.exceptions import MemoryAccessError, MemoryTransportError
from memorywall.sdk.streams import ServerSentEvents
from tests.support.process import ServerProcess
from tests.test_sdk_support import Faults, Faulty, faulty, fresh, server, take

__all__ = ["faulty", "server"]


@pytest.mark.anyio
async def test_following_resumes_after_the_last_event(faulty: Faulty) -> None:
    faults = Faults()
    client = faulty.client(fresh("billing"), faults)
    for number in range(700):
        if number % 100 == 0:
            await client.memory.batch(
                {"namespace": "n", "key": f"k{number + n}", "value": {}} for n in range(100)
            )
    faults.faults = ["cut", "unsent", "cut", "pass"]
    events = await take(client.target.events.follow(), 700)
    assert [event.data.key for event in events] == [f"k{n}" for n in range(700)]
    assert not faults.faults
    streams = [one for one in faults.requests if one.headers["Accept"] == "text/event-stream"]
    resumed = [int(one.headers["Last-Event-ID"]) for one in streams]
    assert resumed[0] == 0
    assert resumed == sorted(resumed)
    assert resumed[-1] in [event.seq for event in events]


@pytest.mark.anyio
async def test_a_refusal_is_raised(faulty: Faulty) -> None:
    client = faulty.client(fresh("billing"), Faults())
    with pytest.raises(MemoryAccessError):
        await take(client.target.events.follow(agent_id=fresh("other")))


def test_following_survives_a_server_that_is_killed(tmp_path: Path) -> None:
    seen: list[str] = []
    progress = threading.Condition()
    with ServerProcess(tmp_path) as first:
        agent = "billing"
        key = first.create_key(agent)
        port = urlsplit(first.url).port
        client = Client(first.url, key)

        def follow() -> None:
            for event in client.events.follow():
                with progress:
                    seen.append(event.data.key)
                    progress.notify_all()
                if event.data.key == "last":
                    return

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        client.memory.set("n", "before", {})
        with progress:
            assert progress.wait_for(lambda: seen == ["before"], timeout=20)
        first.kill()
        with ServerProcess(tmp_path, "--port", str(port)):
            client.memory.set("n", "after", {})
            client.memory.set("n", "last", {})
            follower.join(timeout=30)
            assert seen == ["before", "after", "last"]
            client.close()


def test_patience_ends(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as process:
        client = Client(process.url, process.create_key("billing"))
        client.memory.set("n", "before", {})
        followed = client.events.follow(patience=0.3)
        assert next(followed).data.key == "before"
        process.kill()
        with pytest.raises(MemoryTransportError):
            next(followed)
        client.close()


@given(
    events=st.lists(st.lists(st.from_regex(rb"[a-z:{ ]{0,6}", fullmatch=True), min_size=1)),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    cuts=st.lists(st.integers(1, 9)),
)
def test_events_are_read_however_they_are_cut(
    events: list[list[bytes]], newline: bytes, cuts: list[int]
) -> None:
    text = b": alive" + newline * 2
    for number, lines in enumerate(events):
        text += b"id: %d" % number + newline
        text += b"".join(b"data: " + line + newline for line in lines) + newline
    parser = ServerSentEvents()
    read: list[bytes] = []
    for cut in cuts:
        read.extend(parser.feed(text[:cut]))
        text = text[cut:]
    read.extend(parser.feed(text))
    assert read == [b"\n".join(lines) for lines in events]
