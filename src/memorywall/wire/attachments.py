"""Attachments: the files of intents and those of entries, with the same operations."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memorywall.records.attachment import Attachment, ParentKind
from memorywall.records.copier import copier
from memorywall.records.errors import (
    MemoryCapacityError,
    MemoryNotFoundError,
    ResourceConflictError,
    ResourceNotFoundError,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class AttachmentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to attach. The content follows with PUT, unless it is stored at `storage_url`.

    content_type, url, size_bytes: aliases of `mime_type`, `storage_url` and `size`
    """

    filename: str
    mime_type: str | None = None
    size: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    storage_url: Annotated[str, Meta(max_length=4_096)] | None = None
    metadata: dict[str, Any] = {}
    content_type: str | None = None
    size_bytes: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    url: Annotated[str, Meta(max_length=4_096)] | None = None

    @property
    def declared_type(self) -> str:
        """The media type, by either name."""
        if self.mime_type is not None:
            return self.mime_type
        return "application/octet-stream" if self.content_type is None else self.content_type

    @property
    def declared_size(self) -> int | None:
        """The size in bytes, by either name."""
        return self.size if self.size is not None else self.size_bytes

    @property
    def declared_url(self) -> str | None:
        """The URL of external content, by either name."""
        return self.storage_url if self.storage_url is not None else self.url


class AttachmentResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attachment. `stored` is true if the server has its content.

    intent_id, entry_id: what the file belongs to; one of them is present
    """

    id: str
    intent_id: str | None = None
    entry_id: str | None = None
    filename: str
    mime_type: str
    size: int
    storage_url: str
    stored: bool
    digest: str | None
    metadata: dict[str, Any]
    uploaded_by: str
    created_at: str
    created: str = msgspec.field(name="createdAt")


class AttachmentListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The attachments of an intent or of an entry."""

    attachments: list[AttachmentResponse]


def _content_url(attachment: Attachment) -> str:
    parent = "intents" if attachment.entry_id is None else "memory"
    path = f"/api/v1/{parent}/{attachment.parent.id}/attachments/{attachment.id}/content"
    return attachment.storage_url or path


attachment_view = copier(
    Attachment,
    AttachmentResponse,
    size=lambda one: one.size or 0,
    storage_url=_content_url,
    stored=lambda one: one.digest is not None,
    digest=lambda one: None if one.digest is None else "sha256:" + one.digest,
    created="created_at",
)
"""The wire form of an attachment. An unknown size is 0."""
_PATHS: dict[ParentKind, str] = {
    "intent": "/intents/{intent_id}/attachments",
    "entry": "/memory/{entry_id}/attachments",
}
_PREFIXES: dict[ParentKind, str] = {"intent": "", "entry": "entry_"}
_CONTENT_SOURCES: dict[ParentKind, str] = {
    "intent": "RFC-0005, RFC-0015 section 6.2",
    "entry": "RFC-0015 section 6.2",
}
_GROUPS: dict[ParentKind, OperationGroup] = {
    "intent": OperationGroup(name="Attachments", source="RFC-0005"),
    "entry": OperationGroup(
        name="Attachments", not_found=(MemoryNotFoundError, ResourceNotFoundError)
    ),
}


def attachment_operation(verb: str, parent: ParentKind) -> str:
    """The name of an operation on the attachments of an intent or of an entry.

    verb: what it does, such as "add"; "list" is the only one about several files
    """
    return f"{verb}_{_PREFIXES[parent]}attachment{'s' if verb == 'list' else ''}"


def _operations(parent: ParentKind) -> tuple[Operation, ...]:
    group, path, content_source = _GROUPS[parent], _PATHS[parent], _CONTENT_SOURCES[parent]
    one = path + "/{attachment_id}"
    return (
        group(
            attachment_operation("add", parent),
            f"POST {path}",
            f"Attach a file to an {parent}.",
            body=AttachmentRequest,
            reply=AttachmentResponse,
            status=201,
            accepts_idempotency_key=True,
            raises=(MemoryCapacityError,),
        ),
        group(
            attachment_operation("list", parent),
            f"GET {path}",
            f"List the files of an {parent}.",
            reply=AttachmentListResponse,
        ),
        group(
            attachment_operation("get", parent),
            f"GET {one}",
            f"Get the metadata of a file of an {parent}.",
            reply=AttachmentResponse,
        ),
        group(
            attachment_operation("upload", parent),
            f"PUT {one}/content",
            f"Store the content of a file of an {parent}.",
            source=content_source,
            body=bytes,
            content="bytes",
            reply=AttachmentResponse,
            raises=(ResourceConflictError,),
        ),
        group(
            attachment_operation("download", parent),
            f"GET {one}/content",
            f"Get the content of a file of an {parent}.",
            source=content_source,
            reply=bytes,
            media="bytes",
        ),
        group(
            attachment_operation("delete", parent),
            f"DELETE {one}",
            f"Delete a file of an {parent} and its content permanently.",
        ),
    )


ATTACHMENT_OPERATIONS: tuple[Operation, ...] = (*_operations("intent"), *_operations("entry"))
