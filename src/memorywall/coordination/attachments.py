"""Files that belong to intents (RFC-0005), with their content.

Content is kept in pieces, each sealed and bound to its attachment, its place and how many there
are: none can be exchanged, left out or cut off unnoticed. What a client says to be kept elsewhere
is only ever told on; the server never fetches it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memorywall.coordination.access import enter_intent
from memorywall.records.attachment import Attachment
from memorywall.records.decision import Verb
from memorywall.records.errors import (
    KeyUnavailableError,
    MemoryCapacityError,
    ResourceConflictError,
    ResourceNotFoundError,
    ValidationError,
    ValueTooLargeError,
)
from memorywall.records.event import WorkEvent
from memorywall.records.principal import Principal
from memorywall.storage.port import Script, Transaction
from memorywall.wall.door import Door
from memorywall.wall.limits import check_name, encode_value
from memorywall.wall.log import record_work

PIECE = 256 * 1024
"""How many bytes of content are sealed at once."""
MOST_ATTACHMENTS = 1_000
"""How many attachments an intent may have."""

_LONGEST_FILENAME = 255
_PATH_CHARACTERS = "/\\:"
_TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"  # noqa: S105 - RFC 6838, nothing secret
_MIME_TYPE = re.compile(f"{_TOKEN}/{_TOKEN}")
_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewAttachment:
    """A file to be attached; see `Attachment`."""

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
    """Content as it is stored."""

    key_id: str
    pieces: list[bytes]


async def add(
    door: Door, principal: Principal, intent_id: str, wanted: NewAttachment
) -> Script[Attachment]:
    """A script that attaches a file to an intent, as yet without content.

    Raises ValidationError, ValueTooLargeError; when run ResourceNotFoundError, MemoryAccessError,
    MemoryCapacityError.
    """
    _check(wanted, door.settings.attachment_limit)
    now = door.now()

    async def script(transaction: Transaction) -> Attachment:
        await enter_intent(transaction, principal, Verb.CREATE, intent_id, now)
        count = len(await transaction.attachments.list(principal.tenant, intent_id))
        if count >= MOST_ATTACHMENTS:
            raise MemoryCapacityError(
                "this intent has too many attachments; delete some",
                current_count=count,
                max_capacity=MOST_ATTACHMENTS,
            )
        attachment = Attachment(
            tenant=principal.tenant,
            id=door.ids.next("att"),
            intent_id=intent_id,
            filename=wanted.filename,
            mime_type=wanted.mime_type,
            size=wanted.size,
            storage_url=wanted.storage_url,
            metadata=wanted.metadata,
            uploaded_by=principal.id,
            created_at=now,
        )
        await transaction.attachments.insert(attachment)
        await record_work(
            transaction,
            WorkEvent.ATTACHMENT_ADDED,
            tenant=principal.tenant,
            by=principal,
            at=now,
            intent_id=intent_id,
            data={"id": attachment.id, "filename": wanted.filename, "size": wanted.size},
        )
        return attachment

    return script


async def list_attachments(door: Door, principal: Principal, intent_id: str) -> list[Attachment]:
    """The attachments of an intent, oldest first. Raises ResourceNotFoundError,
    MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> list[Attachment]:
        await enter_intent(transaction, principal, Verb.READ, intent_id, now)
        return await transaction.attachments.list(principal.tenant, intent_id)

    return await door.store.read(principal.tenant, script)


async def get(door: Door, principal: Principal, intent_id: str, attachment_id: str) -> Attachment:
    """What is known of a file. Raises ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> Attachment:
        return await _enter(transaction, principal, Verb.READ, intent_id, attachment_id, now)

    return await door.store.read(principal.tenant, script)


async def upload(
    door: Door, principal: Principal, intent_id: str, attachment_id: str, content: bytes
) -> Attachment:
    """Stores a file's content. The same content may come again and changes nothing.

    Raises ResourceNotFoundError, MemoryAccessError, ValueTooLargeError; ValidationError when it
    has not the size that was declared, ResourceConflictError when there is other content or it is
    kept elsewhere.
    """
    if len(content) > door.settings.attachment_limit:
        raise ValueTooLargeError(_too_large(door.settings.attachment_limit))
    tenant, now = principal.tenant, door.now()

    async def look(transaction: Transaction) -> Attachment:
        return await _enter(transaction, principal, Verb.CREATE, intent_id, attachment_id, now)

    # Who may not upload is told so before the work that the content makes, and that is done
    # neither on the event loop nor where it would hold up the writes of others.
    known = await door.store.read(principal.tenant, look)
    digest = await asyncio.to_thread(_digest, content)
    if _is_stored(known, content, digest):
        return known
    await door.vault.prepare(door.store, tenant, now)
    sealed = await asyncio.to_thread(_seal, door, known, content)

    async def script(transaction: Transaction) -> Attachment:
        attachment = await look(transaction)
        if _is_stored(attachment, content, digest):
            return attachment
        for place, piece in enumerate(sealed.pieces):
            await transaction.attachments.put_piece(tenant, attachment_id, place, piece)
        stored = msgspec.structs.replace(
            attachment, size=len(content), digest=digest, sealing_key=sealed.key_id
        )
        await transaction.attachments.replace(stored)
        return stored

    return await door.store.write(principal.tenant, script, long=len(content) > PIECE)


async def download(door: Door, principal: Principal, intent_id: str, attachment_id: str) -> File:
    """A file with its content, whole and as it was uploaded.

    Raises ResourceNotFoundError, MemoryAccessError; KeyUnavailableError when what is stored cannot
    be opened or is not what was uploaded.
    """
    now = door.now()

    async def script(transaction: Transaction) -> tuple[Attachment, list[bytes]]:
        attachment = await _enter(transaction, principal, Verb.READ, intent_id, attachment_id, now)
        if attachment.digest is None:
            raise ResourceNotFoundError("the content of this attachment is not kept here")
        pieces = await transaction.attachments.pieces(principal.tenant, attachment_id)
        return attachment, list(pieces)

    attachment, sealed = await door.store.read(principal.tenant, script)
    if len(sealed) != _count(attachment.size or 0):
        raise KeyUnavailableError("pieces of the stored content are missing")
    opened: list[bytes] = []
    for place, piece in enumerate(sealed):
        opened.append(await _open_piece(door, attachment, place, piece))
        # Reads do not suspend, so without this a large file would shut everyone else out.
        await asyncio.sleep(0)
    content = b"".join(opened)
    if await asyncio.to_thread(_digest, content) != attachment.digest:
        raise KeyUnavailableError("the stored content is not what was uploaded")
    return File(attachment, content)


async def delete(
    door: Door, principal: Principal, intent_id: str, attachment_id: str
) -> Script[None]:
    """A script that deletes a file and erases its content. Raises when run:
    ResourceNotFoundError, MemoryAccessError."""
    now = door.now()

    async def script(transaction: Transaction) -> None:
        await _enter(transaction, principal, Verb.DELETE, intent_id, attachment_id, now)
        await transaction.attachments.remove(principal.tenant, attachment_id)

    return script


async def _enter(
    transaction: Transaction,
    principal: Principal,
    verb: Verb,
    intent_id: str,
    attachment_id: str,
    now: str,
) -> Attachment:
    """An attachment of an intent, once the principal has been found to be allowed `verb` there."""
    await enter_intent(transaction, principal, verb, intent_id, now)
    attachment = await transaction.attachments.get(principal.tenant, attachment_id)
    if attachment is None or attachment.intent_id != intent_id:
        raise ResourceNotFoundError("the intent has no such attachment")
    return attachment


def _is_stored(attachment: Attachment, content: bytes, digest: str) -> bool:
    """Whether this very content is stored. Raises ResourceConflictError or ValidationError where
    it cannot be."""
    if attachment.storage_url is not None:
        raise ResourceConflictError(
            "the content is kept at `storage_url`; attach the file without one to store it here"
        )
    if attachment.digest is not None:
        if attachment.digest == digest:
            return True
        raise ResourceConflictError(
            "other content is stored already and is not replaced; attach another file"
        )
    if attachment.size not in (None, len(content)):
        raise ValidationError("the content has not the `size` that was declared")
    return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _count(size: int) -> int:
    """How many pieces content has. Content without a byte has one too, so that there is something
    to prove that it is without."""
    return max(1, -(-size // PIECE))


def _seal(door: Door, attachment: Attachment, content: bytes) -> _Sealed:
    pieces, key_id = [], ""
    for place in range(_count(len(content))):
        piece = content[place * PIECE : (place + 1) * PIECE]
        binding = _binding(attachment, place, _count(len(content)))
        key_id, sealed = door.vault.seal_bytes(attachment.tenant, piece, binding)
        pieces.append(sealed)
    return _Sealed(key_id, pieces)


async def _open_piece(door: Door, attachment: Attachment, place: int, sealed: bytes) -> bytes:
    binding = _binding(attachment, place, _count(attachment.size or 0))

    async def script(transaction: Transaction) -> bytes:
        return await door.vault.open_bytes(
            transaction, attachment.tenant, attachment.sealing_key or "", sealed, binding
        )

    return await door.store.read(attachment.tenant, script)


def _binding(attachment: Attachment, place: int, count: int) -> str:
    return f"attachment\0{attachment.tenant}\0{attachment.id}\0{place}\0{count}"


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
