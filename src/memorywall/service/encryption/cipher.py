"""Envelope encryption: AES-256-GCM under a data key, which is wrapped under a key-encryption key.

Memory that an agent owns is sealed with a data key of the agent. Data of the whole tenant is sealed
with a data key of the tenant. When an agent is forgotten, its data key is destroyed, so that no
copy of its sealed bytes can be opened.

A sealed value is bound to its tenant, entry, version and data key. A copy in another row cannot be
opened. Without the key-encryption key nothing can be opened or sealed, and no value is stored in
clear text instead (RFC-0015 section 9.2).
"""

from __future__ import annotations

import hmac
import time
from contextlib import suppress

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memorywall.records.entry import SEALED_SENSITIVITIES, Entry
from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.event_chain import DigestKey
from memorywall.records.idempotency import DataKey, KeyPurpose
from memorywall.records.identifiers import IdSource
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.encryption.opened_key import DIGEST_MARK, OpenedKey, digest_literal
from memorywall.storage.port import Store, Transaction

_encode = msgspec.json.Encoder().encode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
_MOST_OPENED = 4_096
"""The most unwrapped data keys in memory."""
_DIGEST_KEY_SECONDS = 60.0
"""The time after which a cached digest key is checked for retirement."""


class EnvelopeCipher:
    """Seals and opens values; holds the key-encryption keys and unwrapped data keys."""

    def __init__(self, keys: MasterKeys, ids: IdSource) -> None:
        self.master_keys = keys
        self._ids = ids
        self._opened: dict[tuple[str, str], OpenedKey] = {}
        self._current: dict[tuple[str, str], OpenedKey] = {}
        self._digest_keys: dict[str, tuple[float, DigestKey]] = {}
        self._literal_keys: dict[str, bytes] = {}

    async def prepare(self, store: Store, tenant: str, now: str, owner: str = "") -> str:
        """Commits a data key for the owner if there is none, for content that is sealed outside
        the transaction that stores it.

        owner: an agent; "" for the tenant, the default
        Returns the id of the key.
        """

        async def find(transaction: Transaction) -> DataKey | None:
            return await transaction.data_keys.current(owner)

        async def script(transaction: Transaction) -> DataKey:
            return await self._find_or_make(transaction, tenant, owner, now)

        there = await store.read(tenant, find)
        return self._remember(await store.write(tenant, script) if there is None else there).id

    async def prepare_digests(self, store: Store, tenant: str, now: str) -> None:
        """Loads the committed key of the tenant's literal digests, which never changes."""
        if tenant not in self._literal_keys:
            await self.prepare(store, tenant, now)
            first = await store.read(tenant, lambda to: to.data_keys.first())
            if first is not None:
                self._literal_keys[tenant] = self._unwrap(first).digest_key

    async def check(self, transaction: Transaction) -> None:
        """Raises ConfigurationError if the key-encryption key does not open the store's data
        keys."""
        data_key = await transaction.data_keys.any()
        if data_key is not None:
            self.check_opens(data_key)

    async def check_every(self, transaction: Transaction) -> None:
        """Raises ConfigurationError if a key-encryption key of the store's data keys is not at
        hand, or does not open them."""
        used, known = set(await transaction.data_keys.wrappers()), self.master_keys.ids
        if used & known and not used <= known:
            raise ConfigurationError(
                "some data keys are wrapped under another key-encryption key, because the key is"
                " being replaced; give this process both keys"
            )
        await self.check(transaction)

    def check_opens(self, data_key: DataKey) -> None:
        """Raises ConfigurationError if the key-encryption key does not open a data key."""
        try:
            self._unwrap(data_key)
        except KeyUnavailableError as error:
            raise ConfigurationError(
                "the key-encryption key is not the one this database was sealed with;"
                " put the right one back: nothing can be read without it. What was backed up before"
                " the key was replaced needs the old key as well, before the new one"
            ) from error

    async def seal(self, transaction: Transaction, entry: Entry) -> Entry:
        """The entry in its stored form: a confidential or restricted value is encrypted."""
        if entry.sensitivity not in SEALED_SENSITIVITIES:
            return entry
        opened = await self._usable(transaction, entry.tenant, entry.owner, entry.updated_at)
        content = entry.value
        if entry.subjects:
            # JSON text contains no line break, so the first line break separates the names from the
            # value.
            content = _encode(entry.subjects) + b"\n" + content
        sealed = opened.seal(content, _binding(entry, opened.id))
        return msgspec.structs.replace(entry, value=sealed, sealing_key=opened.id)

    async def reseal(self, transaction: Transaction, entry: Entry, now: str) -> Entry:
        """The sealed entry, sealed with the present data key of its owner. Raises
        KeyUnavailableError."""
        old = await self._key(transaction, entry.tenant, entry.sealing_key or "")
        content = old.open(entry.value, _binding(entry, old.id), "value")
        new = await self._usable(transaction, entry.tenant, entry.owner, now)
        sealed = new.seal(content, _binding(entry, new.id))
        return msgspec.structs.replace(entry, value=sealed, sealing_key=new.id)

    async def rotate_data_key(
        self, transaction: Transaction, owner: str, now: str
    ) -> DataKey | None:
        """Replaces the data key of an owner by a new one; returns the new key, None if the owner
        has no data key.

        owner: an agent; "" for the tenant
        """
        data_key = await transaction.data_keys.current(owner)
        if data_key is None:
            return None
        replaced = self.master_keys.repurpose(data_key, KeyPurpose.REPLACED)
        await transaction.data_keys.replace(replaced)
        new = self._make(transaction.tenant, owner, now)
        await transaction.data_keys.add(new)
        return new

    async def destroy_data_key(self, transaction: Transaction, data_key: DataKey) -> None:
        """Destroys a replaced data key that has sealed nothing any more. The digests of the key of
        a tenant can be computed afterwards as well."""
        if data_key.owner:
            await transaction.data_keys.discard(data_key.id)
        else:
            digest_key = self._unwrap(data_key).digest_key
            retired = self.master_keys.repurpose(data_key, KeyPurpose.RETIRED, digest_key)
            await transaction.data_keys.replace(retired)
        self._opened.pop((data_key.tenant, data_key.id), None)

    async def open(self, transaction: Transaction, entry: Entry) -> Entry:
        """The entry with its value in clear text. Raises KeyUnavailableError."""
        if entry.sealing_key is None:
            if entry.sensitivity in SEALED_SENSITIVITIES:
                raise KeyUnavailableError("the value must be sealed and is not")
            return entry
        opened = await self._key(transaction, entry.tenant, entry.sealing_key)
        value = opened.open(entry.value, _binding(entry, opened.id), "value")
        if value.startswith(b"["):
            return self._with_subjects(entry, value)
        return msgspec.structs.replace(entry, value=value, sealing_key=None)

    def _with_subjects(self, entry: Entry, content: bytes) -> Entry:
        """The opened entry with the names of its subjects, in its namespace as well."""
        names, _, value = content.partition(b"\n")
        subjects = _decode_names(names)
        namespace = entry.namespace
        for name, stored in zip(subjects, entry.subjects, strict=False):
            namespace = namespace.replace(f"user/{stored}/", f"user/{name}/", 1)
        return msgspec.structs.replace(
            entry, value=value, sealing_key=None, subjects=subjects, namespace=namespace
        )

    async def literal_digest(
        self, transaction: Transaction, literal: str, now: str, purpose: str = ""
    ) -> str:
        """Returns a digest of a literal, keyed by the tenant, which replaces the literal beside
        sealed entries.

        Equal literals have equal digests, and the digest of a literal never changes: its key is
        that of the tenant's first data key, which stays for digests when another replaces it.

        purpose: see `digest_literal`
        """
        if literal.startswith(DIGEST_MARK):
            return literal
        digest = await self.find_digest(transaction, literal, purpose)
        if digest is None:
            opened = await self._usable(transaction, transaction.tenant, "", now)
            digest = digest_literal(opened.digest_key, literal, purpose)
        return digest

    async def find_digest(
        self, transaction: Transaction, literal: str, purpose: str = ""
    ) -> str | None:
        """The same for a read-only transaction; None if the tenant has no key yet, and so no
        digests."""
        if (known := self._literal_keys.get(transaction.tenant)) is not None:
            return digest_literal(known, literal, purpose)
        first = await transaction.data_keys.first()
        if first is None:
            return None
        return digest_literal(self._unwrap(first).digest_key, literal, purpose)

    def prepared_digest(self, tenant: str, literal: str, purpose: str = "") -> str:
        """The same after `prepare_digests`."""
        return digest_literal(self._literal_keys[tenant], literal, purpose)

    def seal_bytes(
        self, tenant: str, content: bytes, binding: str, key_id: str | None = None
    ) -> tuple[str, bytes]:
        """Encrypts content outside a transaction; returns the data key's id and the result.

        key_id: a prepared key; None for the tenant's key, which is never destroyed. The key of an
            agent may be destroyed: the caller that stores the result must check that the key
            exists.
        """
        if key_id is None:
            opened = self._current[tenant, ""]
        elif (tenant, key_id) in self._opened:
            opened = self._opened[tenant, key_id]
        else:
            raise KeyUnavailableError("the data key has been destroyed")
        return opened.id, opened.seal(content, binding.encode())

    async def seal_for(
        self,
        transaction: Transaction,
        tenant: str,
        owner: str,
        content: bytes,
        binding: str,
        now: str,
    ) -> tuple[str, bytes]:
        """Seals content of an owner for storage in this transaction; returns the result of
        `seal_bytes`."""
        opened = await self._usable(transaction, tenant, owner, now)
        return opened.id, opened.seal(content, binding.encode())

    async def key_id(self, transaction: Transaction, tenant: str, owner: str, now: str) -> str:
        """The id of the data key that seals the owner's content in this transaction."""
        return (await self._usable(transaction, tenant, owner, now)).id

    async def open_bytes(
        self, transaction: Transaction, tenant: str, key_id: str, sealed: bytes, binding: str
    ) -> bytes:
        """The content that `seal_bytes` or `seal_for` was given. Raises KeyUnavailableError."""
        opened = await self._key(transaction, tenant, key_id)
        return opened.open(sealed, binding.encode(), "content")

    def open_with(self, data_key: DataKey, sealed: bytes, binding: str) -> bytes:
        """The content that `seal_bytes` was given, for a reader without transactions. Raises
        KeyUnavailableError."""
        opened = self._opened.get((data_key.tenant, data_key.id)) or self._unwrap(data_key)
        return opened.open(sealed, binding.encode(), "content")

    async def digest(
        self, transaction: Transaction, tenant: str, content: bytes, key_id: str
    ) -> bytes:
        """An HMAC-SHA-256 of the content with a data key, which reveals nothing without the key."""
        opened = await self._key(transaction, tenant, key_id)
        return hmac.digest(opened.digest_key, content, "sha256")

    async def digest_key(self, transaction: Transaction, now: str) -> DigestKey:
        """Returns the digest key of the tenant's log; see `event_log.DigestKeys`.

        A key that is not known to be committed is read in the transaction every time, because the
        transaction that created it may have been rolled back.
        """
        tenant = transaction.tenant
        known = self._digest_keys.get(tenant)
        if known is not None:
            return known[1]
        data_key = await transaction.data_keys.current(purpose=KeyPurpose.DIGEST)
        if data_key is None:
            data_key = self._make(tenant, "", now, KeyPurpose.DIGEST)
            await transaction.data_keys.add(data_key)
        return self.derive_digest_key(data_key)

    def has_digest_key(self, tenant: str) -> bool:
        """Returns whether the tenant's digest key is cached and was checked recently."""
        known = self._digest_keys.get(tenant)
        return known is not None and time.monotonic() < known[0]

    async def load_digest_key(self, store: Store, tenant: str) -> None:
        """Caches the tenant's committed digest key, and the key of its literal digests, if there
        are any, so that `digest_key` and `find_digest` need no statement. Another process may
        replace the digest key, so this must be repeated when `has_digest_key` is false; digests
        with a retired key also verify."""

        async def find_both(transaction: Transaction) -> tuple[DataKey | None, DataKey | None]:
            keys = transaction.data_keys
            first = None if tenant in self._literal_keys else await keys.first()
            return await keys.current(purpose=KeyPurpose.DIGEST), first

        data_key, first = await store.read(tenant, find_both)
        if first is not None:
            # A write that needs this key and cannot have it fails later.
            with suppress(KeyUnavailableError):
                self._literal_keys[tenant] = self._unwrap(first).digest_key
        if data_key is not None:
            until = time.monotonic() + _DIGEST_KEY_SECONDS
            self._digest_keys[tenant] = until, self.derive_digest_key(data_key)

    async def rotate_digest_key(self, store: Store, tenant: str, now: str) -> str:
        """Creates a new digest key for the tenant and retires the previous one, which stays for the
        digests that name it. Returns the id of the new key."""

        async def script(transaction: Transaction) -> str:
            data_key = self._make(tenant, "", now, KeyPurpose.DIGEST)
            await transaction.data_keys.add(data_key)
            return data_key.id

        created = await store.write(tenant, script)
        await self.load_digest_key(store, tenant)
        return created

    def derive_digest_key(self, data_key: DataKey) -> DigestKey:
        """Creates an unwrapped data key for digests. Raises KeyUnavailableError."""
        return DigestKey.derive(data_key.id, self.master_keys.unwrap(data_key))

    def drop(self, tenant: str, owner: str) -> None:
        """Removes a destroyed data key from memory."""
        opened = self._current.pop((tenant, owner), None)
        if opened is not None:
            self._opened.pop((tenant, opened.id), None)

    async def _usable(
        self, transaction: Transaction, tenant: str, owner: str, now: str
    ) -> OpenedKey:
        """The owner's data key, which exists in the store when this transaction is committed.

        A cached key may have been replaced or destroyed since, also by another process, or its
        creation may have been rolled back. Data that is sealed with such a key would be lost.
        """
        data_key = await self._find_or_make(transaction, tenant, owner, now)
        opened = self._current.get((tenant, owner))
        if opened is not None and opened.id == data_key.id:
            return opened
        self.drop(tenant, owner)
        return self._remember(data_key)

    async def _find_or_make(
        self, transaction: Transaction, tenant: str, owner: str, now: str
    ) -> DataKey:
        data_key = await transaction.data_keys.current(owner)
        if data_key is None:
            data_key = self._make(tenant, owner, now)
            await transaction.data_keys.add(data_key)
        return data_key

    def _make(
        self, tenant: str, owner: str, now: str, purpose: KeyPurpose = KeyPurpose.SEALING
    ) -> DataKey:
        draft = DataKey(
            tenant=tenant,
            id=self._ids.next("dek"),
            owner=owner,
            wrapped=b"",
            wrapped_by="",
            created_at=now,
            purpose=purpose,
        )
        return self.master_keys.wrap(draft, AESGCM.generate_key(bit_length=256))

    def _remember(self, data_key: DataKey) -> OpenedKey:
        """Unwraps a data key and caches it as the current key of its owner."""
        opened = self._unwrap(data_key)
        self._current[data_key.tenant, data_key.owner] = opened
        if len(self._current) > _MOST_OPENED:
            # Keys of tenants stay in the cache, because `seal_bytes` relies on them.
            for tenant, owner in list(self._current):
                if owner not in ("", data_key.owner):
                    self.drop(tenant, owner)
        return opened

    async def _key(self, transaction: Transaction, tenant: str, key_id: str) -> OpenedKey:
        if opened := self._opened.get((tenant, key_id)):
            return opened
        data_key = await transaction.data_keys.get(key_id)
        if data_key is None:
            raise KeyUnavailableError("the data key of this entry has been destroyed")
        return self._unwrap(data_key)

    def _unwrap(self, data_key: DataKey) -> OpenedKey:
        opened = OpenedKey.of(data_key, self.master_keys.unwrap(data_key))
        if len(self._opened) > 2 * _MOST_OPENED:
            self._opened.clear()
        self._opened[data_key.tenant, data_key.id] = opened
        return opened


def _binding(entry: Entry, key_id: str) -> bytes:
    # NUL separates the parts; no name or id can contain NUL.
    return f"{entry.tenant}\0{entry.id}\0{entry.version}\0{key_id}".encode()
