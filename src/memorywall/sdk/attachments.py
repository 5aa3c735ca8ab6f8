"""`client.attachments` and `client.memory.attachments`: files of intents and of entries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from memorywall.records.attachment import ParentKind
from memorywall.records.errors import MemorywallError
from memorywall.records.tier import Tier
from memorywall.sdk import retry
from memorywall.sdk.client_state import ClientState
from memorywall.sdk.effects import Request, RequestGenerator, operations
from memorywall.sdk.errors import MemoryTransportError, raise_for
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fencing import fencing_token_of
from memorywall.sdk.filters import without_absent
from memorywall.wire.attachments import (
    AttachmentListResponse,
    AttachmentResponse,
    attachment_operation,
)

_ANY_BYTES = "application/octet-stream"


class AttachmentsCore:
    """The operations on attachments, as request generators.

    parent: the parent of the files: an intent, or an entry for `client.memory.attachments`. Each
        `parent_id` is the id of such a parent
    """

    def __init__(self, state: ClientState, parent: ParentKind) -> None:
        self._state = state
        self._parent = parent

    def upload(
        self,
        parent_id: str,
        filename: str,
        content: bytes,
        *,
        mime_type: str = _ANY_BYTES,
        metadata: Mapping[str, Any] | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[AttachmentResponse]:
        """Attaches a file to an intent or an entry and stores its content, which is sealed.

        fencing_token: for a file of an entry, the lease or claim it is written under, where it is
            not the client's own
        Raises ValueTooLargeError, MemoryAccessError, ResourceNotFoundError, and for the file of an
        entry MemoryNotFoundError, FencedError.
        """
        made = yield from self.add(
            parent_id,
            filename,
            mime_type=mime_type,
            size=len(content),
            metadata=metadata,
            fencing_token=fencing_token,
        )
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        try:
            return (
                yield from retry.change(
                    self._request("upload", parent_id, made.id, content, fencing_token),
                    AttachmentResponse,
                    self.get(parent_id, made.id),
                    lambda current: current.digest == digest,
                )
            )
        except MemoryTransportError:
            raise
        except MemorywallError:
            # If the server refuses the content, the attachment is deleted again.
            yield from self._abandon(parent_id, made.id, fencing_token)
            raise

    def add(
        self,
        parent_id: str,
        filename: str,
        *,
        storage_url: str | None = None,
        mime_type: str = _ANY_BYTES,
        size: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        fencing_token: int | None = None,
    ) -> RequestGenerator[AttachmentResponse]:
        """Attaches a file whose content is stored elsewhere, at `storage_url`.

        fencing_token: as for `upload`
        """
        body = without_absent(
            {
                "filename": filename,
                "mime_type": mime_type,
                "size": size,
                "storage_url": storage_url,
                "metadata": metadata,
            }
        )
        request = self._request("add", parent_id, None, body, fencing_token)
        return retry.ask(request, AttachmentResponse)

    def download(self, parent_id: str, attachment_id: str) -> RequestGenerator[bytes]:
        """Returns the content of a file. Raises ResourceNotFoundError if no content is stored."""
        response = yield from retry.send_repeatable(
            self._request("download", parent_id, attachment_id)
        )
        raise_for(response)
        return response.body

    def list(self, parent_id: str) -> RequestGenerator[Sequence[AttachmentResponse]]:
        """Returns the files of an intent or an entry, oldest first."""
        found = yield from retry.ask(self._request("list", parent_id), AttachmentListResponse)
        return found.attachments

    def get(self, parent_id: str, attachment_id: str) -> RequestGenerator[AttachmentResponse]:
        """Returns the metadata of a file."""
        return retry.ask(self._request("get", parent_id, attachment_id), AttachmentResponse)

    def delete(
        self, parent_id: str, attachment_id: str, *, fencing_token: int | None = None
    ) -> RequestGenerator[None]:
        """Deletes a file and its content permanently.

        fencing_token: as for `upload`
        """
        return retry.remove_by(
            self._request("delete", parent_id, attachment_id, None, fencing_token)
        )

    def _abandon(
        self, parent_id: str, attachment_id: str, fencing_token: int | None
    ) -> RequestGenerator[None]:
        try:
            yield from self.delete(parent_id, attachment_id, fencing_token=fencing_token)
        except MemorywallError:
            # The caller gets the error of the content; a failed deletion is less important.
            return

    def _request(
        self,
        verb: str,
        parent_id: str,
        attachment_id: str | None = None,
        body: Any = None,
        fencing_token: int | None = None,
    ) -> Request:
        operation = attachment_operation(verb, self._parent)
        path = {f"{self._parent}_id": parent_id}
        if attachment_id is not None:
            path["attachment_id"] = attachment_id
        if operations()[operation].changes:
            fencing_token = self._fence(parent_id, fencing_token)
        return Request(operation=operation, path=path, body=body, fencing_token=fencing_token)

    def _fence(self, parent_id: str, given: int | None) -> int | None:
        """The fencing token of a write: for the files of an entry that of a write to the entry."""
        if self._parent == "intent":
            return given
        name = self._state.versions.name_of(parent_id)
        if name is None or name[2] != Tier.SHARED:
            return fencing_token_of(self._state, given)
        return fencing_token_of(self._state, given, *name[:2])


class _AttachmentsMethods:
    upload = method(AttachmentsCore.upload)
    add = method(AttachmentsCore.add)
    download = method(AttachmentsCore.download)
    list = method(AttachmentsCore.list)
    get = method(AttachmentsCore.get)
    delete = method(AttachmentsCore.delete)


class AttachmentsClient(_AttachmentsMethods, Facade[AttachmentsCore]):
    """Keeps files that belong to intents, or to entries for `client.memory.attachments`."""


class AsyncAttachmentsClient(_AttachmentsMethods, AsyncFacade[AttachmentsCore]):
    """Keeps files that belong to intents, or to entries for `client.memory.attachments`."""
