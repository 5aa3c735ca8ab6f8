"""Which outcome an entry tells of (memory wall, 11.4.2), from what its value says."""

from __future__ import annotations

from typing import Any

from memorywall.records.recall import Outcome

_WORDS = {
    "success": Outcome.SUCCESS,
    "succeeded": Outcome.SUCCESS,
    "completed": Outcome.SUCCESS,
    "resolved": Outcome.SUCCESS,
    "failure": Outcome.FAILURE,
    "failed": Outcome.FAILURE,
    "error": Outcome.FAILURE,
    "rejected": Outcome.FAILURE,
    "correction": Outcome.CORRECTION,
    "corrected": Outcome.CORRECTION,
}
_TYPES = {
    "correction": Outcome.CORRECTION,
    "negative_retrieval": Outcome.FAILURE,
    "escalation_resolution": Outcome.SUCCESS,
    "high_value_success": Outcome.SUCCESS,
}
"""What each kind of episode tells of that is worth keeping."""
_STATUSES = ("status", "result", "class", "outcome")


def outcome_of(value: dict[str, Any]) -> Outcome | None:
    """The outcome a value names: by its `type`, its `outcome`, which is a word or has a status, or
    `success`, true or false. An episode that was corrected is a correction, however it ended."""
    if value.get("corrections") or value.get("correction"):
        return Outcome.CORRECTION
    kind = value.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    outcome = value.get("outcome")
    if isinstance(outcome, dict):
        if outcome.get("corrections") or outcome.get("correction"):
            return Outcome.CORRECTION
        inner = next((outcome[name] for name in _STATUSES if name in outcome), None)
        outcome = outcome.get("success") if inner is None else inner
    elif outcome is None:
        outcome = value.get("success")
    if isinstance(outcome, bool):
        return Outcome.SUCCESS if outcome else Outcome.FAILURE
    return _WORDS.get(outcome.lower()) if isinstance(outcome, str) else None
