"""The first reply to an Idempotency-Key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptReply:
    """What a repeated request is answered with.

    fingerprint: keyed digest of the request, so that a different one is told apart
    reply: the reply's body, encrypted; None once an entry in it has been deleted
    entry_ids: the entries the reply shows, for erasing it with them
    """

    tenant: str
    principal: str
    key: str
    fingerprint: bytes
    status: int
    reply: bytes | None
    sealing_key: str
    entry_ids: tuple[str, ...]
    created_at: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DataKey:
    """A data key, wrapped under the key-encryption key `wrapped_by`.

    subject: the agent whose memory is sealed with it; "" for what belongs to the whole tenant
    """

    tenant: str
    id: str
    subject: str = ""
    wrapped: bytes
    wrapped_by: str
    created_at: str
