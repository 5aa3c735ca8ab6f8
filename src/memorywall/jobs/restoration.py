"""The work of a restore besides the copy: the keys, the suppression ledger and its erasures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from memorywall.jobs.copy import check_key, holds_sealed
from memorywall.jobs.replay_ledger import ReplayPlan, plan_replay, replay
from memorywall.records.errors import ConfigurationError
from memorywall.records.feature_errors import LedgerDamagedError
from memorywall.records.suppression import LedgerPosition, SuppressionKind
from memorywall.service.encryption.key_file import (
    add_older_keys,
    has_keys,
    load_keys,
    read_keys,
    write_key_file,
)
from memorywall.service.encryption.ledger_key import open_ledger
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.encryption.sealed_keys import open_sealed_keys
from memorywall.service.erasure.entry_erasure import wait_until_erased
from memorywall.service.requests.services import SharedServices
from memorywall.settings import LEDGER_ENVIRONMENT, Settings
from memorywall.storage.suppression_ledger import (
    LedgerContent,
    SuppressionLedger,
    ledger_exists,
)
from memorywall.storage.transfer import ENTRIES, BackupSource

_ERASE_WITHIN = 0.5
_PATIENCE = 120.0
_ROTATE = "run `memorywall keys rotate-master` on the restored store"
_WITHOUT = "or --without-ledger to restore what was forgotten since the backup, too"


class _OpenStore(Protocol):
    def __call__(
        self, settings: Settings, *, keys: MasterKeys
    ) -> AbstractAsyncContextManager[SharedServices]: ...


class Restoration:
    """Checks the key and the ledger before anything is written, and repeats erasures afterwards.

    open_store: opens the copied store, which no server opens yet, with these keys
    given: the directory of the ledger; None for that of the settings
    ask: returns the passphrase of the keys in the backup
    without_ledger: whether erasures are not repeated; default: false
    notes: what to tell after the restore
    """

    def __init__(
        self,
        storage: Settings,
        given: Path | None,
        ask: Callable[[], str],
        open_store: _OpenStore,
        *,
        without_ledger: bool = False,
    ) -> None:
        self._storage = storage
        self._given = given
        self._ask = ask
        self._open_store = open_store
        self._without_ledger = without_ledger
        self._keys: MasterKeys | None = None
        self._to_put: tuple[bytes, ...] = ()
        self._plan = ReplayPlan()
        self.notes: list[str] = []

    async def prepare(self, source: BackupSource) -> str | None:
        """Reads the key-encryption keys and the ledger, and finds what the backup contains of what
        was forgotten since. Changes nothing.

        Raises ConfigurationError if one of them is missing or does not belong to the backup.
        """
        is_sealed = source.origin.keys is not None or has_keys(self._storage)
        if not is_sealed and not await _has_content(source):
            return None
        self._keys = await self._find_keys(source)
        if self._without_ledger:
            since = source.origin.began_at or "the time of the backup"
            self.notes.append(
                f"erasures since {since} are unknown: who was forgotten later is restored, too"
            )
        else:
            ledger, content = self._read_ledger(self._keys, source.origin.ledger)
            self._plan = await plan_replay(source, content, ledger)
        return None

    async def _find_keys(self, source: BackupSource) -> MasterKeys:
        """Returns the keys at hand if they open the backup, else those in the backup with those in
        the key file. Raises ConfigurationError."""
        sealed, storage = source.origin.keys, self._storage
        at_hand = read_keys(storage) if has_keys(storage) else ()
        # Keys of the environment would be used in place of those in the file.
        is_given = storage.encryption_key is not None
        if sealed is None or is_given or (at_hand and await _opens(source, at_hand)):
            keys = load_keys(storage, may_create=False)
        else:
            self._to_put = add_older_keys(at_hand, open_sealed_keys(sealed, self._ask()))
            keys = MasterKeys(self._to_put)
            kept = f", beside the keys that were there; {_ROTATE}" if at_hand else ""
            self.notes.append(
                f"the key-encryption key of the backup is in {storage.key_file}{kept}"
            )
        await check_key(source, keys)
        return keys

    async def complete(self, settings: Settings) -> None:
        """Repeats the erasures on the copied store, and begins new segments of its logs.

        settings: open the copied store
        """
        if self._to_put:
            write_key_file(self._storage.key_file, self._to_put)
        keys = self._keys or load_keys(self._storage, may_create=True)
        settings = replace(settings, erasure_deadline=_ERASE_WITHIN)
        ledger = None if self._plan.content is None else self._ledger_to_keep(keys)
        async with self._open_store(settings, keys=keys) as service:
            await replay(service, self._plan, ledger)
            await wait_until_erased(service, _PATIENCE)
        if ledger is not None and self._given is not None:
            # A server of the restored store may use either; the given one may be read-only.
            with suppress(OSError):
                open_ledger(self._given, keys).adopt(ledger)

    @property
    def forgotten(self) -> dict[str, int]:
        """The numbers of names whose erasure was repeated."""
        return {
            "agents": self._plan.count(SuppressionKind.AGENT),
            "subjects": self._plan.count(SuppressionKind.SUBJECT),
            "entries": self._plan.count(SuppressionKind.ENTRIES),
        }

    def _read_ledger(
        self, keys: MasterKeys, expected: LedgerPosition | None
    ) -> tuple[SuppressionLedger, LedgerContent]:
        own, directory = self._storage.ledger_directory, self._given
        directory = directory or own
        if directory is None:
            raise ConfigurationError(
                "give --ledger with the directory of the suppression ledger of the backed-up store"
                f" (its servers have it in {LEDGER_ENVIRONMENT}), {_WITHOUT}"
            )
        if not ledger_exists(directory):
            raise ConfigurationError(
                f"there is no suppression ledger in {directory}; give --ledger with that of the"
                f" backed-up store, such as the directory memory.db.ledger beside it, {_WITHOUT}"
            )
        ledger = open_ledger(directory, keys)
        content = ledger.read()
        if expected is not None and not content.is_at(expected):
            raise LedgerDamagedError(
                f"the suppression ledger in {directory} is not the one of the backed-up store, or"
                f" an older copy; give --ledger with the present one, {_WITHOUT}"
            )
        if own is None or not ledger_exists(own):
            return ledger, content
        ours = open_ledger(own, keys)
        merged = ours.read().merge(content, own, directory)
        return (ledger if merged is content else ours), merged

    def _ledger_to_keep(self, keys: MasterKeys) -> SuppressionLedger | None:
        """The ledger of the restored store, which contains all lines of the ledger that was
        read."""
        own = self._storage.ledger_directory or self._given
        if own is None:
            return None
        ledger = open_ledger(own, keys)
        if self._given is not None:
            ledger.adopt(open_ledger(self._given, keys))
        ledger.renew_key()
        return ledger


async def _opens(source: BackupSource, keys: Sequence[bytes]) -> bool:
    """Returns whether these key-encryption keys open every data key of a backup."""
    try:
        await check_key(source, MasterKeys(keys))
    except ConfigurationError:
        return False
    return True


async def _has_content(source: BackupSource) -> bool:
    """Returns whether a backup has entries or sealed data, and therefore a key."""
    if await holds_sealed(source):
        return True
    return any([await source.count(ENTRIES, one) for one in await source.tenants()])
