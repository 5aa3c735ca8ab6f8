"""A file that belongs to an intent (RFC-0005)."""

from __future__ import annotations

from typing import Any

import msgspec


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file.

    size: bytes, as declared or, once stored, as counted; None when neither
    storage_url: where the client says it is; None for content that is kept here
    digest: SHA-256 of the content in hexadecimal, None until it is stored
    sealing_key: the data key its content is sealed with, None until it is stored
    """

    tenant: str
    id: str
    intent_id: str
    filename: str
    mime_type: str
    size: int | None = None
    storage_url: str | None = None
    digest: str | None = None
    sealing_key: str | None = None
    metadata: dict[str, Any] = {}
    uploaded_by: str
    created_at: str
