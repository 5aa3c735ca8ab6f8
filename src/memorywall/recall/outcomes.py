"""The outcome that the value of an entry reports (memory wall, 11.4.2)."""

from __future__ import annotations

from typing import Any

from memorywall.records.recall import EntryOutcome

_WORDS = {
    "success": EntryOutcome.SUCCESS,
    "succeeded": EntryOutcome.SUCCESS,
    "completed": EntryOutcome.SUCCESS,
    "resolved": EntryOutcome.SUCCESS,
    "failure": EntryOutcome.FAILURE,
    "failed": EntryOutcome.FAILURE,
    "error": EntryOutcome.FAILURE,
    "rejected": EntryOutcome.FAILURE,
    "correction": EntryOutcome.CORRECTION,
    "corrected": EntryOutcome.CORRECTION,
}
_TYPES = {
    "correction": EntryOutcome.CORRECTION,
    "negative_retrieval": EntryOutcome.FAILURE,
    "escalation_resolution": EntryOutcome.SUCCESS,
    "high_value_success": EntryOutcome.SUCCESS,
}
"""The outcome of each kind of lesson."""
_STATUSES = ("status", "result", "class", "outcome")


def outcome_of(value: dict[str, Any], kind: str | None = None) -> EntryOutcome | None:
    """The outcome of a value, None for none.

    The fields are `type`, `outcome` (a word, or an object with a `status`) and `success` (a
    boolean). A value with `corrections` is a correction, whatever its outcome.

    kind: the kind of the entry, which replaces `type`; None for free JSON
    """
    if value.get("corrections") or value.get("correction"):
        return EntryOutcome.CORRECTION
    kind = kind if kind in _TYPES else value.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    outcome = value.get("outcome")
    if isinstance(outcome, dict):
        if outcome.get("corrections") or outcome.get("correction"):
            return EntryOutcome.CORRECTION
        inner = next((outcome[name] for name in _STATUSES if name in outcome), None)
        outcome = outcome.get("success") if inner is None else inner
    elif outcome is None:
        outcome = value.get("success")
    if isinstance(outcome, bool):
        return EntryOutcome.SUCCESS if outcome else EntryOutcome.FAILURE
    return _WORDS.get(outcome.lower()) if isinstance(outcome, str) else None
