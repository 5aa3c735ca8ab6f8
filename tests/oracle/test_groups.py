"""Groups against the oracle: no leak and no wrong denial while people join and leave.

The walk draws its steps on its own, so that the recorded seeds of the state machines keep what they
draw.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.oracle.group_walk import GroupWalk
from tests.oracle.seeded_group_defects import GROUP_PLANTS
from tests.oracle.session import Disagreement
from tests.support.backend import is_on_file
from tests.support.extent import chosen_seed, extent
from tests.support.service import RunningService

pytestmark = pytest.mark.anyio

_STEPS = extent(12 if is_on_file() else 4, long=4_000)
# The seed that finds a defect, and the steps until then. Those of (0, 3) are not listed.
_FINDS = {
    "members_stay_members": (5, 8),
    "a_class_reads_without_a_grant": (9, 2),
    "the_owner_need_not_be_a_member": (1, 3),
    "a_refusal_of_one_agent_does_not_count": (14, 1),
    "a_group_precedes_its_members_own_grant": (1, 3),
    "access_lists_name_every_group": (21, 2),
}
_FIRST = (0, 3)
of_the_comparison = pytest.mark.sqlite("the comparison itself, which is the same on every store")


async def walk(service: RunningService, seed: int, steps: int) -> None:
    """Raises Disagreement where the system and the oracle differ."""
    walking = GroupWalk(service, Random(seed))
    await walking.begin()
    for number in range(steps):
        try:
            await walking.step()
        except Disagreement as found:
            raise Disagreement(f"seed {seed}, step {number}: {found}") from found


async def test_groups_open_exactly_what_they_must(service: RunningService) -> None:
    await walk(service, chosen_seed(), _STEPS)


# The walks that find the defects find nothing without them.
@of_the_comparison
@pytest.mark.parametrize(("seed", "steps"), sorted({_FIRST, *_FINDS.values()}))
async def test_nothing_is_found_in_groups_without_a_defect(
    service: RunningService, seed: int, steps: int
) -> None:
    await walk(service, seed, steps)


@of_the_comparison
@pytest.mark.parametrize("plant", GROUP_PLANTS, ids=lambda plant: plant.__name__)
async def test_a_fault_planted_in_groups_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Disagreement):
        await walk(service, *_FINDS.get(plant.__name__, _FIRST))
