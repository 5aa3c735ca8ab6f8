"""Requests, responses and operations of episodes, and of the profile of a person."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memorywall.records.entry import Source
from memorywall.records.episode_recall import EpisodeWeights, ProfileName
from memorywall.records.recall import EntryOutcome
from memorywall.wire.entries import EntryResponse
from memorywall.wire.operation import Operation, UserOfRequest
from memorywall.wire.operation_group import OperationGroup
from memorywall.wire.search import Namespace, Query


class RecallEpisodesRequest(UserOfRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query for episodes, by the class of the present task."""

    query: Query
    profile: Annotated[
        ProfileName,
        Meta(
            description="The class of the task, which sets the weights and the outcome: `execution`"
            " wants successes, `diagnosis` failures, `improvement` corrections."
        ),
    ] = "general"
    outcome: Annotated[
        EntryOutcome | None, Meta(description="The outcome; default: that of the profile.")
    ] = None
    weights: Annotated[
        EpisodeWeights | None,
        Meta(description="The weights of the score, which sum to 1; default: the profile's."),
    ] = None
    min_similarity: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="The least similarity; default: by the method that measures it."),
    ] = None
    budget_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="The most tokens of the texts together; default: no limit."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=33)] = 5
    agent_id: Annotated[str | None, Meta(description="The agent whose experience it is.")] = None
    namespace: Namespace = None
    about: Annotated[str | None, Meta(description="Only episodes about this person.")] = None


class RecalledEpisodeResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An episode, and the parts of its score. `text` is its short form, of `tokens` tokens.

    `method` says whether the similarity is a `cosine` or, without vectors, a `containment` of
    words. `outcome` is the correctness times 1 plus the rating of a person, 0 to 2; `use` is how
    often feedback on contexts says that the episode helped, 0 to 1.
    """

    entry: EntryResponse
    text: str
    tokens: int
    score: float
    similarity: float
    method: Literal["cosine", "containment"]
    recency: float
    outcome: float
    use: float


class RecallEpisodesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes, best first, the tokens of their texts together, and the weights of the score."""

    episodes: list[RecalledEpisodeResponse]
    tokens: int
    weights: EpisodeWeights


class ProfileQuery(UserOfRequest, frozen=True, kw_only=True):
    """The length of a profile."""

    tokens: Annotated[
        int,
        Meta(ge=200, le=400, description="The most tokens of the profile."),
    ] = 300


class ProfileLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fact of a profile: `stable` or `recent`, and the entry and version that say it."""

    text: str
    section: Literal["stable", "recent"]
    source: Source


class ProfileResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What memory says about a person now, computed when it is read.

    `text` has a line for each fact with the id of its source, and `tokens` tokens. `left_out` are
    facts that did not fit.
    """

    subject: str
    text: str
    tokens: int
    lines: list[ProfileLine]
    left_out: int


_MEMORY = OperationGroup(name="Memory", not_found=())

EPISODE_OPERATIONS: tuple[Operation, ...] = (
    _MEMORY(
        "recall_episodes",
        "POST /episodes/recall",
        "Recall the episodes that help with a task, best first.",
        source="memory wall 11.4.2",
        body=RecallEpisodesRequest,
        reply=RecallEpisodesResponse,
        safe=True,
    ),
    _MEMORY(
        "get_profile",
        "GET /subjects/{subject}/profile",
        "Get the stable and recent facts about a person, each with its source.",
        query=ProfileQuery,
        reply=ProfileResponse,
    ),
)
