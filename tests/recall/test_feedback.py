"""Feedback on contexts: what is stored of it, and what it changes in the order of hits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memorywall.recall.document import read
from memorywall.recall.prior import Prior
from memorywall.recall.weights import DEFAULT_WEIGHTS
from memorywall.records.recall import NO_USES, ContextOutcomes, EntryOutcome, UseCounts
from memorywall_testing.base import make_entry
from tests.recall.recall_service import RecallService, agent, open_recall

pytestmark = pytest.mark.anyio

ADA = agent("ada")
TOPICS = 20
ALTERNATIVES = 3
CONTEXTS = 8


def _factor(helped: int, harmed: int, wanted: EntryOutcome = EntryOutcome.ANY) -> float:
    document, _ = read(make_entry())
    counts = UseCounts(0, ContextOutcomes(helped, harmed, helped, harmed))
    return Prior(document.moment, DEFAULT_WEIGHTS, wanted).of(document, counts).factor


def test_feedback_moves_the_prior_within_its_bound() -> None:
    plain = _factor(0, 0)
    assert _factor(1, 0) > plain > _factor(0, 1)
    assert _factor(9, 0) > _factor(3, 0) > _factor(3, 3) > _factor(3, 9) > _factor(0, 9)
    most = DEFAULT_WEIGHTS.prior
    assert 1 - most <= _factor(0, 10**9) < _factor(10**9, 0) <= 1 + most
    failures = [_factor(*counts, EntryOutcome.FAILURE) for counts in ((0, 0), (9, 0), (0, 9))]
    assert len(set(failures)) == 1, "a search for failures keeps their scores"


async def _write_alone(recall: RecallService, text: str) -> str:
    """The id of an entry that has no neighbours, which would count in its score."""
    entry = await recall.write(ADA, text, namespace=f"n{random.random()}")
    return entry.id


async def _right_answers(recall: RecallService, poisoned: float, rng: random.Random) -> float:
    """The share of topics whose right entry is the first hit, after a log of feedback on contexts
    that contained one of its entries each. Without `poisoned`, all feedback is true."""
    right: dict[int, str] = {}
    outcomes: dict[str, list[int]] = {}
    for topic in range(TOPICS):
        ids = [
            await _write_alone(recall, f"topic{topic} is settled by answer{at}")
            for at in range(ALTERNATIVES)
        ]
        right[topic] = rng.choice(ids)
        for _ in range(CONTEXTS):
            shown = rng.choice(ids)
            is_true = rng.random() >= poisoned
            counts = outcomes.setdefault(shown, [0, 0])
            counts[(shown == right[topic]) is not is_true] += 1
    await recall.services.store.write(
        ADA.tenant,
        lambda to: to.recall.add_outcomes(
            {one: ContextOutcomes(*counts, *counts) for one, counts in outcomes.items()}
        ),
    )
    found = [(await recall.ids(ADA, f"how is topic{topic} settled"))[0] for topic in right]
    return sum(one == right[topic] for topic, one in enumerate(found)) / TOPICS


async def test_feedback_finds_the_right_one_of_equals_also_if_some_is_false(
    tmp_path: Path,
) -> None:
    seed = random.randrange(2**32)
    print(f"MEMORYWALL_SEED={seed}")
    shares = {}
    for poisoned in (0.0, 0.05):
        async with open_recall(tmp_path / str(poisoned)) as recall:
            shares[poisoned] = await _right_answers(recall, poisoned, random.Random(seed))
    assert shares[0.0] >= 0.9
    assert shares[0.05] >= shares[0.0] - 0.2


async def test_new_feedback_reaches_an_index_in_memory(recall: RecallService) -> None:
    ids = {await _write_alone(recall, "The parcel leaves on Tuesday.") for _ in range(2)}
    before = await recall.ids(ADA, "parcel")
    last = before[-1]
    assert set(before) == ids
    await recall.services.store.write(
        ADA.tenant, lambda to: to.recall.add_outcomes({last: ContextOutcomes(9, 0, 9, 0)})
    )
    await recall.index.used({ADA.tenant: {last: 0}})
    assert await recall.ids(ADA, "parcel") == [last, before[0]]


def test_an_entry_without_feedback_has_the_prior_of_its_value() -> None:
    document, _ = read(make_entry())
    scored = Prior(document.moment, DEFAULT_WEIGHTS).of(document, NO_USES)
    assert scored.outcome == 0.5 * document.trust
