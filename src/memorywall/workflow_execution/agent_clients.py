"""The clients of a workflow's agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from memorywall.assembly import settings_for
from memorywall.in_process.opening import local_clients
from memorywall.sdk.client import Client


class AgentClients(Protocol):
    """A client for the coordinator, and one for each agent."""

    @property
    def coordinator(self) -> Client:
        """The client of the coordinator, which creates the intent and its tasks and sets limits."""
        ...

    def agent(self, name: str) -> Client:
        """The client of an agent, which works on tasks."""
        ...


class _Clients:
    """`AgentClients` that creates its clients on first use."""

    def __init__(self, coordinator: Client, connect: Callable[[str], Client]) -> None:
        self.coordinator = coordinator
        self._connect = connect
        self._agents: dict[str, Client] = {}

    def agent(self, name: str) -> Client:
        if name not in self._agents:
            self._agents[name] = self._connect(name)
        return self._agents[name]


@contextmanager
def server_connections(url: str | None, key: str) -> Iterator[AgentClients]:
    """Clients of a server, with a key that has `act_as`; the key's principal is the coordinator.

    url: None for the default
    """
    with ExitStack() as stack:

        def connect(agent: str) -> Client:
            return stack.enter_context(Client(url, key, agent=agent))

        yield _Clients(stack.enter_context(Client(url, key)), connect)


@contextmanager
def local_connections(directory: Path, coordinator: str) -> Iterator[AgentClients]:
    """Clients of a data directory without a server; the directory is created if missing. If the
    environment names a PostgreSQL database, clients of that database, with the key of the
    directory."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with local_clients(settings_for(directory), coordinator) as connect:
        yield _Clients(connect(coordinator), connect)
