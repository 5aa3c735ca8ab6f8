"""The kind `episode`: a record of a completed experience (memory wall 11.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.kinds.indexed import IndexedField
from memorywall.kinds.spec import Edge, KindSpec
from memorywall.records.tier import Tier

FailureClass = Literal[
    "hallucination", "tool_error", "timeout", "policy_violation", "wrong_input", "other"
]
Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Rating = Annotated[float, Meta(ge=-1, le=1)]
MOST_ACTIONS = 1_000
_LONGEST_PART, _LONGEST_LINE_PART = 2_000, 300
_MOST_TOOLS_IN_LINE = 8
OF_TASK, OF_SESSION = "of_task", "of_session"
"""The relations between an episode and the task or the session that it is of."""

_encode = msgspec.json.Encoder().encode


class _Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True,
            forbid_unknown_fields=True):  # fmt: skip
    """A part of an episode."""


class Trigger(_Part, frozen=True, kw_only=True):
    """What began an episode."""

    text: Annotated[str, Meta(min_length=1, description="What was asked, or what happened.")]
    type: Annotated[
        Literal["user_request", "system_event", "scheduled_task"], Meta(description="Its class.")
    ] = "user_request"


class EpisodeContext(_Part, frozen=True, kw_only=True):
    """The state at the time of an episode."""

    task: Annotated[str, Meta(description="The task that was worked on.")] = ""
    knowledge: Annotated[tuple[str, ...], Meta(description="Ids or texts.")] = ()
    summary: Annotated[str, Meta(description="What had been said before.")] = ""
    conditions: Annotated[dict[str, Any], Meta(description="Conditions, by name.")] = {}


class Action(_Part, frozen=True, kw_only=True):
    """A call of a tool, a delegation, or a step of reasoning."""

    tool: Annotated[str, Meta(min_length=1, description="The name of the tool, or of the step.")]
    input: Annotated[Any, Meta(description="What it was given, as any JSON.")] = None
    output: Annotated[Any, Meta(description="What it returned, as any JSON.")] = None
    error: Annotated[str | None, Meta(description="The error that ended it.")] = None
    ms: Annotated[Amount | None, Meta(description="Its duration in milliseconds.")] = None
    tokens: Annotated[Count | None, Meta(description="The tokens that it took.")] = None


SideEffects = Annotated[tuple[str, ...], Meta(description="What else was changed.")]
Artifacts = Annotated[
    tuple[Any, ...], Meta(description="What was made, as texts or any other JSON.")
]
Correction = Annotated[str, Meta(description="What a person put right afterwards.")]
Actions = Annotated[
    tuple[Action, ...], Meta(max_length=MOST_ACTIONS, description="What was done, in order.")
]
Version = Annotated[str, Meta(description="The version of the agent or of the model.")]
TokenCost = Annotated[Count | None, Meta(description="The tokens that it took in all.")]


class EpisodeOutcome(_Part, frozen=True, kw_only=True):
    """How an episode ended."""

    status: Annotated[Literal["success", "failure"], Meta(description="How it ended.")]
    artifacts: Artifacts = ()
    side_effects: SideEffects = ()
    error: Annotated[str | None, Meta(description="The error that ended it.")] = None
    correction: Correction = ""


class Evaluation(_Part, frozen=True, kw_only=True):
    """The assessment of an episode afterwards."""

    correctness: Annotated[Share | None, Meta(description="From 0 to 1; null: unassessed.")] = None
    efficiency: Annotated[
        Amount | dict[str, float] | None, Meta(description="One metric, or several by name.")
    ] = None
    human_rating: Annotated[Rating | None, Meta(description="Of a person, from -1 to 1.")] = None
    automated: Annotated[dict[str, Any], Meta(description="Automated results, by name.")] = {}
    failure_class: Annotated[FailureClass | None, Meta(description="The class of a failure.")] = (
        None
    )


Situation = Annotated[EpisodeContext, Meta(description="The state at that time.")]
Assessment = Annotated[Evaluation, Meta(description="The assessment afterwards.")]


class EpisodeMetadata(_Part, frozen=True, kw_only=True):
    """Where and when an episode took place, and what it cost."""

    timestamp: Annotated[str | None, Meta(description="Its end; null: when it was stored.")] = None
    duration_ms: Annotated[Amount | None, Meta(description="Its duration in milliseconds.")] = None
    agent_version: Version = ""
    model_version: Version = ""
    token_cost: TokenCost = None
    session_id: Annotated[str | None, Meta(description="The session that it is of.")] = None
    task_id: Annotated[str | None, Meta(description="The task that it is of.")] = None


class Episode(_Part, frozen=True, kw_only=True):
    """A record of a completed experience: what began it, what was done, and how it ended."""

    trigger: Annotated[
        Annotated[str, Meta(min_length=1)] | Trigger,
        Meta(description="What began it: a text, or a text with its class."),
    ]
    context: Situation = EpisodeContext()
    actions: Actions = ()
    outcome: Annotated[EpisodeOutcome, Meta(description="How it ended.")]
    evaluation: Assessment = Evaluation()
    metadata: Annotated[EpisodeMetadata, Meta(description="Where and when, and its cost.")] = (
        EpisodeMetadata()
    )

    @property
    def asked(self) -> str:
        """The text of the trigger."""
        return self.trigger if isinstance(self.trigger, str) else self.trigger.text


class EpisodeReport(_Part, frozen=True, kw_only=True):
    """What an agent reports of its run with the update that ends the task. The server adds the
    status, the error, the output, the duration, the session and the task."""

    trigger: Annotated[str, Meta(description="Default: what the task says.")] = ""
    context: Situation = EpisodeContext()
    actions: Actions = ()
    artifacts: Artifacts = ()
    side_effects: SideEffects = ()
    correction: Correction = ""
    evaluation: Assessment = Evaluation()
    agent_version: Version = ""
    model_version: Version = ""
    token_cost: TokenCost = None
    subjects: Annotated[tuple[str, ...], Meta(description="Who it is about.")] = ()


def plain_text(value: Any) -> str:
    """A JSON value in words; what is inside its members stays JSON, however deep it is."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {inner_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(inner_text, value))
    return inner_text(value)


def inner_text(value: Any) -> str:
    """A JSON value as it stands inside a text: a string itself, and anything else as JSON."""
    try:
        return value if isinstance(value, str) else _encode(value).decode()
    except RecursionError:
        # The writer chooses the depth, and this stack is deeper than that of the write.
        return "…"


def line_of_episode(episode: Episode) -> str:
    """The short form of an episode, on one line: what was asked, what was done, how it ended."""
    tools = [
        one.tool + (f" (error: {cut_text(one.error, 80)})" if one.error else "")
        for one in episode.actions[:_MOST_TOOLS_IN_LINE]
    ]
    if left := len(episode.actions) - len(tools):
        tools.append(f"{left} more")
    parts = [("Asked", episode.asked), ("Given", plain_text(episode.context.conditions)),
             ("Done", ", ".join(tools)), ("Outcome", _outcome_text(episode.outcome))]  # fmt: skip
    said = "; ".join(
        f"{name}: {cut_text(text, _LONGEST_LINE_PART)}" for name, text in parts if text
    )
    rating = episode.evaluation.correctness
    return said if rating is None else f"{said}; correctness {rating:.2g}"


def cut_text(text: str, longest: int) -> str:
    """A text on one line, with at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _outcome_text(outcome: EpisodeOutcome) -> str:
    said = [outcome.status, outcome.error or "", outcome.correction, *outcome.side_effects]
    return "; ".join(filter(None, (*said, *map(plain_text, outcome.artifacts))))


def _text(episode: Any) -> str:
    parts = (
        episode.asked, plain_text(episode.context.conditions), _outcome_text(episode.outcome),
    )  # fmt: skip
    return "\n".join(part[:_LONGEST_PART] for part in parts if part)


def _status(episode: Any) -> str:
    return "correction" if episode.outcome.correction else str(episode.outcome.status)


def _edges(episode: Any) -> Iterator[Edge]:
    place = episode.metadata
    for relation, target in ((OF_TASK, place.task_id), (OF_SESSION, place.session_id)):
        if target:
            yield Edge(relation, target, is_id=True)


EPISODE = KindSpec(
    name="episode",
    schema=Episode,
    description="A completed experience: what began it, what was done, and how it ended.",
    tier=Tier.EPISODIC,
    lifetime="P90D",
    statuses=("success", "failure", "correction"),
    status=_status,
    text=_text,
    line=line_of_episode,
    edges=_edges,
    indexed=(IndexedField("value.metadata.timestamp", since=1, is_instant=True),),
)

EPISODE_KINDS: tuple[KindSpec, ...] = (EPISODE,)
