"""Content of items in attachments of their entries."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from memorywall.coordination.attachments import CHUNK_BYTES, chunk_binding, count_chunks
from memorywall.kinds.working_memory import Scratch, ScratchReference
from memorywall.records.attachment import Attachment
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceNotFoundError
from memorywall.service.operation_context import OperationContext

_FILENAME = "content.json"
_MIME_TYPE = "application/json"
_DIGEST_LENGTH = 16


class NewReference(NamedTuple):
    """A reference, and the content that is to be stored as its attachment."""

    attachment_id: str
    reference: ScratchReference
    content: bytes


def next_reference(context: OperationContext, entry_id: str, item: Scratch) -> NewReference:
    """The reference to the content of an item, and the content to store."""
    attachment_id = context.service.ids.next("att")
    reference = ScratchReference(
        uri=f"/api/v1/memory/{entry_id}/attachments/{attachment_id}/content",
        schema_hash=schema_hash(item.content),
        tokens=item.tokens,
    )
    return NewReference(attachment_id, reference, msgspec.json.encode(item.content))


def schema_hash(content: Any) -> str:
    """A digest of the shape of a JSON value: names and types of members, and no values."""
    shape = msgspec.json.encode(_shape(content))
    return "sha256:" + hashlib.sha256(shape).hexdigest()[:_DIGEST_LENGTH]


def _shape(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _shape(content[name]) for name in sorted(content)}
    if isinstance(content, list):
        shapes = {msgspec.json.encode(_shape(one)) for one in content}
        return [msgspec.Raw(one) for one in sorted(shapes)]
    return type(content).__name__


async def store_content(context: OperationContext, entry: Entry, new: NewReference) -> None:
    """Stores content as an attachment of the entry, sealed with the data key of its owner."""
    content = new.content
    attachment = Attachment(
        tenant=context.tenant,
        id=new.attachment_id,
        entry_id=entry.id,
        filename=_FILENAME,
        mime_type=_MIME_TYPE,
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
        uploaded_by=context.principal.id,
        created_at=context.now,
    )
    chunks, key_id = [], None
    for index in range(count_chunks(len(content))):
        key_id, sealed = await context.service.cipher.seal_for(
            context.transaction,
            context.tenant,
            entry.owner,
            content[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES],
            chunk_binding(attachment, index, count_chunks(len(content))),
            context.now,
        )
        chunks.append(sealed)
    attachments = context.transaction.attachments
    await attachments.insert(msgspec.structs.replace(attachment, sealing_key=key_id))
    for index, sealed in enumerate(chunks):
        await attachments.put_chunk(attachment.id, index, sealed)


async def load_content(context: OperationContext, entry: Entry) -> Any:
    """The content of an item that was moved to an attachment of its entry. Raises
    ResourceNotFoundError, KeyUnavailableError."""
    attachments = context.transaction.attachments
    found = await attachments.list_of_entry(entry.id)
    if not found:
        raise ResourceNotFoundError("the content of the item has been deleted")
    attachment = found[-1]
    parts = []
    for index, sealed in enumerate(await attachments.chunks(attachment.id)):
        binding = chunk_binding(attachment, index, count_chunks(attachment.size or 0))
        parts.append(
            await context.service.cipher.open_bytes(
                context.transaction, context.tenant, attachment.sealing_key or "", sealed, binding
            )
        )
    return msgspec.json.decode(b"".join(parts))


async def remove_content(context: OperationContext, entry_id: str) -> None:
    """Removes the attachments of an item whose content is replaced."""
    for attachment in await context.transaction.attachments.list_of_entry(entry_id):
        await context.transaction.attachments.remove(attachment.id)
