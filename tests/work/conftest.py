"""The crew that every test here starts with."""

from __future__ import annotations

import pytest

from tests.support.house import House
from tests.work.crew import Crew, crew_of


@pytest.fixture
async def crew(house: House) -> Crew:
    """A crew with a new intent."""
    return await crew_of(house)
