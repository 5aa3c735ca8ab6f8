"""`ctx.episode`: what a worker's function tells of its run, for long-term memory."""

from __future__ import annotations

from typing import Any

import msgspec

from memorywall.kinds.episodes import EpisodeReport, Evaluation
from memorywall.records.errors import ValidationError
from memorywall.sdk.filters import without_absent

_MOST_ACTIONS = 100
_LARGEST_PART = 2_000


class EpisodeRecorder:
    """Records what a function does. With at least one record, the end of the task is stored as an
    episode in the long-term memory of its agent."""

    def __init__(self) -> None:
        self._actions: list[dict[str, Any]] = []
        self._evaluation: dict[str, Any] = {}
        self._notes: dict[str, Any] = {}

    def action(
        self,
        tool: str,
        *,
        input: Any = None,
        output: Any = None,
        error: str | None = None,
        ms: float | None = None,
        tokens: int | None = None,
    ) -> None:
        """Records a call of a tool, a delegation, or a step of reasoning. The last 100 are kept.

        input, output: any JSON; of more than 2,000 bytes the beginning is kept as a text
        error: the error that ended it; default: none
        ms, tokens: the duration in milliseconds, and the tokens that it took; default: unknown

        Raises TypeError for what is no JSON.
        """
        fields = {"input": _cut(input), "output": _cut(output), "error": _cut(error)}
        self._actions.append(without_absent({"tool": tool, **fields, "ms": ms, "tokens": tokens}))
        del self._actions[:-_MOST_ACTIONS]

    def evaluate(self, **fields: Any) -> None:
        """Records an assessment of the run: `correctness` from 0 to 1, `efficiency`, a
        `human_rating` from -1 to 1, `automated` and `failure_class`, such as "timeout"."""
        self._evaluation |= _checked(Evaluation, fields)

    def note(self, **fields: Any) -> None:
        """Records other fields of the report: `trigger`, `context`, `artifacts`, `side_effects`,
        `correction`, `agent_version`, `model_version`, `token_cost` and `subjects`.

        Raises ValidationError for another field.
        """
        self._notes |= _checked(EpisodeReport, fields)

    @property
    def report(self) -> dict[str, Any]:
        """The report for the end of the task; empty without a record."""
        parts = {"actions": self._actions, "evaluation": self._evaluation}
        return self._notes | {name: part for name, part in parts.items() if part}


def _cut(value: Any) -> Any:
    encoded = msgspec.json.encode(value)
    if len(encoded) <= _LARGEST_PART:
        return value
    text = value if isinstance(value, str) else encoded.decode()
    return text[: _LARGEST_PART // 4] + "…"


def _checked(kind: type[msgspec.Struct], fields: dict[str, Any]) -> dict[str, Any]:
    if unknown := fields.keys() - set(kind.__struct_fields__):
        raise ValidationError(f"an episode has no field `{min(unknown)}`")
    return fields
