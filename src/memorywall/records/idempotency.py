"""Idempotency records and data keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyRecord:
    """The stored response of a request with an Idempotency-Key.

    fingerprint: keyed digest of the request, which identifies a different request
    reply: the encrypted response, None once an entry in it has been deleted
    entry_ids: the entries in the response, with which the response is erased
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


class KeyPurpose(StrEnum):
    """The purpose of a data key.

    SEALING: encrypts content, and is destroyed with its subject
    DIGEST: keys the digests of a tenant's log; a newer key retires it, and nothing destroys it
    REPLACED: opens content that it sealed before a newer key replaced it, until that content is
        sealed anew
    RETIRED: was a sealing key of the tenant; only keys digests that name it, and opens nothing
    """

    SEALING = "sealing"
    DIGEST = "digest"
    REPLACED = "replaced"
    RETIRED = "retired"


@dataclass(frozen=True, kw_only=True, slots=True)
class DataKey:
    """A data key, wrapped under the key-encryption key `wrapped_by`.

    owner: the agent whose memory is sealed with the key, "" for data of the whole tenant
    wrapped: the encrypted key
    wrapped_by: the fingerprint of the key-encryption key
    """

    tenant: str
    id: str
    owner: str = ""
    wrapped: bytes
    wrapped_by: str
    created_at: str
    purpose: KeyPurpose = KeyPurpose.SEALING
