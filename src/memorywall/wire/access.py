"""Bodies about who may do what with an intent (RFC-0011), and about its files (RFC-0005)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memorywall.records.attachment import Attachment
from memorywall.records.intent import DefaultPolicy, IntentGrant
from memorywall.records.namespace import Access

Level = Literal["read", "write", "admin"]


class GrantBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line for an access list. What the server sets itself may come along and is not heeded."""

    principal_id: str
    principal_type: str = "agent"
    permission: Level = "read"
    reason: Annotated[str, Meta(max_length=4_096)] | None = None
    expires_at: str | None = None
    id: str | None = None
    granted_by: str | None = None
    granted_at: str | None = None


class GrantView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of an access list."""

    id: str
    principal_id: str
    principal_type: str
    permission: Access
    granted_by: str
    granted_at: str
    expires_at: str | None = None
    reason: str | None = None


class AccessBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole access list."""

    default_policy: DefaultPolicy = DefaultPolicy.CLOSED
    entries: list[GrantBody] = []
    intent_id: str | None = None


class AccessView(msgspec.Struct, frozen=True, kw_only=True):
    """A whole access list."""

    intent_id: str
    default_policy: DefaultPolicy
    entries: list[GrantView]


def grant_view(grant: IntentGrant) -> GrantView:
    """The wire form of a line."""
    return GrantView(
        id=grant.id,
        principal_id=grant.principal_id,
        principal_type=grant.principal_type,
        permission=grant.access,
        granted_by=grant.granted_by,
        granted_at=grant.granted_at,
        expires_at=grant.expires_at,
        reason=grant.reason,
    )


class AttachmentBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to be attached. Its content follows with PUT, unless it is kept at `storage_url`.

    content_type, url, size_bytes: other words for `mime_type`, `storage_url` and `size`
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
        """The media type, by whichever word."""
        if self.mime_type is not None:
            return self.mime_type
        return "application/octet-stream" if self.content_type is None else self.content_type

    @property
    def declared_size(self) -> int | None:
        """The size in bytes, by whichever word."""
        return self.size if self.size is not None else self.size_bytes

    @property
    def declared_url(self) -> str | None:
        """Where the content is kept, by whichever word."""
        return self.storage_url if self.storage_url is not None else self.url


class AttachmentView(msgspec.Struct, frozen=True, kw_only=True):
    """An attachment. `stored` says whether its content is kept here."""

    id: str
    intent_id: str
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


class AttachmentList(msgspec.Struct, frozen=True, kw_only=True):
    """The attachments of an intent."""

    attachments: list[AttachmentView]


def attachment_view(attachment: Attachment) -> AttachmentView:
    """The wire form of an attachment. An unknown size is 0."""
    path = f"/api/v1/intents/{attachment.intent_id}/attachments/{attachment.id}/content"
    return AttachmentView(
        id=attachment.id,
        intent_id=attachment.intent_id,
        filename=attachment.filename,
        mime_type=attachment.mime_type,
        size=attachment.size or 0,
        storage_url=attachment.storage_url or path,
        stored=attachment.digest is not None,
        digest=None if attachment.digest is None else "sha256:" + attachment.digest,
        metadata=attachment.metadata,
        uploaded_by=attachment.uploaded_by,
        created_at=attachment.created_at,
        created=attachment.created_at,
    )
