"""Dates in queries, by name and counted from today."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from memorywall.recall.dates import FromEvent, dates_from_events, dates_named, dates_told
from memorywall.records.tier import Tier
from tests.recall.recall_service import RecallService, agent, open_recall
from tests.support.embedder import WordEmbedder

pytestmark = pytest.mark.anyio

ADA = agent("ada")
TODAY = date(2026, 2, 2)
"""A Monday."""
MARCH = [("month", 3), ("month", 4), ("month", 5)]


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
        ("in 2026-08", [("year", 2026), ("month", 8)]),
        ("on 2026-08-12", [("year", 2026), ("month", 8), ("day", 12)]),
        ("in 2026-13", [("year", 2026)]),
        ("la réunion de fe\u0301vrier", [("month", 2)]),
        ("sabado since fevrier", [("weekday", 5), ("month", 2)]),
        ("since December", [("month", 12), ("month", 1), ("month", 2)]),
        ("between March and May", [("month", 3), ("month", 5), ("month", 4)]),
    ],
)
def test_the_facets_of_a_date(query: str, facets: list[tuple[str, int]]) -> None:
    assert dates_named(query, TODAY) == facets


async def test_a_date_that_is_counted_from_today_finds_its_entries(recall: RecallService) -> None:
    today = date.fromisoformat(recall.services.now()[:10])
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


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what did we buy two weeks before the move?", [FromEvent("the move", -2, "week")]),
        (
            "the day after the wedding in Graz, who left",
            [FromEvent("the wedding in Graz", 1, "day")],
        ),
        ("a couple of months before Ana's exam", [FromEvent("Ana's exam", -2, "month")]),
        (
            "her puppy of two weeks before August 11, 2023?",
            [FromEvent("August 11, 2023", -2, "week", date(2023, 8, 11))],
        ),
        (
            "the day after the 3rd of May 2024 at work",
            [FromEvent("the 3rd of May 2024", 1, "day", date(2024, 5, 3))],
        ),
        ("a day after April 31, 2024", [FromEvent("April 31", 1, "day")]),
        ("many weeks before the move", []),
        ("weeks before the move", []),
        ("two weeks before", []),
    ],
)
def test_dates_are_counted_from_events(query: str, expected: list[FromEvent]) -> None:
    assert dates_from_events(query) == expected


@pytest.mark.parametrize(
    ("distance", "facets"),
    [
        (FromEvent("", -1, "day"), _days("2026-02-01")),
        (FromEvent("", 2, "week"), _days("2026-02-13", "2026-02-19")),
        (FromEvent("", -3, "month"), [("year", 2025), ("month", 11)]),
        (FromEvent("", 1, "year"), [("year", 2027)]),
        (FromEvent("", 999_999_999, "day"), []),
    ],
)
def test_the_day_of_an_event_gives_the_date(
    distance: FromEvent, facets: list[tuple[str, int]]
) -> None:
    assert distance.dates(TODAY) == facets


@pytest.mark.parametrize("text", ["we meet today", "at last", "long ago", "this week", ""])
def test_texts_that_tell_no_other_date(text: str) -> None:
    assert dates_told(text, TODAY) == set()


def test_a_text_tells_the_date_of_what_happened() -> None:
    yesterday = {("year", 2026), ("month", 2), ("day", 1), ("weekday", 6), *_days("2026-02-01")}
    assert dates_told("I moved yesterday.", TODAY) == yesterday
    told = dates_told("We met last week.", TODAY)
    assert told >= {*_days("2026-01-26", "2026-02-01"), ("month", 1), ("month", 2)}
    assert not {"day", "weekday"} & {unit for unit, _ in told}


@pytest.mark.parametrize("day", [date.min, date.max])
@pytest.mark.parametrize(
    "text",
    ["yesterday", "last week, or this week", "999 years ago", "last Monday", "the past 3 weeks"],
)
def test_days_that_the_calendar_does_not_have_are_none(day: date, text: str) -> None:
    known = range(1, date.max.toordinal() + 1)
    places = {*dates_told(text, day), *dates_named(text, day)}
    dates = {one[1] for one in places if isinstance(one, tuple) and one[0] == "date"}
    assert all(one in known for one in dates)


async def test_an_entry_at_the_limit_of_the_calendar_hides_no_other(recall: RecallService) -> None:
    for day in ("0001-01-01", "9999-12-31"):
        said = {"text": "yesterday, last week or this week at the harbour", "date": day}
        await recall.write(ADA, said, key=day)
    assert await recall.keys(ADA, "the harbour yesterday") == {"0001-01-01", "9999-12-31"}
    as_of = await recall.search(ADA, "yesterday", reference_time="0001-01-01T00:00:00.000000Z")
    assert not as_of.hits


async def test_an_entry_is_found_by_the_day_on_which_it_happened(recall: RecallService) -> None:
    for key, text, day in (
        ("told", "yesterday I went to the harbour", "2023-05-08"),
        ("other", "I went to the harbour", "2023-06-20"),
        ("later", "I went to the harbour, and then home", "2023-05-21"),
    ):
        await recall.write(ADA, {"text": text, "date": day}, key=key, scope={"session_id": key})
    page = await recall.search(ADA, "who went to the harbour on 7 May?")
    assert page.hits[0].entry.key == "told"


async def test_a_date_before_an_event_is_understood(recall: RecallService) -> None:
    for key, text, day in (
        ("move", "we moved to Graz, the move took nine hours", "2023-03-20"),
        ("wanted", "bought a drill and a ladder", "2023-03-06"),
        ("early", "bought a lamp and a ladder", "2023-01-14"),
        ("late", "bought a rug and a ladder", "2023-04-02"),
        ("second", "the trams of Graz", "2023-01-28"),
    ):
        await recall.write(ADA, {"text": text, "date": day}, key=key, scope={"session_id": key})
    page = await recall.search(
        ADA, "what was bought with the ladder two weeks before the move to Graz?", explain=True
    )
    dates = {hit.entry.key: hit.signals.date for hit in page.hits if hit.signals is not None}
    assert dates["wanted"] > 0 == dates["early"] == dates["late"]
    bought = [hit.entry.key for hit in page.hits if hit.entry.key != "move"]
    assert bought[0] == "wanted"


async def test_an_event_that_may_not_be_read_gives_no_date(recall: RecallService) -> None:
    moved = {"text": "the move to Graz", "date": "2023-03-20"}
    await recall.write(agent("bob"), moved)
    await recall.write(ADA, {"text": "bought a ladder", "date": "2023-03-06"}, key="ladder")
    page = await recall.search(ADA, "bought two weeks before the move", explain=True)
    (hit,) = page.hits
    assert hit.signals is not None
    assert hit.signals.date == 0


async def test_an_event_takes_one_search_and_needs_a_word(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    async with open_recall(tmp_path, embedder) as recall:
        await recall.write(ADA, {"text": "the move to Graz", "date": "2023-03-20"})
        await recall.embed()
        embedder.texts.clear()
        await recall.search(ADA, "one day after " * 100 + "the move")
        assert len(embedder.texts) == 2
        for key, day in (("before", "2023-03-18"), ("other", "2023-05-18")):
            await recall.write(ADA, {"text": "bought a ladder", "date": day}, key=key)
        await recall.embed()
        page = await recall.search(ADA, "the ladder two days before that", explain=True)
        assert [hit.signals.date for hit in page.hits if hit.signals is not None] == [0, 0, 0]


async def test_a_date_before_a_date_is_understood(recall: RecallService) -> None:
    for key, day in (("wanted", "2023-07-28"), ("later", "2023-08-11"), ("early", "2023-06-01")):
        value = {"text": "news of the puppy", "date": day}
        await recall.write(ADA, value, key=key, scope={"session_id": key})
    page = await recall.search(ADA, "the puppy two weeks before August 11, 2023", explain=True)
    dates = {hit.entry.key: hit.signals.date for hit in page.hits if hit.signals is not None}
    assert dates["wanted"] > 0 == dates["early"] == dates["later"]
    assert page.hits[0].entry.key == "wanted"


@pytest.mark.parametrize("told", ["2026-08", "2025", 2024, "2023-03-04t10:00:00z"])
async def test_a_date_may_be_a_month_or_a_year(recall: RecallService, told: str | int) -> None:
    for one in ("2026-08", "2025", 2024, "2023-03-04t10:00:00z"):
        text = {"text": "The summit took place.", "date": one}
        await recall.write(ADA, text, Tier.SEMANTIC, key=str(one).replace(":", "-"))
    query = {"2026-08": "August 2026", "2025": "2025", 2024: "2024"}.get(told, "4 March 2023")
    first, *rest = (await recall.search(ADA, f"summit of {query}", explain=True)).hits
    assert first.entry.key == str(told).replace(":", "-")
    assert first.signals is not None
    assert all(hit.signals is not None and not hit.signals.date for hit in rest)


async def test_nothing_is_known_about_the_day_in_a_month(recall: RecallService) -> None:
    told = {"text": "The summit took place, and yesterday the sun shone.", "date": "2026-08"}
    await recall.write(ADA, told, Tier.SEMANTIC)
    await recall.write(ADA, {"text": "Lunch", "date": "2026-08-08"}, Tier.SEMANTIC)
    for query in ("summit on the 1st of May", "summit on a Sunday", "summit of 2023-07-31"):
        hits = (await recall.search(ADA, query, explain=True)).hits
        assert [hit.signals.date for hit in hits if hit.signals is not None] == [0], query
    page = await recall.search(ADA, "lunch one week after the summit", explain=True)
    assert [hit.signals.date for hit in page.hits if hit.signals is not None] == [0, 0]
