"""Sealing: AES-256-GCM under a data key of the tenant, itself wrapped under one key-encryption key.

A sealed value is bound to its tenant, entry, version and data key: moved anywhere else it does not
open. Without the key-encryption key nothing opens and nothing is sealed; nothing is ever stored
in the clear instead (RFC-0015 section 9.2).
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.idempotency import DataKey
from memorywall.records.identifiers import IdSource
from memorywall.storage.port import Store, Transaction

KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class _Opened:
    """A data key, ready to use."""

    id: str
    cipher: AESGCM
    digest_key: bytes


class Vault:
    """Holds the key-encryption key and the data keys it has unwrapped."""

    def __init__(self, key: bytes, ids: IdSource) -> None:
        if len(key) != KEY_BYTES:
            raise ConfigurationError(f"the key-encryption key must have {KEY_BYTES} bytes")
        self._wrapping = AESGCM(key)
        self._fingerprint = hashlib.sha256(b"memorywall key id\0" + key).hexdigest()[:16]
        self._ids = ids
        self._opened: dict[tuple[str, str], _Opened] = {}
        self._current: dict[str, str] = {}

    async def prepare(self, store: Store, tenant: str, now: str) -> None:
        """Sees to it that the tenant has a data key, committed before anything is sealed with it.

        A key made inside the transaction that first uses it could be undone with it and live on
        in this cache.
        """
        if tenant in self._current:
            return

        async def script(transaction: Transaction) -> DataKey:
            data_key = await transaction.data_keys.current(tenant)
            if data_key is None:
                data_key = self._make(tenant, now)
                await transaction.data_keys.add(data_key)
            return data_key

        opened = self._unwrap(await store.write(script))
        self._current[tenant] = opened.id

    async def check(self, transaction: Transaction) -> None:
        """Raises ConfigurationError when this key-encryption key does not fit the store's keys."""
        data_key = await transaction.data_keys.any()
        if data_key is None:
            return
        try:
            self._unwrap(data_key)
        except KeyUnavailableError as error:
            raise ConfigurationError(
                "the key-encryption key is not the one this database was sealed with;"
                " put the right one back: nothing can be read without it"
            ) from error

    def seal(self, entry: Entry) -> Entry:
        """The entry as it is stored: its value encrypted when its sensitivity asks for it."""
        if entry.sensitivity not in SEALED_SENSITIVITIES:
            return entry
        opened = self._current_key(entry.tenant)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = opened.cipher.encrypt(nonce, entry.value, _binding(entry, opened.id))
        return msgspec.structs.replace(entry, value=nonce + sealed, sealing_key=opened.id)

    async def open(self, transaction: Transaction, entry: Entry) -> Entry:
        """The entry with its value in the clear. Raises KeyUnavailableError."""
        if entry.sealing_key is None:
            if entry.sensitivity in SEALED_SENSITIVITIES:
                raise KeyUnavailableError("the value should be sealed and is not")
            return entry
        opened = await self._key(transaction, entry.tenant, entry.sealing_key)
        nonce, sealed = entry.value[:_NONCE_BYTES], entry.value[_NONCE_BYTES:]
        try:
            value = opened.cipher.decrypt(nonce, sealed, _binding(entry, opened.id))
        except (InvalidTag, ValueError) as error:
            raise KeyUnavailableError("the sealed value does not open with its key") from error
        return msgspec.structs.replace(entry, value=value, sealing_key=None)

    def seal_bytes(self, tenant: str, content: bytes, binding: str) -> tuple[str, bytes]:
        """Encrypts other content of a tenant; returns the data key's id and the result."""
        opened = self._current_key(tenant)
        nonce = os.urandom(_NONCE_BYTES)
        return opened.id, nonce + opened.cipher.encrypt(nonce, content, binding.encode())

    async def open_bytes(
        self, transaction: Transaction, tenant: str, key_id: str, sealed: bytes, binding: str
    ) -> bytes:
        """What `seal_bytes` was given. Raises KeyUnavailableError."""
        opened = await self._key(transaction, tenant, key_id)
        try:
            return opened.cipher.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], binding.encode()
            )
        except (InvalidTag, ValueError) as error:
            raise KeyUnavailableError("what is sealed does not open with its key") from error

    async def digest(
        self, transaction: Transaction, tenant: str, content: bytes, key_id: str | None = None
    ) -> bytes:
        """A digest keyed by a data key, by default the current one, which tells nothing about the
        content to who has not the key."""
        if key_id is None:
            opened = self._current_key(tenant)
        else:
            opened = await self._key(transaction, tenant, key_id)
        return hmac.digest(opened.digest_key, content, "sha256")

    def _make(self, tenant: str, now: str) -> DataKey:
        key_id = self._ids.next("dek")
        nonce = os.urandom(_NONCE_BYTES)
        wrapped = nonce + self._wrapping.encrypt(
            nonce, AESGCM.generate_key(bit_length=256), f"{tenant}\0{key_id}".encode()
        )
        return DataKey(
            tenant=tenant, id=key_id, wrapped=wrapped, wrapped_by=self._fingerprint, created_at=now
        )

    def _current_key(self, tenant: str) -> _Opened:
        return self._opened[tenant, self._current[tenant]]

    async def _key(self, transaction: Transaction, tenant: str, key_id: str) -> _Opened:
        if opened := self._opened.get((tenant, key_id)):
            return opened
        data_key = await transaction.data_keys.get(tenant, key_id)
        if data_key is None:
            raise KeyUnavailableError("the data key of this entry has been destroyed")
        return self._unwrap(data_key)

    def _unwrap(self, data_key: DataKey) -> _Opened:
        try:
            key = self._wrapping.decrypt(
                data_key.wrapped[:_NONCE_BYTES],
                data_key.wrapped[_NONCE_BYTES:],
                f"{data_key.tenant}\0{data_key.id}".encode(),
            )
        except InvalidTag as error:
            raise KeyUnavailableError(
                "the key-encryption key does not fit the tenant's data key"
            ) from error
        digest_key = hmac.digest(key, b"memorywall digest", "sha256")
        opened = _Opened(data_key.id, AESGCM(key), digest_key)
        self._opened[data_key.tenant, data_key.id] = opened
        return opened


def _binding(entry: Entry, key_id: str) -> bytes:
    # NUL parts what it joins: no name or id can hold one.
    return f"{entry.tenant}\0{entry.id}\0{entry.version}\0{key_id}".encode()
