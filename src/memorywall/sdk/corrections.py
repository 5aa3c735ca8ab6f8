"""Corrections, retractions and confirmations: a part of the operations of `client.memory`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.models import MemoryEntry
from memorywall.sdk.put import PutCore


class CorrectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A corrected, retracted or restored entry.

    withdrawn, reinstated: the ids of the entries that were withdrawn or reinstated with it, because
        they were derived from it, as far as the client may read them
    hidden: the number of those that it may not read
    """

    entry: MemoryEntry
    withdrawn: tuple[str, ...] = ()
    reinstated: tuple[str, ...] = ()
    hidden: int = 0


class CorrectionsCore(PutCore):
    """The operations on memory, with corrections, as request generators."""

    def correct(
        self,
        entry_id: str,
        right: str | Mapping[str, Any],
        *,
        reason: str,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[CorrectionResult]:
        """Replaces the wrong value of an entry, and withdraws what was derived from it: entries,
        and summaries of sessions that quote it. `undo` takes that back.

        right: the right text, which replaces the member `text` or else `content` of the value, or
            the whole value
        reason: why; the provenance of the entry keeps it
        version: only if the entry has this version; default: any

        Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, ValidationError,
        TransitionError, RuleError.
        """
        given = {"text": right} if isinstance(right, str) else {"value": right}
        body = {**given, "reason": reason}
        return (yield from self._correct("correct_entry", entry_id, version, fencing_token, body))

    def retract(
        self,
        entry_id: str,
        *,
        reason: str,
        version: int | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[CorrectionResult]:
        """Withdraws a wrong entry, and what was derived from it: lists, searches and contexts leave
        it out. The arguments and errors are those of `correct`."""
        body = {"reason": reason}
        return (yield from self._correct("retract_entry", entry_id, version, fencing_token, body))

    def undo(
        self, entry_id: str, *, version: int | None = None, fencing_token: int | None = None
    ) -> RequestGenerator[CorrectionResult]:
        """Takes back the retraction of an entry, or else the correction of its present value,
        together with what it withdrew. The arguments and errors are those of `correct`."""
        return (yield from self._correct("undo_correction", entry_id, version, fencing_token))

    def confirm(
        self, entry_id: str, *, version: int | None = None, fencing_token: int | None = None
    ) -> RequestGenerator[MemoryEntry]:
        """Confirms the value of an entry, as a person or as the validator of its namespace: its
        authority is `verified` until the value changes.

        version: the version of the entry; default: its present one

        Raises MemoryNotFoundError, MemoryAccessError, MemoryConflictError, TransitionError.
        """
        return (yield from self._move("confirm_entry", entry_id, version, fencing_token))

    def _correct(
        self,
        operation: str,
        entry_id: str,
        version: int | None,
        fencing_token: int | None,
        body: dict[str, Any] | None = None,
    ) -> RequestGenerator[CorrectionResult]:
        made = yield from self._change(
            operation, CorrectionResult, entry_id, version, fencing_token, body
        )
        # What was withdrawn with it may be kept too.
        self._state.reads.clear()
        self._wrote(made.entry, created=False)
        return made
