"""The secret of a suppression ledger, which the key-encryption key wraps.

The digests and MACs of a ledger stay valid when the key-encryption key is replaced, because their
keys derive from this secret. Only the file `key` of the ledger is written anew.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from memorywall.records.errors import ConfigurationError, KeyUnavailableError
from memorywall.records.suppression import LedgerKey
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.settings import KEY_ENVIRONMENT
from memorywall.storage.suppression_ledger import SuppressionLedger, ledger_damaged, read_key

_ROOT_BYTES = 32
_BINDING = b"memorywall suppression ledger root"


class _WrappedRoot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file `key`.

    wrapped_by: the id of the key-encryption key
    wrapped: the secret, wrapped under it
    """

    wrapped_by: str
    wrapped: bytes


_decode = msgspec.json.Decoder(_WrappedRoot).decode


def open_ledger(directory: Path, master_keys: MasterKeys) -> SuppressionLedger:
    """The ledger in a directory, which may be missing. Its secret is loaded when it is used.

    master_keys: the newest wraps the secret, and each of them unwraps it
    """

    def wrap(root: bytes) -> bytes:
        return msgspec.json.encode(_WrappedRoot(*master_keys.wrap_secret(root, _BINDING)))

    def open_key(content: bytes | None) -> tuple[LedgerKey, bytes]:
        if content is None:
            root = secrets.token_bytes(_ROOT_BYTES)
            return LedgerKey.derive(root), wrap(root)
        found = _read_wrapped(directory, content)
        try:
            root = master_keys.unwrap_secret(found.wrapped_by, found.wrapped, _BINDING)
        except KeyUnavailableError as error:
            if found.wrapped_by in master_keys.ids:
                raise ledger_damaged(directory, "its key is changed") from error
            raise ConfigurationError(
                f"the suppression ledger in {directory} needs another key-encryption key than those"
                f" at hand; if the key was replaced, give both keys, the older one first, in the"
                f" key file or in {KEY_ENVIRONMENT}"
            ) from error
        is_newest = found.wrapped_by == master_keys.newest
        return LedgerKey.derive(root), content if is_newest else wrap(root)

    return SuppressionLedger(directory, open_key)


def needs_older_key(ledger: SuppressionLedger, master_keys: MasterKeys) -> bool:
    """Returns whether the secret of a ledger is wrapped under another key-encryption key than the
    newest one. Raises LedgerDamagedError."""
    content = read_key(ledger.directory)
    if content is None:
        return False
    return _read_wrapped(ledger.directory, content).wrapped_by != master_keys.newest


def _read_wrapped(directory: Path, content: bytes) -> _WrappedRoot:
    try:
        return _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ledger_damaged(directory, "its key is changed") from error
