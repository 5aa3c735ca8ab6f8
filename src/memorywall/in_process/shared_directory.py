"""A data directory for several processes of a user: one has it open and answers the others.

Whichever process comes first opens it and serves it on a socket in the directory. When that process
ends, the next one that has a request opens it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from copy import copy
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx

from memorywall.assembly import LocalAuthenticator
from memorywall.in_process.drivers import AsyncHandle, AsyncInProcessDriver
from memorywall.in_process.host import AsyncHost, OpenedMemory
from memorywall.in_process.opening import acquire_host
from memorywall.records.errors import StoreLockedError
from memorywall.records.principal import Principal
from memorywall.sdk.client import AsyncClient, Client
from memorywall.sdk.effects import Open, Request, Response
from memorywall.sdk.errors import MemoryTransportError
from memorywall.sdk.executors import AwaitedStream, AwaitingDriver, RequestBinding
from memorywall.sdk.local_sockets import socket_in
from memorywall.server.app import build_app
from memorywall.server.local_socket import serving_locally
from memorywall.service.requests.validation import check_agent
from memorywall.settings import DEFAULT_TENANT

Result = TypeVar("Result")
_SOCKET = "memory.sock"
_URL = "http://memorywall"
_NO_KEY = "none"
_PATIENCE = 3.0
"""The seconds in which a process that has opened the directory also answers."""
_RETRY = 0.05


def open_shared_directory(data: Path, agent: str) -> AsyncClient:
    """Returns a client of a data directory, which the first request opens, unless another process
    has it open that answers. Creates a missing directory.

    agent: the agent of the client
    Requests raise StoreLockedError if that process does not answer, as a server does not.
    """
    return AsyncClient.over(SharedDirectoryDriver(data, agent), agent=agent)


def find_shared_directory(data: Path, agent: str) -> Client | None:
    """Returns a client of a data directory that another process has open and answers for; None if
    there is none."""
    path = socket_in(data, _SOCKET)
    if path is None or not path.is_socket():
        return None
    client = Client(_URL, _NO_KEY, agent=agent, transport=httpx.HTTPTransport(uds=os.fspath(path)))
    try:
        client.health()
    except MemoryTransportError:
        client.close()
        return None
    return client


class SharedDirectoryDriver(AwaitingDriver):
    """Sends requests to a data directory that this process or another one has open.

    data: the directory
    agent: the agent that it acts for
    """

    def __init__(self, data: Path, agent: str) -> None:
        super().__init__()
        self._directory = _Directory(data, agent)

    async def send(self, request: Request) -> Response:
        return await self._directory.use(lambda driver: driver.send(request), self.binding)

    async def open(self, step: Open) -> tuple[Response, AwaitedStream]:
        return await self._directory.use(lambda driver: driver.open(step), self.binding)

    async def close(self) -> None:
        await self._directory.close()

    @property
    def is_closed(self) -> bool:
        return self._directory.is_closed


class _Directory:
    """What all copies of a driver share: the driver of the directory, which changes when the
    process ends that has it open."""

    def __init__(self, data: Path, agent: str) -> None:
        self.is_closed = False
        self._data = data
        self._agent = agent
        self._lock = asyncio.Lock()
        self._resources = AsyncExitStack()
        self._driver: AwaitingDriver | None = None

    async def use(
        self, action: Callable[[AwaitingDriver], Awaitable[Result]], binding: RequestBinding
    ) -> Result:
        """Returns the result of an action of the present driver, which is bound as said."""
        try:
            return await action(_bound(await self._find(), binding))
        except MemoryTransportError as error:
            if error.sent:
                raise
            # The process that had the directory open has ended.
            self._driver = None
            return await action(_bound(await self._find(), binding))

    async def close(self) -> None:
        self.is_closed = True
        self._driver = None
        await self._resources.aclose()

    async def _find(self) -> AwaitingDriver:
        async with self._lock:
            if self.is_closed:
                raise RuntimeError("the client is closed")
            if self._driver is None:
                self._driver = await self._open()
            return self._driver

    async def _open(self) -> AwaitingDriver:
        """Opens the directory, or connects to the process that has. Raises StoreLockedError."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            handle = AsyncHandle(partial(acquire_host, AsyncHost, f"{self._data}{os.sep}", None))
            try:
                return await self._serve(handle, await handle.open())
            except StoreLockedError:
                other = await self._connect()
                if other is not None:
                    return other
                if asyncio.get_running_loop().time() > deadline:
                    raise
            # The other process has the directory for so short that it does not answer yet.
            await asyncio.sleep(_RETRY)

    async def _serve(self, handle: AsyncHandle, memory: OpenedMemory) -> AwaitingDriver:
        self._resources.push_async_callback(handle.close)
        path = socket_in(self._data, _SOCKET)
        if path is not None:
            authenticator = _EachAgent(DEFAULT_TENANT, self._agent)
            service = memory.runner.service
            app = build_app(service, authenticator, memory.stopping, memory.index)
            await self._resources.enter_async_context(serving_locally(app, path))
        return AsyncInProcessDriver(handle, self._agent, with_keys=True)

    async def _connect(self) -> AwaitingDriver | None:
        path = socket_in(self._data, _SOCKET)
        if path is None or not path.is_socket():
            return None
        transport = httpx.AsyncHTTPTransport(uds=os.fspath(path))
        client = AsyncClient(_URL, _NO_KEY, agent=self._agent, transport=transport)
        try:
            await client.health()
        except MemoryTransportError:
            await client.close()
            return None
        self._resources.push_async_callback(client.close)
        return client.driver


class _EachAgent(LocalAuthenticator):
    """Gives each agent what it has when it opens the directory itself."""

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        if agent is None:
            return await super().authenticate(key, agent)
        own = LocalAuthenticator(DEFAULT_TENANT, check_agent("X-Agent-ID", agent))
        return await own.authenticate(None, None)


def _bound(driver: AwaitingDriver, binding: RequestBinding) -> AwaitingDriver:
    twin = copy(driver)
    twin.binding = binding
    return twin
