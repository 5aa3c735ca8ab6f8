"""Checkpoints that are too large for an entry: their content goes to an attachment.

The attachment belongs to the entry of the checkpoint, so it is sealed, copied, verified and erased
like every attachment, and is removed with the checkpoint.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from memorywall.coordination.attachment_content import attach_content, load_content
from memorywall.kinds.sessions import CHECKPOINT, Checkpoint
from memorywall.records.entry import VALUE_LIMIT, Entry
from memorywall.records.errors import KeyUnavailableError
from memorywall.service.entries.governed_entries import read_value
from memorywall.service.requests.operation_context import OperationContext
from memorywall.sessions.stored import LoadedSession, make_entry, sequence_key

_encode = msgspec.json.Encoder().encode


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a checkpoint that go to the attachment."""

    summary: str
    working: list[dict[str, Any]]
    state: dict[str, Any]


async def make_checkpoint_entry(
    context: OperationContext, loaded: LoadedSession, checkpoint: Checkpoint
) -> Entry:
    """Returns the entry of a checkpoint; stores its content in an attachment if it is larger than
    an entry. Raises ValueTooLargeError."""
    entry_id = context.service.ids.next("mem")
    if len(_encode(checkpoint)) > VALUE_LIMIT:
        content = _encode(
            _Content(summary=checkpoint.summary, working=checkpoint.working, state=checkpoint.state)
        )
        attachment = await attach_content(
            context, entry_id, loaded.owner, "checkpoint.json", content
        )
        checkpoint = replace(checkpoint, summary="", working=[], state={}, attachment=attachment)
    key = sequence_key(checkpoint.number)
    return make_entry(context, loaded, CHECKPOINT, key, checkpoint, entry_id=entry_id)


async def read_checkpoint(context: OperationContext, entry: Entry) -> Checkpoint:
    """Returns a stored checkpoint with its complete content. Raises KeyUnavailableError."""
    checkpoint = await read_value(context, entry, Checkpoint)
    if checkpoint.attachment is None:
        return checkpoint
    attachment = await context.transaction.attachments.get(checkpoint.attachment)
    if attachment is None:
        raise KeyUnavailableError("the attachment of the checkpoint is missing")
    content = msgspec.json.decode(await load_content(context, attachment), type=_Content)
    return replace(
        checkpoint, summary=content.summary, working=content.working, state=content.state
    )
