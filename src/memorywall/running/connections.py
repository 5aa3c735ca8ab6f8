"""How a runner speaks for the agents of a workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from memorywall.assembly import settings_for
from memorywall.sdk.client import Client
from memorywall.sdk.local import local_clients


class Connections(Protocol):
    """A client for the coordinator, and one for each agent."""

    @property
    def coordinator(self) -> Client:
        """Who makes the intent and its tasks; may set agents' limits."""
        ...

    def agent(self, name: str) -> Client:
        """Who works on its tasks."""
        ...


class _Clients:
    """`Connections` whose clients are made when they are first asked for."""

    def __init__(self, coordinator: Client, connect: Callable[[str], Client]) -> None:
        self.coordinator = coordinator
        self._connect = connect
        self._agents: dict[str, Client] = {}

    def agent(self, name: str) -> Client:
        if name not in self._agents:
            self._agents[name] = self._connect(name)
        return self._agents[name]


@contextmanager
def server_connections(url: str | None, key: str) -> Iterator[Connections]:
    """To a server, with a key that may act for the agents; its own principal coordinates."""
    with ExitStack() as stack:

        def connect(agent: str) -> Client:
            return stack.enter_context(Client(url, key, agent=agent))

        yield _Clients(stack.enter_context(Client(url, key)), connect)


@contextmanager
def local_connections(directory: Path, coordinator: str) -> Iterator[Connections]:
    """To a data directory, made if it is missing, with no server; or with its key to the PostgreSQL
    database that the environment names."""
    directory.mkdir(parents=True, exist_ok=True)
    with local_clients(settings_for(directory), coordinator) as connect:
        yield _Clients(connect(coordinator), connect)
