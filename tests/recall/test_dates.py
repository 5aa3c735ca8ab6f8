"""Dates in queries, by name and counted from today."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from memorywall.recall.dates import dates_named
from tests.recall.recall_service import RecallService, agent, open_recall

pytestmark = pytest.mark.anyio

ADA = agent("ada")
TODAY = date(2026, 2, 2)
"""A Monday."""
MARCH = [("month", 3), ("month", 4), ("month", 5)]


@pytest.fixture
async def recall(tmp_path: Path) -> AsyncIterator[RecallService]:
    async with open_recall(tmp_path) as opened:
        yield opened


def _days(first: str, last: str | None = None) -> list[tuple[str, int]]:
    start = date.fromisoformat(first)
    end = date.fromisoformat(last or first)
    return [("date", start.toordinal() + step) for step in range((end - start).days + 1)]


@pytest.mark.parametrize(
    ("query", "facets"),
    [
        ("what happened in March?", [("month", 3)]),
        ("we march on", []),
        ("the 7th of May 2023", [("month", 5), ("day", 7), ("year", 2023)]),
        ("am 3. Oktober, an einem Dienstag", [("month", 10), ("day", 3), ("weekday", 1)]),
        ("el martes de febrero", [("weekday", 1), ("month", 2)]),
        ("on 2024-05-06", [("year", 2024), ("month", 5), ("day", 6)]),
        ("what did Ana say yesterday", _days("2026-02-01")),
        ("the day before yesterday", _days("2026-01-31")),
        ("plans for today", _days("2026-02-02")),
        ("three days ago", _days("2026-01-30")),
        ("40 days ago", _days("2025-12-24")),
        ("a couple of weeks ago", _days("2026-01-16", "2026-01-22")),
        ("a month ago", [("year", 2026), ("month", 1)]),
        ("two months ago", [("year", 2025), ("month", 12)]),
        ("two years ago", [("year", 2024)]),
        ("many years ago", []),
        ("two weeks before the move", []),
        ("last week", _days("2026-01-26", "2026-02-01")),
        ("this week", _days("2026-02-02", "2026-02-08")),
        ("last month", [("year", 2026), ("month", 1)]),
        ("this month", [("year", 2026), ("month", 2)]),
        ("last year", [("year", 2025)]),
        ("the past two weeks", _days("2026-01-19", "2026-02-02")),
        ("in the last 3 days", _days("2026-01-30", "2026-02-02")),
        ("last Monday", [("weekday", 0), *_days("2026-01-26")]),
        ("last Friday", [("weekday", 4), *_days("2026-01-30")]),
        ("last time", []),
        ("last spring", [*MARCH, ("year", 2025)]),
        ("last winter", [("month", 12), ("month", 1), ("month", 2), ("year", 2025)]),
        ("in the spring of 2023", [("year", 2023), *MARCH]),
        ("during the spring", MARCH),
        ("a spring in the clock", []),
        ("since December", [("month", 12), ("month", 1), ("month", 2)]),
        ("between March and May", [("month", 3), ("month", 5), ("month", 4)]),
    ],
)
def test_the_facets_of_a_date(query: str, facets: list[tuple[str, int]]) -> None:
    assert dates_named(query, TODAY) == facets


async def test_a_date_that_is_counted_from_today_finds_its_entries(recall: RecallService) -> None:
    today = date.fromisoformat(recall.context.now()[:10])
    ids = {}
    for days in (0, 1, 9, 40, 400):
        said = {"text": "We talked about the parcel.", "date": str(today - timedelta(days))}
        ids[days] = (await recall.write(ADA, said, namespace=f"n{days}")).id
    assert (await recall.ids(ADA, "what of the parcel yesterday"))[0] == ids[1]
    assert (await recall.ids(ADA, "the parcel nine days ago"))[0] == ids[9]
    assert (await recall.ids(ADA, "the parcel last year"))[0] in (ids[40], ids[400])
    earlier = f"{today - timedelta(8)}T00:00:00Z"
    assert dates_named("yesterday", date.fromisoformat(earlier[:10])) == [
        ("date", (today - timedelta(9)).toordinal())
    ]
