"""Names and edges lead from the best results to entries that share no word with the query."""

from __future__ import annotations

from typing import Any

import pytest

from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.entry import Source
from memorywall.records.recall import Hit
from memorywall.records.tier import Tier
from memorywall.service.administration.namespace_permissions import set_permissions
from memorywall.service.runner.operation_runner import run_write
from tests.recall.recall_service import RecallService, agent

pytestmark = pytest.mark.anyio

ANN, BOB = agent("ann"), agent("bob")
QUERY = "in which city lives the maintainer of the billing service?"


def _fact(text: str, subject: str, target: str) -> dict[str, Any]:
    return {"text": text, "subject": subject, "object": target}


MAINTAINER = _fact("The maintainer of the billing service is Dev.", "billing service", "Dev Raman")
HOME = _fact("Dev Raman moved to Leeds.", "Dev Raman", "Leeds")


async def _hits(recall: RecallService, query: str = QUERY, **wanted: Any) -> dict[str, Hit]:
    page = await recall.search(ANN, query, explain=True, limit=100, **wanted)
    return {hit.entry.key: hit for hit in page.hits}


async def test_a_fact_about_the_same_thing_is_found(recall: RecallService) -> None:
    await recall.write(ANN, MAINTAINER, key="maintainer")
    await recall.write(ANN, HOME, key="home")
    await recall.write(ANN, "the harbour at night", key="other")
    hits = await _hits(recall)
    assert list(hits) == ["maintainer", "home"]
    signals = hits["home"].signals
    assert signals is not None
    assert signals.graph == pytest.approx(DEFAULT_WEIGHTS.graph)
    assert signals.link == "dev raman"
    total = signals.lexical + signals.thread + signals.graph
    assert hits["home"].score == pytest.approx(total * signals.prior)


async def test_a_text_that_mentions_the_thing_is_found(recall: RecallService) -> None:
    await recall.write(ANN, MAINTAINER, key="maintainer")
    await recall.write(ANN, "On Friday Dev was ill, so Raman's dog stayed here.", key="mention")
    await recall.write(ANN, "Dev the dog", key="half")
    assert set(await _hits(recall)) == {"maintainer", "mention"}


async def test_the_more_entries_share_a_name_the_less_it_counts(recall: RecallService) -> None:
    await recall.write(ANN, MAINTAINER, key="maintainer")
    shares = []
    for number in range(51):
        value = _fact(f"Item {number}.", "Dev Raman", f"thing {number}")
        await recall.write(ANN, value, key=f"item-{number}")
        hit = (await _hits(recall)).get("item-0")
        shares.append(0.0 if hit is None or hit.signals is None else hit.signals.graph)
    expected = [DEFAULT_WEIGHTS.graph / count for count in range(1, 51)]
    assert shares == [*map(pytest.approx, expected), 0.0]


async def test_a_derived_entry_and_its_source_lead_to_each_other(recall: RecallService) -> None:
    source = await recall.write(ANN, "the billing service stopped", key="source")
    sources = [Source(id=source.id, version=1)]
    await recall.write(ANN, "watch the disk", key="lesson", derived_from=sources)
    assert set(await _hits(recall, "billing service")) == {"source", "lesson"}
    hits = await _hits(recall, "disk")
    assert set(hits) == {"source", "lesson"}
    signals = hits["source"].signals
    assert signals is not None
    assert signals.link == source.id


async def test_the_person_that_entries_are_about_links_nothing(recall: RecallService) -> None:
    for key, text in (("wanted", "the printer is broken"), ("other", "a window rattles")):
        await recall.write(ANN, text, Tier.SEMANTIC, key=key, subjects=["dev"])
    assert set(await _hits(recall, "printer")) == {"wanted"}


async def test_a_declared_value_links_nothing(recall: RecallService) -> None:
    await run_write(
        recall.services,
        ANN,
        lambda context: set_permissions(
            context, "tickets", default=None, allow=None, indexed_paths=["value.state"]
        ),
    )
    for key, text in (("wanted", "the printer is broken"), ("other", "a window rattles")):
        value = {"text": text, "state": "open"}
        await recall.write(ANN, value, Tier.SEMANTIC, "tickets", key=key)
    assert set(await _hits(recall, "printer")) == {"wanted"}


async def test_only_what_is_wanted_and_may_be_read_is_found(recall: RecallService) -> None:
    await recall.write(ANN, MAINTAINER, key="maintainer")
    await recall.write(BOB, HOME, key="hidden")
    await recall.write(ANN, HOME, key="unwanted", tier=Tier.WORKING)
    own = await recall.write(ANN, HOME, key="home")
    assert set(await _hits(recall, tiers=(Tier.EPISODIC,))) == {"maintainer", "home"}
    await recall.remove(ANN, own)
    assert set(await _hits(recall, tiers=(Tier.EPISODIC,))) == {"maintainer"}


async def test_a_document_beyond_the_candidates_is_found(recall: RecallService) -> None:
    for number in range(210):
        text = f"billing service in the city, note {number}"
        await recall.write(ANN, text, Tier.SEMANTIC, key=f"note-{number}")
    await recall.write(ANN, MAINTAINER, Tier.SEMANTIC, key="maintainer")
    await recall.write(ANN, HOME, Tier.SEMANTIC, key="home")
    assert "home" in list(await _hits(recall))[:10]
