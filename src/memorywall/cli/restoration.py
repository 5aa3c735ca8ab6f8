"""The work of `memorywall restore` besides the copy."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memorywall.assembly import open_memory, open_vault
from memorywall.jobs.copy import check_key, holds_sealed
from memorywall.jobs.replay_ledger import ReplayPlan, plan_replay, replay
from memorywall.records.errors import ConfigurationError
from memorywall.records.feature_errors import LedgerDamagedError
from memorywall.records.suppression import LedgerPosition, SuppressionKind
from memorywall.service.encryption.key_file import load_keys
from memorywall.service.encryption.ledger_key import open_ledger
from memorywall.service.encryption.master_keys import MasterKeys
from memorywall.service.erasure.entry_erasure import wait_until_erased
from memorywall.settings import LEDGER_ENVIRONMENT, Settings
from memorywall.storage.suppression_ledger import (
    LedgerContent,
    SuppressionLedger,
    ledger_exists,
)
from memorywall.storage.transfer import ENTRIES, BackupSource

_ERASE_WITHIN = 0.5
_PATIENCE = 120.0
_WITHOUT = "or --without-ledger to restore what was forgotten since the backup, too"


class Restoration:
    """Checks the key and the ledger before anything is written, and repeats erasures afterwards.

    given: the directory of the ledger; None for that of the settings
    without_ledger: whether erasures are not repeated; default: false
    """

    def __init__(
        self, storage: Settings, given: Path | None, *, without_ledger: bool = False
    ) -> None:
        self._storage = storage
        self._given = given
        self._without_ledger = without_ledger
        self._keys: MasterKeys | None = None
        self._plan = ReplayPlan()

    async def prepare(self, source: BackupSource) -> str | None:
        """Reads the key-encryption keys and the ledger, and finds what the backup contains of what
        was forgotten since. Changes nothing.

        Raises ConfigurationError if one of them is missing or does not belong to the backup.
        """
        if not await _has_content(source) and open_vault(self._storage) is None:
            return None
        self._keys = load_keys(self._storage, may_create=False)
        await check_key(source, self._keys)
        if not self._without_ledger:
            ledger, content = self._read_ledger(self._keys, source.ledger)
            self._plan = await plan_replay(source, content, ledger)
        return None

    async def complete(self, settings: Settings) -> None:
        """Repeats the erasures on the copied store, and begins new segments of its logs.

        settings: open the copied store
        """
        keys = self._keys or load_keys(self._storage, may_create=True)
        settings = replace(settings, erasure_deadline=_ERASE_WITHIN)
        ledger = None if self._plan.content is None else self._ledger_to_keep(keys)
        async with open_memory(settings, unfinished=True, keys=keys) as service:
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


async def _has_content(source: BackupSource) -> bool:
    """Returns whether a backup has entries or sealed data, and therefore a key."""
    if await holds_sealed(source):
        return True
    return any([await source.count(ENTRIES, one) for one in await source.tenants()])
