"""A service with the test seams of OpenWOP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.openwop.host import Host, host_of
from tests.support.service import RunningService, open_service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[RunningService]:
    async with open_service(tmp_path, openwop_test_seams=True) as opened:
        yield opened


@pytest.fixture
async def host(service: RunningService) -> Host:
    return await host_of(service)
