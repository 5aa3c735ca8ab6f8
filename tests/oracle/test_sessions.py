"""Requests inside sessions against the oracle, while participants and a group's members change.

The walk draws its steps on its own, so that the recorded seeds of the state machines keep what they
draw.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.oracle.conversation_walk import ConversationWalk
from tests.oracle.seeded_session_defects import SESSION_PLANTS
from tests.oracle.session import Disagreement
from tests.support.backend import is_on_file
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_STEPS = extent(12 if is_on_file() else 4, long=2_000)
_FINDS = {
    "decisions_forget_the_session": (1, 2),
    "sessions_bind_to_nobody": (2, 1),
    "writes_name_no_session": (1, 1),
    "writes_name_any_session": (3, 2),
    "statements_forget_the_session": (4, 2),
    "recall_forgets_the_session": (4, 2),
    "changes_forget_the_session": (4, 2),
    "participants_stay": (7, 4),
    "readers_append": (2, 2),
    "closed_sessions_stay_open": (11, 3),
}
"""The seed that finds a defect, and the steps until then. Those of `_FIRST` are not listed."""
_FIRST = (0, 1)
of_the_comparison = pytest.mark.sqlite("the comparison itself, which is the same on every store")


async def walk(service: RunningService, seed: int, steps: int) -> None:
    """Raises Disagreement where the system and the oracle differ."""
    walking = ConversationWalk(service, Random(seed))
    await walking.begin()
    for number in range(steps):
        try:
            await walking.step()
        except Disagreement as found:
            raise Disagreement(f"seed {seed}, step {number}: {found}") from found


async def test_a_session_shows_exactly_what_it_must(service: RunningService) -> None:
    await walk(service, chosen_seed(), _STEPS)


# The walks that find the defects find nothing without them.
@of_the_comparison
@pytest.mark.sampled(3)
@pytest.mark.parametrize(("seed", "steps"), sorted({_FIRST, *_FINDS.values()}))
async def test_nothing_is_found_in_sessions_without_a_defect(
    service: RunningService, seed: int, steps: int
) -> None:
    await walk(service, seed, steps)


@of_the_comparison
@pytest.mark.sampled(6)
@pytest.mark.parametrize("plant", SESSION_PLANTS, ids=lambda plant: plant.__name__)
async def test_a_fault_planted_in_sessions_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Disagreement):
        await walk(service, *_FINDS.get(plant.__name__, _FIRST))
