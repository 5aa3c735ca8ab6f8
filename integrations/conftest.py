"""Fixtures of these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.service import RunningService, open_service


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on asyncio."""
    return "asyncio"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    """A whole memorywall in this process."""
    async with open_service(tmp_path) as opened:
        yield opened
