"""A data directory that several processes use: one has it open, and any of them may be killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

import memorywall
from memorywall.exceptions import StoreLockedError
from memorywall.in_process import shared_directory
from memorywall.in_process.shared_directory import find_shared_directory, open_shared_directory
from memorywall.sdk.client import AsyncClient
from memorywall.sdk.effects import Request
from memorywall.sdk.retry import send_repeatable
from tests.cli.shell import environment
from tests.support.extent import chosen_seed

pytestmark = [pytest.mark.anyio, pytest.mark.sqlite("directories are of SQLite")]

_CHILD = """
import asyncio, sys
from pathlib import Path
from memorywall.in_process.shared_directory import open_shared_directory

async def main():
    async with open_shared_directory(Path(sys.argv[1]), sys.argv[2]) as client:
        await client.whoami()
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@contextmanager
def opened(data: Path, agent: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that uses the directory, and opens it if it is the first one."""
    command = [sys.executable, "-c", _CHILD, str(data), agent]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        try:
            yield process
        finally:
            process.kill()


async def test_writes_are_stored_once_when_the_process_that_has_it_open_is_killed(
    tmp_path: Path,
) -> None:
    seed = chosen_seed()
    random, data = Random(seed), tmp_path / "data"
    acknowledged: list[str] = []

    async def write(client: AsyncClient, name: str) -> None:
        session = await client.sessions.create(client_id=name)
        for number in range(12):
            # Without an id of ours, a repeated request would add the turn a second time.
            await session.add("user", f"{name} {number}")
            acknowledged.append(f"{name} {number}")

    for round_ in range(2):
        with opened(data, "bob") as other:
            async with open_shared_directory(data, "ann") as client:
                names = [f"{round_}-{one}" for one in range(4)]
                writers = [asyncio.create_task(write(client, name)) for name in names]
                wanted = len(acknowledged) + random.randint(1, 30)
                while len(acknowledged) < wanted:
                    await asyncio.sleep(0)
                other.send_signal(signal.SIGKILL)
                await asyncio.gather(*writers)
                for name in names:
                    (found,) = (await client.sessions.list(client_id=name)).sessions
                    turns = await (await client.sessions.get(found.id)).turns()
                    assert [one.content for one in turns] == [f"{name} {n}" for n in range(12)]
    assert len(acknowledged) == 2 * 4 * 12


async def test_a_repeated_request_is_known_to_the_process_that_takes_over(tmp_path: Path) -> None:
    """As when the process was killed between a write and its reply."""
    data = tmp_path / "data"
    with opened(data, "bob") as other:
        async with open_shared_directory(data, "ann") as client:
            session = await client.sessions.create()
            turn = {"role": "user", "content": "once"}
            request = Request(
                operation="add_turns",
                path={"session_id": session.info.id},
                body={"turns": [turn]},
                idempotency_key="key-1",
            )
            assert (await client.driver.run(send_repeatable(request))).status == 201
            other.send_signal(signal.SIGKILL)
            assert (await client.driver.run(send_repeatable(request))).status == 201
            assert [one.content for one in await session.turns()] == ["once"]


async def test_each_agent_has_its_own_memory_and_all_rights(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with opened(data, "bob"):
        async with open_shared_directory(data, "ann") as ann:
            assert (await ann.whoami()).agent_id == "ann"
            await ann.for_user("eve").remember("Eve travels by train")
            await ann.memory.put("n", "mine", {"text": "of ann"}, memory_type="episodic")
            await ann.forget("eve")
            async with open_shared_directory(data, "bob") as bob:
                assert (await bob.whoami()).agent_id == "bob"
                page = await bob.memory.query(namespace="n", memory_type="episodic")
                assert page.total == 0
        other = await asyncio.to_thread(find_shared_directory, data, "ann")
        assert other is not None
        with other:
            assert await asyncio.to_thread(lambda: other.whoami().agent_id) == "ann"


async def test_a_directory_whose_process_does_not_answer_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_directory, "_PATIENCE", 0.1)
    with memorywall.open(f"{tmp_path / 'data'}/", agent="ann"):
        async with open_shared_directory(tmp_path / "data", "bob") as client:
            with pytest.raises(StoreLockedError):
                await client.whoami()
    async with open_shared_directory(tmp_path / "data", "bob") as client:
        assert (await client.whoami()).agent_id == "bob"
    # What a killed process has left behind answers nobody.
    assert find_shared_directory(tmp_path / "data", "bob") is None
    assert find_shared_directory(tmp_path / "absent", "bob") is None
