"""The crew that every test here starts with."""

from __future__ import annotations

import pytest

from tests.support.service import RunningService
from tests.work.crew import Crew, crew_of


@pytest.fixture
async def crew(service: RunningService) -> Crew:
    """A crew with a new intent."""
    return await crew_of(service)
