"""Programs that fork while they use a client: `python -m tests.support.forking PROGRAM ARGUMENTS`.

Each prints what its processes have found, as JSON. They are programs because a process that has
threads, as that of the tests may have, cannot be forked safely.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import memorywall
from memorywall import AsyncClient, Client

READS = 240
PEOPLE = ("ann", "bob")
LONGEST = 60
"""The seconds after which a process that hangs is ended."""
Work = Callable[[], Any]


class Child:
    """A forked process that does some work; the text of an exception is its result.

    beside_threads: whether the process that forks has threads; newer versions of Python warn then
    """

    def __init__(self, work: Work, beside_threads: bool = False) -> None:
        self._reading, writing = os.pipe()
        assert beside_threads or threading.active_count() == 1
        if os.fork() != 0:
            os.close(writing)
            return
        try:
            signal.alarm(LONGEST)
            os.write(writing, json.dumps(_outcome(work)).encode())
        finally:
            os._exit(0)

    def result(self) -> Any:
        with os.fdopen(self._reading, "rb") as pipe:
            return json.loads(pipe.read())


def _outcome(work: Work) -> Any:
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _names_read(client: Client, person: str) -> list[str]:
    """The people whose memory the reads of a client of one person return."""
    bound = client.for_user(person)
    return sorted({str(bound.memory.get("home", "name")["name"]) for _ in range(READS)})


def people(url: str, key: str) -> dict[str, Any]:
    """Reads for two people in three processes at once, after a client was used."""
    with Client(url, key) as client:
        for person in PEOPLE:
            client.for_user(person).memory.put("home", "name", {"name": person})
        connected = client.for_user("ann").in_session(_session(client))
        connected.memory.put("turn", "n", {"n": 1})
        child = Child(lambda: _names_read(client, "bob"))
        context = get_context("fork")
        results = context.SimpleQueue()
        other = context.Process(target=lambda: results.put(_names_read(client, "bob")))
        other.start()
        mine = _names_read(client, "ann")
        found: dict[str, Any] = {"parent": mine, "child": child.result()}
        found |= {"other": results.get(), "turn": connected.memory.get("turn", "n").value}
        other.join()
        return found


def _session(client: Client) -> str:
    return str(client.for_user("ann").sessions.create().id)


def closing(url: str, key: str) -> dict[str, Any]:
    """A child closes the client, and its parent continues; two children create sessions."""
    with Client(url, key) as client:
        client.whoami()
        before = _sockets()

        def close() -> str:
            client.close()
            return _outcome(client.whoami)

        closed = Child(close).result()
        children = [Child(lambda: _session(client)) for _ in range(2)]
        made = [child.result() for child in children]
        client.whoami()
        return {"closed": closed, "made": made, "same": _sockets() == before}


def _sockets() -> list[str]:
    """The sockets that this process has open."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        # The descriptor that lists the folder is closed by now.
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(one for one in links if one.startswith("socket:"))


def streams(url: str, key: str) -> dict[str, Any]:
    """An export and a watch that began before the fork continue in both processes."""
    with Client(url, key) as client:
        for number in range(300):
            client.memory.put("many", f"k{number}", {"text": "x" * 2_000})
        export, watch = client.memory.export(namespace="many"), client.memory.watch("many", after=0)
        next(export), next(watch)

        def rest() -> tuple[int, list[int]]:
            return len({entry.key for entry in export}), [next(watch).seq for _ in range(20)]

        child = Child(rest)
        mine = rest()
        watch.close()
        return {"parent": mine, "child": child.result()}


def loops(url: str, key: str) -> dict[str, Any]:
    """One async client on several event loops, one after another, at once, and after a fork."""
    client = AsyncClient(url, key)

    async def read(person: str) -> list[str]:
        bound = client.for_user(person)
        await bound.memory.put("home", "name", {"name": person})
        return sorted({(await bound.memory.get("home", "name"))["name"] for _ in range(READS // 4)})

    found: dict[str, Any] = {"first": asyncio.run(read("ann")), "second": asyncio.run(read("bob"))}
    found["left open"] = len(_sockets())
    child = Child(lambda: asyncio.run(read("bob")))
    found["parent"], found["child"] = asyncio.run(read("ann")), child.result()

    async def fork() -> Any:
        await read("ann")
        child = Child(lambda: asyncio.run(read("bob")))
        found["within"] = await read("ann")
        return child.result()

    found["child within"] = asyncio.run(fork())
    threads = [threading.Thread(target=_keep, args=(found, one, read)) for one in PEOPLE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(client.aclose())
    return found


def _keep(found: dict[str, Any], person: str, read: Callable[[str], Any]) -> None:
    found[f"thread of {person}"] = asyncio.run(read(person))


def in_process(path: str) -> dict[str, Any]:
    """A child neither uses nor closes the store of its parent, and does not keep it locked."""
    client = memorywall.open(path)
    client.memory.put("home", "name", {"name": "ann"})
    is_done, done = os.pipe()
    is_over, over = os.pipe()

    def use() -> dict[str, Any]:
        os.close(over)
        found = {
            "read": _outcome(lambda: client.memory.get("home", "name").value),
            "export": _outcome(lambda: len(list(client.memory.export()))),
            "opened": _outcome(lambda: memorywall.open(path)),
        }
        client.close()
        os.write(done, b".")
        os.read(is_over, 1)
        return found

    child = Child(use, beside_threads=True)
    os.read(is_done, 1)
    written = client.memory.put("home", "name", {"name": "bob"}).version
    client.close()
    with memorywall.open(path) as again:
        read = again.memory.get("home", "name").value
    # The child lives until here.
    os.close(over)
    return {"written": written, "again": read, **child.result()}


def in_memory(directory: str) -> dict[str, Any]:
    """A child that ends without closing leaves the files of a store in memory to its parent.

    directory: an empty directory for temporary files
    """
    tempfile.tempdir = directory
    client = memorywall.open(":memory:")
    client.remember("Ana drinks tea")
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
    kept = os.listdir(directory)
    client.close()
    return {"kept": len(kept), "left": os.listdir(directory)}


def in_process_async(path: str) -> dict[str, Any]:
    """A child does not use the store that an async client of its parent has open."""
    client = memorywall.open_async(path)

    async def read() -> Any:
        return (await client.memory.get("home", "name")).value

    async def fork() -> dict[str, Any]:
        await client.memory.put("home", "name", {"name": "ann"})
        child = Child(lambda: asyncio.run(read()), beside_threads=True)
        return {"child": child.result(), "parent": await read()}

    return asyncio.run(fork())


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    print(json.dumps(globals()[program](*arguments)))
