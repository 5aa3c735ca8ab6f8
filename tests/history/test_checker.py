"""The checker itself: it accepts honest histories and names each planted bug."""

from __future__ import annotations

import random

import pytest

from tests.history.anomalies import Breach, Violation, report
from tests.history.claims import check_claims
from tests.history.entries import check_entries
from tests.history.record import ClaimOperation, History, Kind, Operation, Outcome, Recorder
from tests.history.seeded_claim_defects import CLAIM_PLANTS
from tests.history.seeded_entry_defects import ENTRY_PLANTS, Plant
from tests.history.simulated_clients import play
from tests.history.simulator import Scene
from tests.support.extent import chosen_seed, extent

PLANTS = [*ENTRY_PLANTS, *CLAIM_PLANTS]
_HONEST = extent(20, long=400)
_EACH = extent(2, long=5)
_ATTEMPTS = 60


def _check(history: History) -> list[Violation]:
    return check_entries(history) + check_claims(history)


@pytest.mark.parametrize(
    "scene",
    [
        {},
        {"clients": 3, "names": 1, "claims": 1, "lost": 0.2, "kills": 0},
        {"clients": 40, "names": 2, "claims": 1, "operations": 1_500},
        {"clients": 20, "lost": 0.3, "kills": 12, "operations": 1_000},
        {"lost": 0.0, "kills": 0},
    ],
    ids=["usual", "few clients", "one hot name", "many lost replies", "all answered"],
)
def test_honest_histories_are_accepted(scene: dict[str, float]) -> None:
    first = chosen_seed()
    unknown = 0
    for seed in range(first, first + _HONEST):
        history = play(Scene(seed=seed, **scene))  # type: ignore[arg-type]
        violations = _check(history)
        assert not violations, f"seed {seed}: {report(violations)}"
        unknown += sum(operation.outcome is Outcome.UNKNOWN for operation in history.entries)
    assert unknown > 0 or not scene.get("kills", 1), "no outcome was unknown"


def test_the_simulated_clients_get_everything_done() -> None:
    """Otherwise honest histories would be accepted for want of anything in them."""
    tally = dict.fromkeys(Kind, 0)
    reasons: set[str] = set()
    for seed in range(20):
        history = play(Scene(seed=seed))
        operations: list[Operation | ClaimOperation] = [*history.entries, *history.claims]
        for operation in operations:
            tally[operation.kind] += operation.outcome is Outcome.OK
            reasons.add(operation.reason)
    assert all(count > 20 for count in tally.values()), tally
    assert reasons == {
        "", "VERSION_MISMATCH", "ENTRY_EXISTS", "ENTRY_NOT_FOUND", "FENCED", "LEASE_HELD",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("breach", "plant"), PLANTS, ids=[f"{breach.name}-{plant.__name__}" for breach, plant in PLANTS]
)
def test_a_planted_bug_is_caught_by_name(breach: Breach, plant: Plant) -> None:
    first = chosen_seed()
    caught = 0
    for seed in range(first, first + _ATTEMPTS):
        history = play(Scene(seed=seed))
        assert not _check(history), f"seed {seed}"
        key = plant(history, random.Random(seed))
        if not key:
            continue
        violations = _check(history)
        found = {violation.breach for violation in violations if violation.key == key}
        assert breach in found, f"seed {seed}, {key}: {report(violations)}"
        caught += 1
        if caught == _EACH:
            return
    raise AssertionError(f"only {caught} of {_ATTEMPTS} histories from {first} had a place for it")


def test_every_breach_is_planted() -> None:
    assert {breach for breach, _ in PLANTS} == set(Breach)


def test_an_operation_that_is_never_ended_is_unknown() -> None:
    recorder = Recorder()
    begun: Operation = recorder.begin(1, "agent", Kind.READ, "name")
    assert begun.outcome is Outcome.UNKNOWN
    assert begun.invoked <= recorder.now() < begun.returned


def test_a_mark_is_used_once() -> None:
    recorder = Recorder()
    mark = recorder.new_mark(1)
    for _ in range(2):
        recorder.begin(1, "agent", Kind.CREATE, "name", mark=mark)
    with pytest.raises(AssertionError, match="used twice"):
        check_entries(recorder.history)
