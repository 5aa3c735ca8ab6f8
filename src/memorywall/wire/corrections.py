"""Corrections, retractions and confirmations of one memory."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memorywall.records.errors import (
    MemoryCapacityError,
    MemoryConflictError,
    MemoryNotFoundError,
    TransitionError,
)
from memorywall.records.feature_errors import RuleError, SchemaViolationError
from memorywall.wire.entries import EntryResponse
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

Reason = Annotated[
    str, Meta(pattern=r"\S", max_length=1_000, description="Why; kept with the entry.")
]


class CorrectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The right value of an entry, or the right text: that of the member `text` of its value, or
    else of `content`. One of them is required."""

    value: Annotated[
        dict[str, Any] | UnsetType, Meta(description="The value that replaces the wrong one.")
    ] = UNSET
    text: Annotated[str, Meta(pattern=r"\S", description="The text.")] | UnsetType = UNSET
    reason: Reason


class RetractRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an entry is withdrawn."""

    reason: Reason


class CorrectionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A corrected, retracted or restored entry.

    withdrawn, reinstated: the ids of the entries that were withdrawn or reinstated with it, because
        they were derived from it, as far as the caller may read them
    hidden: the number of those that it may not read
    """

    entry: EntryResponse
    withdrawn: tuple[str, ...] = ()
    reinstated: tuple[str, ...] = ()
    hidden: int = 0

    @property
    def kind(self) -> str | None:
        """The kind of the entry, that of a proposal if a rule has stored one in its place."""
        return self.entry.kind


_MEMORY = OperationGroup(name="Memory", not_found=(MemoryNotFoundError,))

CORRECTION_OPERATIONS: tuple[Operation, ...] = (
    _MEMORY(
        "correct_entry",
        "POST /memory/{entry_id}/correct",
        "Replace the wrong value of an entry, and withdraw what was derived from it.",
        body=CorrectRequest,
        reply=CorrectionResponse,
        defers=True,
        if_match="optional",
        accepts_idempotency_key=True,
        raises=(
            MemoryConflictError,
            TransitionError,
            MemoryCapacityError,
            SchemaViolationError,
            RuleError,
        ),
    ),
    _MEMORY(
        "retract_entry",
        "POST /memory/{entry_id}/retract",
        "Withdraw a wrong entry, and what was derived from it.",
        body=RetractRequest,
        reply=CorrectionResponse,
        if_match="optional",
        accepts_idempotency_key=True,
        raises=(MemoryConflictError, TransitionError),
    ),
    _MEMORY(
        "undo_correction",
        "POST /memory/{entry_id}/undo",
        "Take back the retraction or the latest correction of an entry, with what it withdrew.",
        reply=CorrectionResponse,
        defers=True,
        if_match="optional",
        accepts_idempotency_key=True,
        raises=(MemoryConflictError, TransitionError, MemoryCapacityError, RuleError),
    ),
    _MEMORY(
        "confirm_entry",
        "PUT /memory/{entry_id}/confirmation",
        "Confirm the value of an entry, as a person or as the validator of its namespace.",
        reply=EntryResponse,
        if_match="required",
        etag=True,
        raises=(MemoryConflictError, TransitionError),
    ),
)
