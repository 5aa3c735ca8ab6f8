"""A core of an adapter's own: written once, run by both clients, over HTTP and in process."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path

import pytest

import memorywall
from memorywall.exceptions import MemoryNotFoundError, ValidationError
from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.effects import RequestGenerator, StreamGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method, stream_method
from memorywall.sdk.memory import MemoryCore
from memorywall.sdk.models import MemoryEntry
from tests.test_sdk_support import Either, World, fresh, server, take, world

__all__ = ["server", "world"]


class NotebookCore:
    """Numbered notes below a namespace."""

    def __init__(self, memory: MemoryCore, namespace: str) -> None:
        self._memory = memory
        self._namespace = namespace

    def append(self, text: str, *, tags: Sequence[str] = ()) -> RequestGenerator[int]:
        """Appends a note and returns its number.

        Raises ValidationError.
        """
        number = (yield from self._memory.count(namespace=self._namespace)) + 1
        yield from self._memory.set(
            self._namespace, str(number), {"text": text}, "semantic", tags=list(tags)
        )
        return number

    def read(self, number: int) -> RequestGenerator[str]:
        """Returns a note. Raises MemoryNotFoundError."""
        entry = yield from self._memory.get(self._namespace, str(number), "semantic")
        if entry is None:
            raise MemoryNotFoundError
        return str(entry.value["text"])

    def entries(self) -> StreamGenerator[MemoryEntry]:
        """Iterates over the entries of the notes."""
        yield from self._memory.iterate(namespace=self._namespace)


class NotebookMethods:
    append = method(NotebookCore.append)
    read = method(NotebookCore.read)
    entries = stream_method(NotebookCore.entries)


class Notebook(NotebookMethods, Facade[NotebookCore]):
    """A notebook of a Client."""


class AsyncNotebook(NotebookMethods, AsyncFacade[NotebookCore]):
    """A notebook of an AsyncClient."""


def open_notebook(client: Client | AsyncClient, namespace: str) -> Notebook | AsyncNotebook:
    core = NotebookCore(client.memory.core, namespace)
    if isinstance(client, Client):
        return Notebook(core, client.driver)
    return AsyncNotebook(core, client.driver)


@pytest.mark.anyio
async def test_a_core_runs_in_every_client(world: World) -> None:
    client = world.client("billing").target
    namespace = fresh("notes")
    opened = open_notebook(client, namespace)
    notebook = Either(opened)
    assert await notebook.append("first") == 1
    assert await notebook.append("second", tags=["x"]) == 2
    assert await notebook.read(2) == "second"
    with pytest.raises(MemoryNotFoundError):
        await notebook.read(3)
    with pytest.raises(ValidationError, match="tags"):
        await notebook.append("third", tags="urgent")
    entries = await take(opened.entries())
    assert sorted(entry.key for entry in entries) == ["1", "2"]
    # The core shares what the client has seen, so that the client's next write is an update.
    written = await Either(client.memory).set(namespace, "1", {"text": "new"}, "semantic")
    assert written.version == 2


def test_a_single_generator_runs_without_a_class(place: Path | str) -> None:
    with memorywall.open(place, agent="billing") as client:
        appending = NotebookCore(client.memory.core, "notes").append("only")
        assert client.driver.run(appending) == 1


def test_a_method_is_described_by_its_function() -> None:
    for kind in (Notebook, AsyncNotebook):
        assert inspect.getdoc(kind.append) == inspect.getdoc(NotebookCore.append)
        assert kind.append.__name__ == "append"
        assert inspect.signature(kind.append).return_annotation == "int"
    assert inspect.iscoroutinefunction(AsyncNotebook.append)
    assert not inspect.iscoroutinefunction(Notebook.append)
    entries = [inspect.signature(one.entries) for one in (Notebook, AsyncNotebook)]
    assert [one.return_annotation for one in entries] == [
        "Generator[MemoryEntry, None, None]",
        "AsyncGenerator[MemoryEntry, None]",
    ]
