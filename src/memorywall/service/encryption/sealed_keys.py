"""The key-encryption keys of a store, sealed by a passphrase, as a backup may contain them.

A key that scrypt (RFC 7914) derives from the passphrase seals the keys with AES-GCM. The parameters
of scrypt are stored beside them and are covered by the seal.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final
from unicodedata import normalize

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from memorywall.records.backup_origin import SealedKeys
from memorywall.records.errors import ConfigurationError
from memorywall.service.encryption.key_file import decode_keys, encode_keys
from memorywall.service.encryption.master_keys import KEY_BYTES

FEWEST_CHARACTERS: Final = 8
"""The fewest characters of a passphrase for new keys."""
_FORMAT = 1
_COST, _BLOCK_SIZE, _PARALLELIZATION = 1 << 17, 8, 1
"""The parameters of scrypt: 128 MiB, and about half a second."""
_MOST_BYTES = 1 << 30
_SALT_BYTES, _NONCE_BYTES = 16, 12


def seal_keys(keys: Sequence[bytes], passphrase: str) -> SealedKeys:
    """Seals key-encryption keys. Raises ConfigurationError for a passphrase that is too short."""
    if len(passphrase) < FEWEST_CHARACTERS:
        raise ConfigurationError(f"the passphrase must have {FEWEST_CHARACTERS} characters or more")
    sealed = SealedKeys(
        format=_FORMAT,
        cost=_COST,
        block_size=_BLOCK_SIZE,
        parallelization=_PARALLELIZATION,
        salt=os.urandom(_SALT_BYTES),
        nonce=os.urandom(_NONCE_BYTES),
        content=b"",
    )
    content = _cipher(sealed, passphrase).encrypt(sealed.nonce, encode_keys(keys), _bound(sealed))
    return msgspec.structs.replace(sealed, content=content)


def open_sealed_keys(sealed: SealedKeys, passphrase: str) -> tuple[bytes, ...]:
    """The key-encryption keys, from the oldest to the newest. Raises ConfigurationError for another
    passphrase, and for a form that this version does not know."""
    needed = 128 * sealed.cost * sealed.block_size * sealed.parallelization
    if sealed.format != _FORMAT or not 0 < needed <= _MOST_BYTES:
        raise ConfigurationError(
            "the keys in this backup have a form that this version of memorywall does not know;"
            " restore it with the version that wrote it or a newer one"
        )
    try:
        cipher = _cipher(sealed, passphrase)
        content = cipher.decrypt(sealed.nonce, sealed.content, _bound(sealed))
    except (InvalidTag, ValueError):
        raise ConfigurationError(
            "the passphrase is not the one that seals the keys in this backup"
        ) from None
    return decode_keys(content.decode("ascii"), "the backup")


def _cipher(sealed: SealedKeys, passphrase: str) -> AESGCM:
    derivation = Scrypt(
        salt=sealed.salt,
        length=KEY_BYTES,
        n=sealed.cost,
        r=sealed.block_size,
        p=sealed.parallelization,
    )
    # Keyboards compose a letter such as é in different ways.
    return AESGCM(
        derivation.derive(normalize("NFC", passphrase).encode("utf-8", "surrogateescape"))
    )


def _bound(sealed: SealedKeys) -> bytes:
    """The associated data: what the seal covers besides the keys."""
    return b"memorywall backup keys\0" + msgspec.json.encode(
        msgspec.structs.replace(sealed, content=b"")
    )
