"""Files that belong to intents (RFC-0005) or to entries, with their content.

Access to a file is access to its parent. The files of an entry are deleted with the entry and are
sealed with the data key of its owner; those of an intent with the tenant's.

Content is stored in chunks. Each chunk is sealed and bound to its attachment, its index and the
number of chunks, so that a replaced, missing or truncated chunk is detected. The server stores the
URL of external content and never fetches it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memorywall.coordination.access import load_authorized_intent
from memorywall.records.attachment import Attachment, AttachmentParent
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    KeyUnavailableError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.event import WorkEventType
from memorywall.records.idempotency import KeyPurpose
from memorywall.service.access.targets import load_authorized_entry
from memorywall.service.entries.kind_rules import refuse_governed
from memorywall.service.requests.event_log import append_work_event
from memorywall.service.requests.fencing import guard
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_name, encode_value
from memorywall.service.runner.operation_runner import OperationTransactions

CHUNK_BYTES = 256 * 1024
"""The size of a chunk in bytes."""
MOST_ATTACHMENTS = 1_000
"""The most attachments of an intent or of an entry."""

_LONGEST_FILENAME = 255
_PATH_CHARACTERS = "/\\:"
_TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"  # noqa: S105 - RFC 6838, nothing secret
_MIME_TYPE = re.compile(f"{_TOKEN}/{_TOKEN}")
_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewAttachment:
    """A new attachment; see `Attachment`."""

    filename: str
    mime_type: str
    size: int | None
    storage_url: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """An attachment and its content."""

    attachment: Attachment
    content: bytes


@dataclass(frozen=True, slots=True)
class _Sealed:
    """Content in its stored form."""

    key_id: str
    chunks: list[bytes]


async def add(
    context: OperationContext, parent: AttachmentParent, wanted: NewAttachment
) -> Attachment:
    """Attaches a file to an intent or an entry, without content.

    Raises ValidationError, ValueTooLargeError and ResourceNotFoundError, MemoryAccessError,
    MemoryCapacityError.
    """
    _check(wanted, context.service.settings.attachment_limit)
    await _enter_parent(context, Verb.CREATE, parent)
    count = len(await _list(context, parent))
    if count >= MOST_ATTACHMENTS:
        raise MemoryCapacityError(
            f"this {parent.kind} has too many attachments; delete some",
            current_count=count,
            max_capacity=MOST_ATTACHMENTS,
        )
    attachment = Attachment(
        tenant=context.tenant,
        id=context.service.ids.next("att"),
        intent_id=parent.id if parent.kind == "intent" else None,
        entry_id=parent.id if parent.kind == "entry" else None,
        filename=wanted.filename,
        mime_type=wanted.mime_type,
        size=wanted.size,
        storage_url=wanted.storage_url,
        metadata=wanted.metadata,
        uploaded_by=context.principal.id,
        created_at=context.now,
    )
    await context.transaction.attachments.insert(attachment)
    await append_work_event(
        context,
        WorkEventType.ATTACHMENT_ADDED,
        intent_id=attachment.intent_id,
        data=_event_data(attachment),
    )
    return attachment


async def authorize_change(context: OperationContext, parent: AttachmentParent) -> None:
    """Raises ResourceNotFoundError or MemoryAccessError unless the caller may attach a file."""
    await _enter_parent(context, Verb.CREATE, parent)


async def list_attachments(context: OperationContext, parent: AttachmentParent) -> list[Attachment]:
    """The attachments of an intent or an entry, oldest first. Raises ResourceNotFoundError,
    MemoryAccessError."""
    await _enter_parent(context, Verb.READ, parent)
    return await _list(context, parent)


async def get(
    context: OperationContext, parent: AttachmentParent, attachment_id: str
) -> Attachment:
    """Returns the metadata of a file. Raises ResourceNotFoundError, MemoryAccessError."""
    return await _enter(context, Verb.READ, parent, attachment_id)


async def upload(
    transactions: OperationTransactions,
    parent: AttachmentParent,
    attachment_id: str,
    content: bytes,
) -> Attachment:
    """Stores a file's content. An upload of the same content again changes nothing.

    Raises ResourceNotFoundError, MemoryAccessError, ValueTooLargeError; ValidationError if the
    size differs from the declared size, ResourceConflictError if other content is stored or the
    attachment has a `storage_url`.
    """
    service, tenant = transactions.service, transactions.principal.tenant
    if len(content) > service.settings.attachment_limit:
        raise ValueTooLargeError(_too_large(service.settings.attachment_limit))
    # Access is decided before the content is sealed. Sealing runs neither on the event loop nor in
    # the writer's transaction.
    known = await transactions.read(_enter, Verb.CREATE, parent, attachment_id)
    digest = await asyncio.to_thread(_digest, content)
    if _is_stored(known, content, digest):
        return known
    owner = await transactions.read(_enter_parent, Verb.CREATE, parent)
    key_id = await service.cipher.prepare(service.store, tenant, service.now(), owner)
    sealed = await asyncio.to_thread(_seal, service, known, content, key_id)
    write = transactions.write_long if len(content) > CHUNK_BYTES else transactions.write
    return await write(_store, known, content, digest, sealed)


async def _store(
    context: OperationContext, known: Attachment, content: bytes, digest: str, sealed: _Sealed
) -> Attachment:
    attachment = await _enter(context, Verb.CREATE, known.parent, known.id)
    if _is_stored(attachment, content, digest):
        return attachment
    data_key = await context.transaction.data_keys.get(sealed.key_id)
    if data_key is None or data_key.purpose is not KeyPurpose.SEALING:
        raise KeyUnavailableError("the data key was replaced while the content was sealed")
    for index, chunk in enumerate(sealed.chunks):
        await context.transaction.attachments.put_chunk(attachment.id, index, chunk)
    stored = msgspec.structs.replace(
        attachment, size=len(content), digest=digest, sealing_key=sealed.key_id
    )
    await context.transaction.attachments.replace(stored)
    return stored


async def download(
    transactions: OperationTransactions, parent: AttachmentParent, attachment_id: str
) -> File:
    """Returns a file with its complete content.

    Raises ResourceNotFoundError, MemoryAccessError; KeyUnavailableError if the stored content
    cannot be opened or differs from the upload.
    """
    attachment, sealed = await transactions.read(_load_sealed, parent, attachment_id)
    if len(sealed) != count_chunks(attachment.size or 0):
        raise KeyUnavailableError("chunks of the stored content are missing")
    opened: list[bytes] = []
    for index, chunk in enumerate(sealed):
        opened.append(await transactions.read(_open_chunk, attachment, index, chunk))
        # Reads do not suspend, so without this a large file would block every other request.
        await asyncio.sleep(0)
    content = b"".join(opened)
    if await asyncio.to_thread(_digest, content) != attachment.digest:
        raise KeyUnavailableError("the stored content differs from the upload")
    return File(attachment, content)


async def _load_sealed(
    context: OperationContext, parent: AttachmentParent, attachment_id: str
) -> tuple[Attachment, list[bytes]]:
    attachment = await _enter(context, Verb.READ, parent, attachment_id)
    if attachment.digest is None:
        raise ResourceNotFoundError("the server does not store the content of this attachment")
    return attachment, list(await context.transaction.attachments.chunks(attachment_id))


async def delete(context: OperationContext, parent: AttachmentParent, attachment_id: str) -> None:
    """Deletes a file and erases its content. Raises ResourceNotFoundError, MemoryAccessError."""
    await _enter(context, Verb.DELETE, parent, attachment_id)
    await context.transaction.attachments.remove(attachment_id)


async def _enter(
    context: OperationContext, verb: Verb, parent: AttachmentParent, attachment_id: str
) -> Attachment:
    """Returns an attachment if the principal is allowed `verb` on its parent."""
    await _enter_parent(context, verb, parent)
    attachment = await context.transaction.attachments.get(attachment_id)
    if attachment is None or attachment.parent != parent:
        raise ResourceNotFoundError(f"the {parent.kind} has no such attachment")
    return attachment


async def _enter_parent(context: OperationContext, verb: Verb, parent: AttachmentParent) -> str:
    """Raises unless the principal is allowed `verb` on the parent of a file. A change of an entry's
    files is a change of the entry, which is refused for an entry of a governed kind.

    Returns the owner of the data key for the content.
    """
    if parent.kind == "intent":
        await load_authorized_intent(context, verb, parent.id)
        return ""
    entry = await load_authorized_entry(
        context, verb if verb is Verb.READ else Verb.UPDATE, parent.id
    )
    if verb is not Verb.READ:
        await guard(context, entry)
    if verb is Verb.CREATE:
        refuse_governed(entry.kind)
    return entry.owner


async def _list(context: OperationContext, parent: AttachmentParent) -> list[Attachment]:
    attachments = context.transaction.attachments
    if parent.kind == "intent":
        return await attachments.list(parent.id)
    return await attachments.list_of_entry(parent.id)


def _event_data(attachment: Attachment) -> dict[str, Any]:
    """Returns the event data of a new file. The log outlives an entry, so the event omits the name
    of an entry's file."""
    data = {"id": attachment.id, "size": attachment.size}
    if attachment.entry_id is not None:
        return {**data, "entry_id": attachment.entry_id}
    return {**data, "filename": attachment.filename}


def _is_stored(attachment: Attachment, content: bytes, digest: str) -> bool:
    """Whether this content is stored already. Raises ResourceConflictError or ValidationError if
    the content cannot be stored.

    digest: SHA-256 of the content in hexadecimal
    """
    if attachment.storage_url is not None:
        raise ResourceConflictError(
            "the content is stored at `storage_url`; attach the file without a URL to store it here"
        )
    if attachment.digest is not None:
        if attachment.digest == digest:
            return True
        raise ResourceConflictError(
            "other content is stored already and is not replaced; attach another file"
        )
    if attachment.size not in (None, len(content)):
        raise ValidationError("the size of the content differs from the declared `size`")
    return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def count_chunks(size: int) -> int:
    """Returns the number of chunks of content. Empty content has one chunk, so that its emptiness
    is authenticated."""
    return max(1, -(-size // CHUNK_BYTES))


def _seal(service: SharedServices, attachment: Attachment, content: bytes, key_id: str) -> _Sealed:
    chunks = []
    for index in range(count_chunks(len(content))):
        chunk = content[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES]
        binding = chunk_binding(attachment, index, count_chunks(len(content)))
        _, sealed = service.cipher.seal_bytes(attachment.tenant, chunk, binding, key_id)
        chunks.append(sealed)
    return _Sealed(key_id, chunks)


async def reseal_attachment(context: OperationContext, attachment: Attachment) -> None:
    """Seals the content of a file with the present data key of the owner of its data key. Raises
    KeyUnavailableError."""
    transaction, cipher = context.transaction, context.service.cipher
    old = await transaction.data_keys.get(attachment.sealing_key or "")
    if old is None:
        raise KeyUnavailableError("the data key of this file has been destroyed")
    sealed = list(await transaction.attachments.chunks(attachment.id))
    await transaction.attachments.remove_chunks(attachment.id)
    key_id = attachment.sealing_key
    for index, chunk in enumerate(sealed):
        binding = chunk_binding(attachment, index, len(sealed))
        content = cipher.open_with(old, chunk, binding)
        key_id, fresh = await cipher.seal_for(
            transaction, context.tenant, old.owner, content, binding, context.now
        )
        await transaction.attachments.put_chunk(attachment.id, index, fresh)
    await transaction.attachments.replace(msgspec.structs.replace(attachment, sealing_key=key_id))


async def _open_chunk(
    context: OperationContext, attachment: Attachment, index: int, sealed: bytes
) -> bytes:
    await _enter_parent(context, Verb.READ, attachment.parent)
    binding = chunk_binding(attachment, index, count_chunks(attachment.size or 0))
    return await context.service.cipher.open_bytes(
        context.transaction, attachment.tenant, attachment.sealing_key or "", sealed, binding
    )


def chunk_binding(attachment: Attachment, index: int, count: int) -> str:
    """Returns the data that a sealed chunk is bound to.

    count: the number of chunks of the file
    """
    return f"attachment\0{attachment.tenant}\0{attachment.id}\0{index}\0{count}"


def _check(wanted: NewAttachment, limit: int) -> None:
    check_name("filename", wanted.filename, longest=_LONGEST_FILENAME, without=_PATH_CHARACTERS)
    if not wanted.filename.strip("."):
        raise ValidationError("`filename` must be more than dots")
    if not _MIME_TYPE.fullmatch(wanted.mime_type):
        raise ValidationError("`mime_type` must be a type and a subtype, such as text/plain")
    if wanted.storage_url is not None:
        _check_url(wanted.storage_url)
    elif wanted.size is not None and wanted.size > limit:
        raise ValueTooLargeError(_too_large(limit))
    encode_value(wanted.metadata)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        acceptable = (
            _URL.fullmatch(url) is not None
            and bool(parts.hostname)
            and parts.username is None
            and parts.password is None
            and parts.port != 0
        )
    except ValueError:
        acceptable = False
    if not acceptable:
        raise ValidationError(
            "`storage_url` must be an http or https URL without a user name or password"
        )


def _too_large(limit: int) -> str:
    return (
        f"content stored here may have at most {limit} bytes; store it elsewhere and attach it"
        " with its `storage_url`"
    )
