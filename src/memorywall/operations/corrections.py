"""Corrections, retractions and confirmations of one memory."""

from __future__ import annotations

from memorywall.operations.binding import operation
from memorywall.operations.entries import written
from memorywall.service.entries.confirmation import confirm
from memorywall.service.entries.corrections import Corrected, correct, retract, undo
from memorywall.service.requests.operation_context import OperationCall, OperationContext
from memorywall.wire.corrections import CorrectionResponse
from memorywall.wire.entries import EntryResponse


@operation("correct_entry", shows=lambda shown: (shown.entry.id,))
async def correct_entry(context: OperationContext, call: OperationCall) -> CorrectionResponse:
    given = call.body
    made = await correct(
        context, call.path["entry_id"], call.if_match, given.value, given.text, given.reason
    )
    return _show(context, made, withdrawn=made.others)


@operation("retract_entry", shows=lambda shown: (shown.entry.id,))
async def retract_entry(context: OperationContext, call: OperationCall) -> CorrectionResponse:
    made = await retract(context, call.path["entry_id"], call.if_match, call.body.reason)
    return _show(context, made, withdrawn=made.others)


@operation("undo_correction", shows=lambda shown: (shown.entry.id,))
async def undo_correction(context: OperationContext, call: OperationCall) -> CorrectionResponse:
    made = await undo(context, call.path["entry_id"], call.if_match)
    return _show(context, made, reinstated=made.others)


def _show(
    context: OperationContext, made: Corrected, **others: tuple[str, ...]
) -> CorrectionResponse:
    return CorrectionResponse(entry=written(context, made.entry), hidden=made.hidden, **others)


@operation("confirm_entry")
async def confirm_entry(context: OperationContext, call: OperationCall) -> EntryResponse:
    return written(context, await confirm(context, call.path["entry_id"], call.version))
