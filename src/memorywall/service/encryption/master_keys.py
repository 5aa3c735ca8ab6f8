"""The key-encryption keys, which wrap data keys.

The newest key wraps, and every key unwraps, so that servers continue to run while data keys are
wrapped under a new key.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.idempotency import DataKey, KeyPurpose

KEY_BYTES = 32
_NONCE_BYTES = 12


class MasterKeys:
    """The key-encryption keys of a process.

    keys: each 32 bytes, from the oldest to the newest
    reload: returns the present keys if they have changed since they were read last, else None;
        default: the keys never change
    """

    def __init__(
        self, keys: Sequence[bytes], reload: Callable[[], Sequence[bytes] | None] | None = None
    ) -> None:
        self._reload = reload
        self._ciphers: dict[str, AESGCM] = {}
        self.newest = ""
        self._take(keys)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all keys. An id is a fingerprint, which reveals nothing of its key."""
        return frozenset(self._ciphers)

    def refresh(self) -> None:
        """Reads the keys again if they have changed."""
        keys = None if self._reload is None else self._reload()
        if keys is not None:
            self._take(keys)

    def wrap(self, data_key: DataKey, secret: bytes) -> DataKey:
        """The data key with `secret`, wrapped under the newest key. Other processes may have added
        a key meanwhile, so the keys are refreshed."""
        self.refresh()
        return self._wrap(data_key, secret)

    def rewrap(self, data_key: DataKey) -> DataKey:
        """The same data key, wrapped under the newest key. Raises KeyUnavailableError."""
        return self._wrap(data_key, self.unwrap(data_key))

    def repurpose(
        self, data_key: DataKey, purpose: KeyPurpose, secret: bytes | None = None
    ) -> DataKey:
        """The same data key with another purpose, which its wrapping is bound to.

        secret: its new secret; None to keep it, the default

        Raises KeyUnavailableError.
        """
        kept = self.unwrap(data_key) if secret is None else secret
        return self.wrap(replace(data_key, purpose=purpose), kept)

    def unwrap(self, data_key: DataKey) -> bytes:
        """The secret of a data key. Raises KeyUnavailableError."""
        return self.unwrap_secret(data_key.wrapped_by, data_key.wrapped, _binding(data_key))

    def wrap_secret(self, secret: bytes, binding: bytes) -> tuple[str, bytes]:
        """The id of the newest key, and a secret that is wrapped under it.

        binding: what the secret is for, which `unwrap_secret` must repeat
        """
        nonce = os.urandom(_NONCE_BYTES)
        return self.newest, nonce + self._ciphers[self.newest].encrypt(nonce, secret, binding)

    def unwrap_secret(self, wrapped_by: str, wrapped: bytes, binding: bytes) -> bytes:
        """The secret that the key with the id `wrapped_by` wraps. Raises KeyUnavailableError."""
        cipher = self._ciphers.get(wrapped_by)
        if cipher is None:
            self.refresh()
            cipher = self._ciphers.get(wrapped_by)
        if cipher is None:
            raise KeyUnavailableError(
                "the key-encryption key of the tenant's data key is not at hand"
            )
        try:
            return cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], binding)
        except (InvalidTag, ValueError) as error:
            raise KeyUnavailableError(
                "the key-encryption key does not fit the tenant's data key"
            ) from error

    def _wrap(self, data_key: DataKey, secret: bytes) -> DataKey:
        wrapped_by, wrapped = self.wrap_secret(secret, _binding(data_key))
        return replace(data_key, wrapped=wrapped, wrapped_by=wrapped_by)

    def _take(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ConfigurationError(f"the key-encryption key must have {KEY_BYTES} bytes")
        self._ciphers = {key_id(key): AESGCM(key) for key in keys}
        self.newest = key_id(keys[-1])


def key_id(key: bytes) -> str:
    """The id of a key-encryption key."""
    return hashlib.sha256(b"memorywall key id\0" + key).hexdigest()[:16]


def _binding(data_key: DataKey) -> bytes:
    """The associated data of a wrapped data key. Sealing keys of tenants name neither a subject nor
    a purpose, and those of agents no purpose, because they are older than both fields."""
    tenant, name, owner = data_key.tenant, data_key.id, data_key.owner
    parts: tuple[str, ...] = (tenant, name, owner) if owner else (tenant, name)
    if data_key.purpose != KeyPurpose.SEALING:
        parts = (tenant, name, owner, str(data_key.purpose))
    return "\0".join(parts).encode()
