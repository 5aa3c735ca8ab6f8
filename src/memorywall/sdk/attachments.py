"""`client.attachments`: files that belong to intents, in no colour."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from memorywall.records.errors import MemorywallError
from memorywall.sdk import exchange
from memorywall.sdk.filters import without_absent
from memorywall.sdk.problems import MemoryTransportError, decode, raise_for
from memorywall.sdk.session import Session
from memorywall.sdk.steps import Request, Script, part
from memorywall.wire.access import AttachmentList, AttachmentView

_ANY_BYTES = "application/octet-stream"


class AttachmentsLogic:
    """The operations on attachments, as scripts for a driver."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def upload(
        self,
        intent_id: str,
        filename: str,
        content: bytes,
        *,
        mime_type: str = _ANY_BYTES,
        metadata: Mapping[str, Any] | None = None,
    ) -> Script[AttachmentView]:
        """Attaches a file to an intent and stores its content, which is kept sealed.

        Raises ValueTooLargeError, MemoryAccessError, ResourceNotFoundError.
        """
        made = yield from self.add(
            intent_id, filename, mime_type=mime_type, size=len(content), metadata=metadata
        )
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        try:
            return (
                yield from exchange.change(
                    Request(
                        method="PUT",
                        path=_path(intent_id, made.id, "content"),
                        body=content,
                        media=_ANY_BYTES,
                    ),
                    AttachmentView,
                    _path(intent_id, made.id),
                    lambda current: current.digest == digest,
                )
            )
        except MemoryTransportError:
            raise
        except MemorywallError:
            # What the server refuses leaves nothing behind, not even a name without content.
            yield from self._abandon(intent_id, made.id)
            raise

    def add(
        self,
        intent_id: str,
        filename: str,
        *,
        storage_url: str | None = None,
        mime_type: str = _ANY_BYTES,
        size: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Script[AttachmentView]:
        """Attaches a file whose content is kept elsewhere, at `storage_url`."""
        body = without_absent(
            {
                "filename": filename,
                "mime_type": mime_type,
                "size": size,
                "storage_url": storage_url,
                "metadata": metadata,
            }
        )
        response = yield from exchange.if_unsent(
            Request(method="POST", path=_path(intent_id), body=exchange.encode(body))
        )
        return decode(response, AttachmentView)

    def download(self, intent_id: str, attachment_id: str) -> Script[bytes]:
        """The content of a file. Raises ResourceNotFoundError when none is stored."""
        response = yield from exchange.again(
            Request(method="GET", path=_path(intent_id, attachment_id, "content"))
        )
        raise_for(response)
        return response.body

    def list(self, intent_id: str) -> Script[Sequence[AttachmentView]]:
        """The files of an intent."""
        response = yield from exchange.again(Request(method="GET", path=_path(intent_id)))
        return decode(response, AttachmentList).attachments

    def get(self, intent_id: str, attachment_id: str) -> Script[AttachmentView]:
        """What is known of a file."""
        response = yield from exchange.again(
            Request(method="GET", path=_path(intent_id, attachment_id))
        )
        return decode(response, AttachmentView)

    def delete(self, intent_id: str, attachment_id: str) -> Script[None]:
        """Deletes a file at once and for good."""
        yield from exchange.remove(_path(intent_id, attachment_id))

    def _abandon(self, intent_id: str, attachment_id: str) -> Script[None]:
        try:
            yield from self.delete(intent_id, attachment_id)
        except MemorywallError:
            # Whoever asked hears why the content was refused; that is what matters.
            return


def _path(intent_id: str, *parts: str) -> str:
    return "/".join(("/api/v1/intents", part(intent_id), "attachments", *map(part, parts)))
