"""How recall of episodes weighs them, by the class of the task (memory wall 11.4.2)."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from memorywall.records.recall import EntryOutcome

ProfileName = Literal["general", "execution", "diagnosis", "improvement"]
_ROUNDING = 1e-6


class EpisodeWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The weights of the parts of a score, which sum to 1."""

    similarity: Annotated[float, Meta(ge=0, le=1, description="Of the similarity to the query.")]
    recency: Annotated[float, Meta(ge=0, le=1, description="Of the decay with the age.")]
    outcome: Annotated[
        float,
        Meta(ge=0, le=1, description="Of the correctness times 1 plus the rating of a person."),
    ]
    use: Annotated[
        float,
        Meta(ge=0, le=1, description="Of how often feedback says that the episode helped."),
    ]

    def __post_init__(self) -> None:
        if abs(self.similarity + self.recency + self.outcome + self.use - 1) > _ROUNDING:
            raise ValueError("the four weights must sum to 1")


class EpisodeProfile(NamedTuple):
    """What a class of tasks asks of episodes.

    half_life_days: the age at which the recency is a half
    outcome: the outcome that an episode must have
    """

    weights: EpisodeWeights
    half_life_days: float
    outcome: EntryOutcome


def _profile(
    weights: tuple[float, float, float, float], half_life_days: float, outcome: EntryOutcome
) -> EpisodeProfile:
    names = EpisodeWeights.__struct_fields__
    return EpisodeProfile(
        EpisodeWeights(**dict(zip(names, weights, strict=True))), half_life_days, outcome
    )


PROFILES: dict[ProfileName, EpisodeProfile] = {
    "general": _profile((0.5, 0.2, 0.2, 0.1), 30, EntryOutcome.ANY),
    "execution": _profile((0.4, 0.1, 0.3, 0.2), 30, EntryOutcome.SUCCESS),
    # A failure has a low correctness whatever it teaches.
    "diagnosis": _profile((0.65, 0.25, 0.0, 0.1), 60, EntryOutcome.FAILURE),
    # What people have put right stays right for longer.
    "improvement": _profile((0.5, 0.1, 0.2, 0.2), 90, EntryOutcome.CORRECTION),
}
"""The profile of each class of tasks: weights in the order of `EpisodeWeights`, days, outcome."""
