"""The store on PostgreSQL passes the whole suite."""

from __future__ import annotations

import pytest

from memorywall.storage.port import Store
from memorywall.storage.postgres.store import PostgresStore
from memorywall.testing.base import Opener
from memorywall.testing.suite import StoreConformance

pytestmark = pytest.mark.anyio


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    def opener(self, database: str) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(database)

        return opened
