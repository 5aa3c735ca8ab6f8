"""`client.attachments`: files that belong to intents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from memorywall.records.errors import MemorywallError
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator
from memorywall.sdk.errors import MemoryTransportError, raise_for
from memorywall.sdk.filters import without_absent
from memorywall.sdk.retry import call
from memorywall.wire.access import AttachmentListResponse, AttachmentResponse

_ANY_BYTES = "application/octet-stream"


class AttachmentsCore:
    """The operations on attachments, as request generators."""

    def __init__(self, state: ClientState) -> None:
        self._state = state

    def upload(
        self,
        intent_id: str,
        filename: str,
        content: bytes,
        *,
        mime_type: str = _ANY_BYTES,
        metadata: Mapping[str, Any] | None = None,
    ) -> RequestGenerator[AttachmentResponse]:
        """Attaches a file to an intent and stores its content, which is sealed.

        Raises ValueTooLargeError, MemoryAccessError, ResourceNotFoundError.
        """
        made = yield from self.add(
            intent_id, filename, mime_type=mime_type, size=len(content), metadata=metadata
        )
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        try:
            return (
                yield from retry.change(
                    Request(
                        operation="upload_attachment",
                        path={"intent_id": intent_id, "attachment_id": made.id},
                        body=content,
                    ),
                    AttachmentResponse,
                    self.get(intent_id, made.id),
                    lambda current: current.digest == digest,
                )
            )
        except MemoryTransportError:
            raise
        except MemorywallError:
            # If the server refuses the content, the attachment is deleted again.
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
    ) -> RequestGenerator[AttachmentResponse]:
        """Attaches a file whose content is stored elsewhere, at `storage_url`."""
        body = without_absent(
            {
                "filename": filename,
                "mime_type": mime_type,
                "size": size,
                "storage_url": storage_url,
                "metadata": metadata,
            }
        )
        return call("add_attachment", AttachmentResponse, intent_id=intent_id, body=body)

    def download(self, intent_id: str, attachment_id: str) -> RequestGenerator[bytes]:
        """Returns the content of a file. Raises ResourceNotFoundError if no content is stored."""
        response = yield from retry.again(
            Request(
                operation="download_attachment",
                path={"intent_id": intent_id, "attachment_id": attachment_id},
            )
        )
        raise_for(response)
        return response.body

    def list(self, intent_id: str) -> RequestGenerator[Sequence[AttachmentResponse]]:
        """Returns the files of an intent."""
        found = yield from call("list_attachments", AttachmentListResponse, intent_id=intent_id)
        return found.attachments

    def get(self, intent_id: str, attachment_id: str) -> RequestGenerator[AttachmentResponse]:
        """Returns the metadata of a file."""
        return call(
            "get_attachment", AttachmentResponse, intent_id=intent_id, attachment_id=attachment_id
        )

    def delete(self, intent_id: str, attachment_id: str) -> RequestGenerator[None]:
        """Deletes a file and its content permanently."""
        return retry.remove("delete_attachment", intent_id=intent_id, attachment_id=attachment_id)

    def _abandon(self, intent_id: str, attachment_id: str) -> RequestGenerator[None]:
        try:
            yield from self.delete(intent_id, attachment_id)
        except MemorywallError:
            # The caller gets the error of the content; a failed deletion is less important.
            return
