"""A file that belongs to an intent (RFC-0005) or to an entry."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

ParentKind = Literal["intent", "entry"]


class AttachmentParent(NamedTuple):
    """The parent of a file."""

    kind: ParentKind
    id: str


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a file.

    intent_id, entry_id: the owner of the file; exactly one of them is given
    size: bytes, as declared by the client or, once stored, as counted; None if unknown
    storage_url: the URL of external content, None for content in the store
    digest: SHA-256 of the content in hexadecimal, None until the content is stored
    sealing_key: the id of the data key of the content, None until the content is stored
    """

    tenant: str
    id: str
    intent_id: str | None = None
    entry_id: str | None = None
    filename: str
    mime_type: str
    size: int | None = None
    storage_url: str | None = None
    digest: str | None = None
    sealing_key: str | None = None
    metadata: dict[str, Any] = {}
    uploaded_by: str
    created_at: str

    @property
    def parent(self) -> AttachmentParent:
        """The parent of the file."""
        if self.entry_id is not None:
            return AttachmentParent("entry", self.entry_id)
        return AttachmentParent("intent", self.intent_id or "")
