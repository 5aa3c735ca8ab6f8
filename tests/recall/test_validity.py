"""What no longer or not yet holds is found only by a search that asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memorywall.records.clock import format_instant
from memorywall.records.tier import Tier
from memorywall.records.validity import ANY_TIME, Validity, validity_of
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ANN = agent("ann")
QUERY = "budget for the train"


@pytest.fixture(params=[True, False], ids=["with a model", "by words"])
async def recall(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path, WordEmbedder() if request.param else None) as opened:
        yield opened


async def _fact(recall: RecallService, key: str, tier: Tier = Tier.SEMANTIC, **value: Any) -> None:
    await recall.write(ANN, {"text": QUERY, **value}, tier, "facts", key=key)


async def test_only_what_holds_is_found_unless_asked(recall: RecallService) -> None:
    now = recall.clock.now()
    past, later = format_instant(now - 3_600_000), format_instant(now + 3_600_000)
    await _fact(recall, "always")
    await _fact(recall, "over", valid_until=past)
    await _fact(recall, "to come", valid_from=later)
    await _fact(recall, "within", valid_from=past, valid_until=later)
    if recall.embedder is not None:
        await recall.embed()
    assert await recall.keys(ANN, QUERY) == {"always", "within"}
    everything = {"always", "over", "to come", "within"}
    assert await recall.keys(ANN, QUERY, valid_at=ANY_TIME) == everything
    before = format_instant(now - 7_200_000)
    assert await recall.keys(ANN, QUERY, valid_at=before) == {"always", "over"}
    assert await recall.keys(ANN, QUERY, valid_at=later) == {"always", "to come"}


async def test_what_is_found_changes_as_time_passes(recall: RecallService) -> None:
    now = recall.clock.now()
    await _fact(recall, "first", valid_until=format_instant(now + 60_000))
    await _fact(recall, "second", valid_from=format_instant(now + 60_000))
    assert await recall.keys(ANN, QUERY) == {"first"}
    recall.clock.advance(60_000)
    assert await recall.keys(ANN, QUERY) == {"second"}
    # What was known then, and what held then, are two questions.
    assert await recall.keys(ANN, QUERY, reference_time=format_instant(now)) == {"first"}
    both = {"reference_time": format_instant(now), "valid_at": format_instant(now + 60_000)}
    assert await recall.keys(ANN, QUERY, **both) == {"second"}


@pytest.mark.parametrize(
    ("value", "validity"),
    [
        ({}, Validity()),
        ({"valid_from": None, "valid_until": 3}, Validity()),
        ({"valid_until": "soon"}, Validity()),
        (
            {"valid_from": "2026-02-01", "valid_until": "2026-02-03"},
            Validity("2026-02-01T00:00:00.000Z", "2026-02-04T00:00:00.000Z"),
        ),
        (
            {"valid_from": "2026-02-01t12:00:00+02:00"},
            Validity("2026-02-01T10:00:00.000Z"),
        ),
        ({"valid_until": "9999-12-31"}, Validity()),
    ],
)
def test_a_date_is_a_whole_day(value: dict[str, Any], validity: Validity) -> None:
    assert validity_of(value) == validity
