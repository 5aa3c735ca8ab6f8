"""The table of conflicts (memory wall, algorithm 11.7)."""

from __future__ import annotations

import pytest

from memorywall.longterm.conflicts import ConflictSide, Resolution, resolve
from memorywall.records.entry import Authority

_EARLIER, _LATER = "2026-11-01T00:00:00.000Z", "2026-11-02T00:00:00.000Z"


def _new(authority: Authority, confidence: float = 1.0, evidence: int = 0) -> ConflictSide:
    return ConflictSide(authority, _LATER, confidence, evidence)


def _old(authority: Authority, *, is_confirmed: bool = False) -> ConflictSide:
    return ConflictSide(authority, _EARLIER, is_confirmed=is_confirmed)


@pytest.mark.parametrize(
    ("new", "existing", "resolution"),
    [
        (_new("human_curated"), _old("verified", is_confirmed=True), Resolution.HUMAN_REVIEW),
        (_new("human_curated"), _old("verified"), Resolution.OVERRULE),
        (_new("human_curated"), _old("agent_learned"), Resolution.OVERRULE),
        (_new("agent_learned"), _old("inferred"), Resolution.OVERRULE),
        (_new("agent_learned", 0.7), _old("agent_learned"), Resolution.RENEW),
        (_new("human_curated"), _old("human_curated"), Resolution.RENEW),
        (_new("agent_learned", 0.6), _old("agent_learned"), Resolution.MANUAL),
        (_new("agent_learned")._replace(instant=_EARLIER), _old("agent_learned"),
         Resolution.MANUAL),
        (_new("agent_learned", 0.96, 4), _old("human_curated"), Resolution.SUGGEST_REVIEW),
        (_new("agent_learned", 0.95, 4), _old("human_curated"), Resolution.REJECT),
        (_new("agent_learned", 0.96, 3), _old("verified"), Resolution.REJECT),
        (_new("inferred"), _old("agent_learned"), Resolution.REJECT),
    ],
)  # fmt: skip
def test_each_outcome_of_the_algorithm(
    new: ConflictSide, existing: ConflictSide, resolution: Resolution
) -> None:
    found = resolve(new, existing)
    assert found is resolution
    accepted = {Resolution.OVERRULE, Resolution.RENEW}
    assert found.accepts == (found in accepted)
    assert found.defers == (found not in accepted and found is not Resolution.REJECT)
