"""What a backup tells of its store besides the rows."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from memorywall.records.suppression import LedgerPosition


class SealedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The key-encryption keys of a store, sealed by a passphrase.

    format: the number of the form
    cost, block_size, parallelization, salt: the parameters of scrypt (RFC 7914: N, r, p)
    nonce, content: of AES-GCM
    """

    format: int
    cost: int
    block_size: int
    parallelization: int
    salt: bytes
    nonce: bytes
    content: bytes


class BackupOrigin(NamedTuple):
    """The store of a backup.

    ledger: the end of its suppression ledger before the backup began; None if unknown
    began_at: an instant before the backup read the store; None if unknown
    keys: its key-encryption keys; None for a backup without them
    """

    ledger: LedgerPosition | None = None
    began_at: str | None = None
    keys: SealedKeys | None = None
