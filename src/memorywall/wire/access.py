"""Requests and responses of access lists (RFC-0011) and attachments (RFC-0005)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.records.attachment import Attachment
from memorywall.records.copier import copier
from memorywall.records.intent import DefaultPolicy, IntentGrant
from memorywall.records.namespace import Access

Level = Literal["read", "write", "admin"]


class GrantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new entry of an access list. The server ignores `id`, `granted_by` and `granted_at`.

    expires_at: an RFC 3339 instant, null for no expiry
    """

    principal_id: str
    principal_type: str = "agent"
    permission: Level = "read"
    reason: Annotated[str, Meta(max_length=4_096)] | None = None
    expires_at: str | None = None
    id: str | None = None
    granted_by: str | None = None
    granted_at: str | None = None


class GrantResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of an access list."""

    id: str
    principal_id: str
    principal_type: str
    permission: Access
    granted_by: str
    granted_at: str
    expires_at: str | None = None
    reason: str | None = None


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole access list."""

    default_policy: DefaultPolicy = DefaultPolicy.CLOSED
    entries: list[GrantRequest] = []
    intent_id: str | None = None


class AccessResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A whole access list."""

    intent_id: str
    default_policy: DefaultPolicy
    entries: list[GrantResponse]


grant_view = copier(IntentGrant, GrantResponse, permission="access")
"""The wire form of an entry of an access list."""


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
