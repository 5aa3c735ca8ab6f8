"""`client.recall_episodes` and `client.profile`: what experience and memory say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from memorywall.records.episode_recall import EpisodeWeights, ProfileName
from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.filters import without_absent
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.retry import call
from memorywall.sdk.search import WantedOutcome
from memorywall.wire.episodes import ProfileResponse


class RecalledEpisode(msgspec.Struct, kw_only=True):
    """An episode, its short form as `text`, and the parts of its score."""

    entry: MemoryEntry
    text: str
    tokens: int
    score: float
    similarity: float
    method: Literal["cosine", "containment"]
    recency: float
    outcome: float
    use: float


class RecalledEpisodes(msgspec.Struct, kw_only=True):
    """Episodes, best first, the tokens of their texts together, and the weights of the score."""

    episodes: list[RecalledEpisode]
    tokens: int
    weights: dict[str, float]


class EpisodesCore:
    """The operations on episodes and profiles, as request generators."""

    def recall_episodes(
        self,
        query: str,
        *,
        profile: ProfileName = "general",
        outcome: WantedOutcome | None = None,
        weights: EpisodeWeights | Mapping[str, float] | None = None,
        min_similarity: float | None = None,
        budget_tokens: int | None = None,
        limit: int | None = None,
        agent_id: str | None = None,
        namespace: str | None = None,
        about: str | None = None,
        user: str | None = None,
    ) -> RequestGenerator[RecalledEpisodes]:
        """Returns the episodes that help with a task, best first: similar, recent, with a good
        outcome, and used with success before.

        query: the task, at most 2,000 characters
        profile: the class of the task: "general", "execution" (successes), "diagnosis" (failures)
            or "improvement" (corrections)
        outcome: "success", "failure", "correction" or "any"; default: that of the profile
        weights: `similarity`, `recency`, `outcome`, `use`, which sum to 1; default: the profile's
        min_similarity: 0 to 1; default: 0.25 for cosines, 0.2 for words
        budget_tokens: the most tokens of the texts together; default: no limit
        limit: the most episodes; default 5, maximum 33
        agent_id, namespace, about: the agent whose experience it is, a namespace or a prefix that
            ends in `*`, and a person that it is about; default: any
        user: the person that the request is bound to, as by `client.for_user`

        Raises ValidationError for weights that do not sum to 1.
        """
        asked = {name: one for name, one in locals().items() if name != "self"}
        return call("recall_episodes", RecalledEpisodes, body=without_absent(asked))

    def profile(
        self, subject: str, *, tokens: int | None = None, user: str | None = None
    ) -> RequestGenerator[ProfileResponse]:
        """Returns the stable and recent facts about a person that this client may read now, each
        with its source. `text` is for a prompt.

        tokens: the most tokens, 200 to 400; default 300
        user: the person that the request is bound to, as by `client.for_user`
        """
        query = {"tokens": tokens, "user": user}
        return call("get_profile", ProfileResponse, subject=subject, query=query)
