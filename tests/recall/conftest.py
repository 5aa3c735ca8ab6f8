"""The fixture that most tests of recall use; tests by meaning open a recall with an embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.recall.recall_service import RecallService, open_recall


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    """A recall by words."""
    async with open_recall(tmp_path) as opened:
        yield opened
