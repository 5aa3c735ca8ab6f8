"""The store on PostgreSQL passes the whole suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memorywall.storage.conformance.base import Opener
from memorywall.storage.conformance.suite import StoreConformance
from memorywall.storage.port import Store
from memorywall.storage.postgres.store import PostgresStore
from tests.support.backend import own_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def database() -> Iterator[str]:
    """An empty memorywall."""
    with own_database() as url:
        yield url


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    def opener(self, database: str) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(database)

        return opened
