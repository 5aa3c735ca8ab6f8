"""Unwrapped data keys: encryption with AES-256-GCM, and keyed digests."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memorywall.records.errors import KeyUnavailableError
from memorywall.records.idempotency import DataKey, KeyPurpose

DIGEST_MARK = "~"
"""The prefix of a digest that replaces a literal."""
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class OpenedKey:
    """An unwrapped data key.

    digest_key: the key of HMACs that name this data key
    """

    id: str
    cipher: AESGCM
    digest_key: bytes

    @classmethod
    def of(cls, data_key: DataKey, secret: bytes) -> OpenedKey:
        """The opened form of a data key with its secret. The secret of a retired key is only the
        key of its digests."""
        is_retired = data_key.purpose is KeyPurpose.RETIRED
        digest_key = secret if is_retired else hmac.digest(secret, b"memorywall digest", "sha256")
        return cls(data_key.id, AESGCM(secret), digest_key)

    def seal(self, content: bytes, binding: bytes) -> bytes:
        """The nonce, followed by the encrypted content."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, content, binding)

    def open(self, sealed: bytes, binding: bytes, what: str) -> bytes:
        """The content that `seal` was given. Raises KeyUnavailableError, which names `what`."""
        try:
            return self.cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], binding)
        except (InvalidTag, ValueError) as error:
            raise KeyUnavailableError(
                f"the sealed {what} cannot be opened with its data key"
            ) from error


def digest_literal(key: bytes, literal: str, purpose: str = "") -> str:
    """The digest that replaces a literal; `key` is the digest key of a data key.

    purpose: derives a key of its own, so that no digest of another purpose is ever equal; default:
        none, for the digests that replace literals
    """
    if purpose:
        key = hmac.digest(key, purpose.encode(), "sha256")
    content = b"literal\0" + literal.encode()
    return DIGEST_MARK + hmac.digest(key, content, "sha256")[:20].hex()
