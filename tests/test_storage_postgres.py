"""The store on PostgreSQL passes the whole suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorywall.storage.port import Store
from memorywall.storage.postgres.store import PostgresStore
from memorywall_testing.base import Opener
from memorywall_testing.suite import StoreConformance
from tests.support.backend import store_of

pytestmark = pytest.mark.anyio


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    def database(self, tmp_path: Path) -> str:
        """One that tests use in turn and empty: no part of the contract changes the schema."""
        url = store_of(tmp_path)
        assert url is not None, "this test needs --store postgres"
        return url

    @pytest.fixture
    def opener(self, database: str) -> Opener:
        async def opened(*, beside: bool = False) -> Store:
            return await PostgresStore.open(database)

        return opened
