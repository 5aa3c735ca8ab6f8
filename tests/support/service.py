"""A whole memorywall in this process, with a clock that tests set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from memorywall.assembly import open_memory
from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission, PrincipalKind
from memorywall.server.app import build_app
from memorywall.service.access.api_keys import ApiKeyAuthenticator
from memorywall.service.administration.tenants import create_key, create_tenant
from memorywall.service.requests.services import SharedServices
from memorywall.settings import DATABASE_NAME, Settings
from tests.support.asgi import AsgiClient
from tests.support.backend import store_of
from tests.support.sqlite_files import create_database

START = 1_770_000_000_000  # 2026-02-02T02:40:00Z


class TestClock:
    """Stands still until it is moved."""

    __test__ = False

    def __init__(self, now: int = START) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def not_before(self, instant: int) -> None:
        self._now = max(self._now, instant)

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)


class RunningService:
    """An open store with its HTTP application, and clients of the application."""

    def __init__(self, service: SharedServices, clock: TestClock) -> None:
        self.services = service
        self.clock = clock
        self.app = build_app(service, ApiKeyAuthenticator(service))

    def client(self, key: str | None = None, agent: str | None = None) -> httpx.AsyncClient:
        """A client that sends this key. Close it, or leave that to the garbage collector.

        All requests have one id, so that tests can compare whole replies.
        """
        headers = {"X-Request-ID": "test"}
        if key is not None:
            headers["X-API-Key"] = key
        if agent is not None:
            headers["X-Agent-ID"] = agent
        return AsgiClient(self.app, "http://memorywall.test", headers)

    async def key(
        self,
        agent: str,
        tenant: str = "default",
        kind: PrincipalKind = PrincipalKind.AGENT,
        permissions: Sequence[Permission] = tuple(DEFAULT_PERMISSIONS),
        **limits: Any,
    ) -> str:
        """A new key of an agent, whose tenant is made where needed."""
        await create_tenant(self.services, tenant)
        text, _ = await create_key(self.services, tenant, agent, kind, permissions, **limits)
        return text

    async def agent(
        self,
        agent: str,
        tenant: str = "default",
        kind: PrincipalKind = PrincipalKind.AGENT,
        permissions: Sequence[Permission] = tuple(DEFAULT_PERMISSIONS),
        **limits: Any,
    ) -> httpx.AsyncClient:
        """A client of an agent with a new key; `limits` are those of `create_key`."""
        return self.client(await self.key(agent, tenant, kind, permissions, **limits))


def settings_of(directory: Path, **given: Any) -> Settings:
    """Settings for a database in `directory`, or for the PostgreSQL one that stands for it."""
    given.setdefault("database_url", store_of(directory))
    given.setdefault("access_log", False)
    return Settings(sqlite_path=directory / DATABASE_NAME, **given)


@asynccontextmanager
async def open_service(directory: Path, **settings: Any) -> AsyncIterator[RunningService]:
    """Opens a service on a database in `directory`, or on the PostgreSQL database in its place.

    A new SQLite database is a copy of a migrated one, because most tests need one of their own.
    """
    path = directory / DATABASE_NAME
    if store_of(directory) is None and not path.exists():
        create_database(path)
    clock = TestClock()
    async with open_memory(settings_of(directory, **settings), clock=clock) as services:
        yield RunningService(services, clock)


def draft(key: str = "progress", **fields: Any) -> dict[str, Any]:
    """The body of a create, working memory unless said otherwise."""
    return {
        "namespace": "invoices",
        "key": key,
        "value": {"completed": 23},
        "memory_type": "working",
        **fields,
    }
