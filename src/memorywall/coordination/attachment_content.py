"""Content that the server itself moves to an attachment of an entry, stored and read as a whole."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from memorywall.coordination.attachments import CHUNK_BYTES, chunk_binding, count_chunks
from memorywall.records.attachment import Attachment
from memorywall.records.errors import KeyUnavailableError, ValueTooLargeError
from memorywall.service.requests.operation_context import OperationContext


async def store_content(
    context: OperationContext, attachment: Attachment, owner: str, content: bytes
) -> None:
    """Stores a new attachment with its content.

    attachment: without size, digest and data key, which follow from the content
    owner: the agent with whose data key the content is sealed
    """
    count, key_id, chunks = count_chunks(len(content)), None, []
    for index in range(count):
        key_id, sealed = await context.service.cipher.seal_for(
            context.transaction,
            context.tenant,
            owner,
            content[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES],
            chunk_binding(attachment, index, count),
            context.now,
        )
        chunks.append(sealed)
    stored = replace(
        attachment,
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
        sealing_key=key_id,
    )
    await context.transaction.attachments.insert(stored)
    for index, sealed in enumerate(chunks):
        await context.transaction.attachments.put_chunk(attachment.id, index, sealed)


async def attach_content(
    context: OperationContext,
    entry_id: str,
    owner: str,
    filename: str,
    content: bytes,
    mime_type: str = "application/json",
) -> str:
    """Stores content that is too large for an entry as its attachment; returns the attachment's id.

    owner: the agent with whose data key the content is sealed
    mime_type: default: that of JSON
    Raises ValueTooLargeError.
    """
    limit = context.service.settings.attachment_limit
    if len(content) > limit:
        raise ValueTooLargeError(f"`{filename}` may have at most {limit} bytes; keep less in it")
    attachment = Attachment(
        tenant=context.tenant,
        id=context.service.ids.next("att"),
        entry_id=entry_id,
        filename=filename,
        mime_type=mime_type,
        uploaded_by=context.principal.id,
        created_at=context.now,
    )
    await store_content(context, attachment, owner, content)
    return attachment.id


async def load_content(context: OperationContext, attachment: Attachment) -> bytes:
    """Returns the content of an attachment. Raises KeyUnavailableError, also for missing chunks."""
    count = count_chunks(attachment.size or 0)
    opened = [
        await context.service.cipher.open_bytes(
            context.transaction,
            context.tenant,
            attachment.sealing_key or "",
            sealed,
            chunk_binding(attachment, index, count),
        )
        for index, sealed in enumerate(await context.transaction.attachments.chunks(attachment.id))
    ]
    if len(opened) != count:
        raise KeyUnavailableError("chunks of the content of an attachment are missing")
    return b"".join(opened)
