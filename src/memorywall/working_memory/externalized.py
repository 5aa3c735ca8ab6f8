"""Content of items in attachments of their entries."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

from memorywall.coordination import attachment_content
from memorywall.kinds.working_memory import Scratch, ScratchReference
from memorywall.records.attachment import Attachment
from memorywall.records.entry import Entry
from memorywall.records.errors import ResourceNotFoundError
from memorywall.service.requests.operation_context import OperationContext

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
    attachment = Attachment(
        tenant=context.tenant,
        id=new.attachment_id,
        entry_id=entry.id,
        filename=_FILENAME,
        mime_type=_MIME_TYPE,
        uploaded_by=context.principal.id,
        created_at=context.now,
    )
    await attachment_content.store_content(context, attachment, entry.owner, new.content)


async def load_content(context: OperationContext, entry: Entry) -> Any:
    """The content of an item that was moved to an attachment of its entry. Raises
    ResourceNotFoundError, KeyUnavailableError."""
    found = await context.transaction.attachments.list_of_entry(entry.id)
    if not found:
        raise ResourceNotFoundError("the content of the item has been deleted")
    return msgspec.json.decode(await attachment_content.load_content(context, found[-1]))


async def remove_content(context: OperationContext, entry_id: str) -> None:
    """Removes the attachments of an item whose content is replaced."""
    for attachment in await context.transaction.attachments.list_of_entry(entry_id):
        await context.transaction.attachments.remove(attachment.id)
