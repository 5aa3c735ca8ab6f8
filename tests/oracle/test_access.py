"""No leak and no wrong denial: the system against the oracle, and the comparison against leaks.

MEMORYWALL_CHAOS=1 runs it for longer, with a new seed, and makes what fails small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.oracle.callers import CALLERS
from tests.oracle.machine import AccessMachine, Template
from tests.oracle.puts import PUT_PLANTS, PutMachine
from tests.oracle.seeded_defects import PLANTS
from tests.oracle.seeded_shared_defects import SHARED_PLANTS
from tests.oracle.seeded_work_defects import WORK_PLANTS
from tests.oracle.session import Disagreement, forbidden_markers
from tests.oracle.work_machine import WorkMachine
from tests.oracle.world import Shared, World
from tests.support.backend import is_on_file
from tests.support.extent import CHAOS, chosen_seed, extent

# The rules are the same on every store, and looking everywhere takes longer on a server.
FEWER = 1 if is_on_file() else 4
COMMON = settings(
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
# What fails is made small only in the long version, for that can take minutes.
LONG = settings(
    COMMON,
    max_examples=extent(max(1, 4 // FEWER), long=250 // FEWER),
    stateful_step_count=25,
    phases=(Phase.generate, Phase.shrink) if CHAOS else (Phase.generate,),
)
WORK_LONG = settings(LONG, max_examples=extent(max(1, 2 // FEWER), long=250 // FEWER))
# The simplest example and one drawn with a recorded seed.
SINGLE = settings(COMMON, max_examples=2, stateful_step_count=20, phases=(Phase.generate,))
# The seed that finds a defect first. Seed 0 finds the defects that are not listed.
SEEDS = {
    "revoked_keys_live_on": 1,
    "conflicts_show_the_entry": 2,
    "get_forgets_the_time": 5,
    "summary_counts_the_expired": 5,
    "inheritance_skips_a_link": 2,
    "stale_tokens_do": 3,
    "guardrails_are_not_for_creates": 4,
    "missing_names_are_told": 22,
    "the_last_write_wins_everywhere": 22,
}
# A change of the rules of a machine changes what a seed draws: then these are tried in turn.
FURTHER_SEEDS = range(60)

of_the_comparison = pytest.mark.sqlite("the comparison itself, which is the same on every store")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A database with both tenants and all keys."""
    return Template(tmp_path_factory.mktemp("template"))


def compare(
    template: Template,
    extent: settings,
    number: int,
    machine: type[AccessMachine] = AccessMachine,
) -> None:
    """Runs the state machine with a seed. Raises Disagreement where system and oracle differ."""

    def begin() -> AccessMachine:
        return machine(template)

    start: Any = begin
    seed(number)(start)
    run_state_machine_as_test(start, settings=extent)


def find(
    template: Template, defect: str, machine: type[AccessMachine] = AccessMachine
) -> Disagreement | None:
    """The disagreement that a seeded defect causes; None where no seed leads to one."""
    for number in (SEEDS.get(defect, 0), *FURTHER_SEEDS):
        try:
            compare(template, SINGLE, number, machine)
        except Disagreement as found:
            return found
        print(f"seed {number} does not find {defect}; adjust SEEDS")
    return None


def seeds_of(defects: Iterable[Callable[[pytest.MonkeyPatch], None]]) -> list[int]:
    """The seeds that find these defects."""
    return sorted({SEEDS.get(defect.__name__, 0) for defect in defects})


def test_every_principal_sees_exactly_the_allowed_entries(template: Template) -> None:
    compare(template, LONG, chosen_seed())


# The examples that find the defects find nothing without them.
@of_the_comparison
@pytest.mark.parametrize("number", seeds_of(PLANTS))
@pytest.mark.sampled(1)
def test_nothing_is_found_without_a_defect(template: Template, number: int) -> None:
    compare(template, SINGLE, number)


@of_the_comparison
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
@pytest.mark.sampled(5)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    assert find(template, plant.__name__)


def test_a_write_by_name_shows_and_changes_what_is_allowed(template: Template) -> None:
    compare(template, WORK_LONG, chosen_seed(), PutMachine)


@of_the_comparison
@pytest.mark.parametrize("plant", PUT_PLANTS, ids=lambda plant: plant.__name__)
def test_a_fault_planted_in_writes_by_name_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    assert find(template, plant.__name__, PutMachine)


def test_work_opens_exactly_what_it_must(template: Template) -> None:
    compare(template, WORK_LONG, chosen_seed(), WorkMachine)


@of_the_comparison
@pytest.mark.parametrize("number", seeds_of([*WORK_PLANTS, *SHARED_PLANTS]))
@pytest.mark.sampled(1)
def test_nothing_is_found_at_work_without_a_defect(template: Template, number: int) -> None:
    compare(template, SINGLE, number, WorkMachine)


@of_the_comparison
@pytest.mark.parametrize("plant", [*WORK_PLANTS, *SHARED_PLANTS], ids=lambda plant: plant.__name__)
@pytest.mark.sampled(2)
def test_a_fault_planted_at_work_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    assert find(template, plant.__name__, WorkMachine)


def test_a_marker_is_forbidden_unless_it_may_be_read_or_was_sent() -> None:
    world = World(now=0)
    shared = Shared(default="none", grants={"bob": "read"}, version=1, created_at="", updated_at="")
    world.namespaces["north", "plans"] = shared
    ada, bob, south = CALLERS["north/ada"], CALLERS["north/bob"], CALLERS["south/bob"]
    plans, own = "<<north|space:plans|1>>", "<<north|agent:ada|2>>"
    assert forbidden_markers(world, ada, f"{plans} {own}", "") == [plans]
    assert forbidden_markers(world, bob, f"{plans} {own}", "") == [own]
    assert forbidden_markers(world, south, f"{plans} {own}", "") == [plans, own]
    assert forbidden_markers(world, CALLERS["north/bob-writes"], plans, "") == [plans]
    assert forbidden_markers(world, ada, plans, f"sent {plans}") == []
