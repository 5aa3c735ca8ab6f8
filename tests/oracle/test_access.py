"""No leak and no wrong denial: the system against the oracle, and the comparison against leaks.

MEMORYWALL_CHAOS=1 runs it for longer, with a new seed, and makes what fails small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.oracle.callers import CALLERS
from tests.oracle.machine import AccessMachine, Template
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
    max_examples=extent(12 // FEWER, long=1_000),
    stateful_step_count=25,
    phases=(Phase.generate, Phase.shrink) if CHAOS else (Phase.generate,),
)
# Enough for each plant to be met; the same examples in every run.
SHORT = settings(
    COMMON,
    max_examples=35,
    stateful_step_count=15,
    derandomize=True,
    phases=(Phase.generate,),
)


WORK_LONG = settings(LONG, max_examples=extent(4 // FEWER, long=1_000))
WORK_SHORT = settings(SHORT, max_examples=15, stateful_step_count=10)


of_the_comparison = pytest.mark.sqlite("the comparison itself, which is the same on every store")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """A database with both tenants and all keys."""
    return Template(tmp_path_factory.mktemp("template"))


def compare(
    template: Template, extent: settings, machine: type[AccessMachine] = AccessMachine
) -> None:
    """Runs the state machine. Raises Disagreement where system and oracle differ."""

    def begin() -> AccessMachine:
        return machine(template)

    start: Any = begin
    if not extent.derandomize:
        seed(chosen_seed())(start)
    run_state_machine_as_test(start, settings=extent)


def test_every_principal_sees_exactly_the_allowed_entries(template: Template) -> None:
    compare(template, LONG)


@of_the_comparison
def test_nothing_is_found_where_nothing_is_planted(template: Template) -> None:
    # The very examples that find the plants: so it is the plants that they find.
    compare(template, SHORT)


@of_the_comparison
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Disagreement):
        compare(template, SHORT)


def test_work_opens_exactly_what_it_must(template: Template) -> None:
    compare(template, WORK_LONG, WorkMachine)


@of_the_comparison
def test_nothing_is_found_at_work_where_nothing_is_planted(template: Template) -> None:
    compare(template, WORK_SHORT, WorkMachine)


@of_the_comparison
@pytest.mark.parametrize("plant", [*WORK_PLANTS, *SHARED_PLANTS], ids=lambda plant: plant.__name__)
def test_a_fault_planted_at_work_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    template: Template,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Disagreement):
        compare(template, WORK_SHORT, WorkMachine)


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
