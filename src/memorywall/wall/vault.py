"""Sealing: AES-256-GCM under a data key, itself wrapped under one key-encryption key.

What lies behind an agent's wall is sealed with a data key of that agent, and what belongs to the
tenant as a whole with one of the tenant: when an agent is forgotten its key is destroyed, and with
it whatever copies of sealed bytes there are anywhere.

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
_MOST_OPENED = 4_096
"""How many data keys of agents are held unwrapped."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A data key, ready to use."""

    id: str
    cipher: AESGCM
    digest_key: bytes

    def seal(self, content: bytes, binding: bytes) -> bytes:
        """The content encrypted, behind its nonce."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self.cipher.encrypt(nonce, content, binding)


class Vault:
    """Holds the key-encryption key and the data keys it has unwrapped."""

    def __init__(self, key: bytes, ids: IdSource) -> None:
        if len(key) != KEY_BYTES:
            raise ConfigurationError(f"the key-encryption key must have {KEY_BYTES} bytes")
        self._wrapping = AESGCM(key)
        self._fingerprint = hashlib.sha256(b"memorywall key id\0" + key).hexdigest()[:16]
        self._ids = ids
        self._opened: dict[tuple[str, str], _Opened] = {}
        self._current: dict[tuple[str, str], _Opened] = {}

    async def prepare(self, store: Store, tenant: str, now: str, subject: str = "") -> None:
        """Sees to it that the subject has a data key that is committed, for what is sealed outside
        the transaction that stores it."""

        async def look(transaction: Transaction) -> DataKey | None:
            return await transaction.data_keys.current(tenant, subject)

        async def script(transaction: Transaction) -> DataKey:
            return await self._find_or_make(transaction, tenant, subject, now)

        there = await store.read(tenant, look)
        self._remember(await store.write(tenant, script) if there is None else there)

    async def check(self, transaction: Transaction) -> None:
        """Raises ConfigurationError when this key-encryption key does not fit the store's keys."""
        data_key = await transaction.data_keys.any()
        if data_key is not None:
            self.check_opens(data_key)

    def check_opens(self, data_key: DataKey) -> None:
        """Raises ConfigurationError when this key-encryption key does not open a data key."""
        try:
            self._unwrap(data_key)
        except KeyUnavailableError as error:
            raise ConfigurationError(
                "the key-encryption key is not the one this database was sealed with;"
                " put the right one back: nothing can be read without it"
            ) from error

    async def seal(self, transaction: Transaction, entry: Entry) -> Entry:
        """The entry as it is stored: its value encrypted when its sensitivity asks for it."""
        if entry.sensitivity not in SEALED_SENSITIVITIES:
            return entry
        opened = await self._usable(transaction, entry.tenant, entry.owner, entry.updated_at)
        sealed = opened.seal(entry.value, _binding(entry, opened.id))
        return msgspec.structs.replace(entry, value=sealed, sealing_key=opened.id)

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
        """Encrypts content of a tenant as a whole, whose key was prepared and is never destroyed;
        returns the data key's id and the result."""
        opened = self._current[tenant, ""]
        return opened.id, opened.seal(content, binding.encode())

    async def seal_for(
        self,
        transaction: Transaction,
        tenant: str,
        subject: str,
        content: bytes,
        binding: str,
        now: str,
    ) -> tuple[str, bytes]:
        """Encrypts content of a subject, which this transaction stores; returns the same."""
        opened = await self._usable(transaction, tenant, subject, now)
        return opened.id, opened.seal(content, binding.encode())

    async def key_id(self, transaction: Transaction, tenant: str, subject: str, now: str) -> str:
        """The data key that the subject's content is sealed with in this transaction."""
        return (await self._usable(transaction, tenant, subject, now)).id

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
        """A digest keyed by a data key, by default the one prepared for the tenant, which tells
        nothing about the content to who has not the key."""
        if key_id is None:
            opened = self._current[tenant, ""]
        else:
            opened = await self._key(transaction, tenant, key_id)
        return hmac.digest(opened.digest_key, content, "sha256")

    def drop(self, tenant: str, subject: str) -> None:
        """Forgets the subject's data key, which has been destroyed."""
        opened = self._current.pop((tenant, subject), None)
        if opened is not None:
            self._opened.pop((tenant, opened.id), None)

    async def _usable(
        self, transaction: Transaction, tenant: str, subject: str, now: str
    ) -> _Opened:
        """The subject's data key, which is sure to be there when this transaction is committed.

        One that is remembered may have been destroyed since, by another process too, or its making
        been undone: what is sealed with it would be lost with this process.
        """
        opened = self._current.get((tenant, subject))
        if opened is not None and await transaction.data_keys.get(tenant, opened.id) is not None:
            return opened
        self.drop(tenant, subject)
        return self._remember(await self._find_or_make(transaction, tenant, subject, now))

    async def _find_or_make(
        self, transaction: Transaction, tenant: str, subject: str, now: str
    ) -> DataKey:
        data_key = await transaction.data_keys.current(tenant, subject)
        if data_key is None:
            data_key = self._make(tenant, subject, now)
            await transaction.data_keys.add(data_key)
        return data_key

    def _make(self, tenant: str, subject: str, now: str) -> DataKey:
        key_id = self._ids.next("dek")
        nonce = os.urandom(_NONCE_BYTES)
        wrapped = nonce + self._wrapping.encrypt(
            nonce, AESGCM.generate_key(bit_length=256), _place(tenant, key_id, subject)
        )
        return DataKey(
            tenant=tenant,
            id=key_id,
            subject=subject,
            wrapped=wrapped,
            wrapped_by=self._fingerprint,
            created_at=now,
        )

    def _remember(self, data_key: DataKey) -> _Opened:
        """Unwraps a subject's data key and takes it as the current one."""
        opened = self._unwrap(data_key)
        self._current[data_key.tenant, data_key.subject] = opened
        if len(self._current) > _MOST_OPENED:
            # Those of tenants stay: `seal_bytes` relies on what was prepared.
            for tenant, subject in list(self._current):
                if subject not in ("", data_key.subject):
                    self.drop(tenant, subject)
        return opened

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
                _place(data_key.tenant, data_key.id, data_key.subject),
            )
        except InvalidTag as error:
            raise KeyUnavailableError(
                "the key-encryption key does not fit the tenant's data key"
            ) from error
        digest_key = hmac.digest(key, b"memorywall digest", "sha256")
        opened = _Opened(data_key.id, AESGCM(key), digest_key)
        if len(self._opened) > 2 * _MOST_OPENED:
            self._opened.clear()
        self._opened[data_key.tenant, data_key.id] = opened
        return opened


def _place(tenant: str, key_id: str, subject: str) -> bytes:
    """Where a wrapped data key belongs. Those of tenants name no subject: they are older than
    subjects."""
    return "\0".join((tenant, key_id, subject) if subject else (tenant, key_id)).encode()


def _binding(entry: Entry, key_id: str) -> bytes:
    # NUL parts what it joins: no name or id can hold one.
    return f"{entry.tenant}\0{entry.id}\0{entry.version}\0{key_id}".encode()
