"""The work of `memorywall restore` besides the copy."""

from __future__ import annotations

import base64
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memorywall.assembly import open_memory, open_vault
from memorywall.jobs.copy import check_key, holds_sealed
from memorywall.jobs.replay_ledger import ReplayPlan, plan_replay, replay
from memorywall.records.damage_errors import LedgerDamagedError
from memorywall.records.errors import ConfigurationError
from memorywall.records.suppression import LedgerKey, LedgerPosition, SuppressionKind
from memorywall.service.erasure import wait_until_erased
from memorywall.service.key_file import load_key
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
        self._key: bytes | None = None
        self._plan = ReplayPlan()

    async def prepare(self, source: BackupSource) -> str | None:
        """Reads the key-encryption key and the ledger, and finds what the backup contains of what
        was forgotten since. Changes nothing.

        Raises ConfigurationError if one of them is missing or does not belong to the backup.
        """
        if not await _has_content(source) and open_vault(self._storage) is None:
            return None
        self._key = load_key(self._storage, may_create=False)
        await check_key(source, self._key)
        if not self._without_ledger:
            content = self._read_ledger(self._key, source.ledger)
            self._plan = await plan_replay(source, content, LedgerKey.derive(self._key))
        return None

    async def complete(self, settings: Settings) -> None:
        """Repeats the erasures on the copied store, and begins new segments of its logs.

        settings: open the copied store
        """
        key = self._key or load_key(self._storage, may_create=True)
        settings = replace(
            settings,
            encryption_key=base64.b64encode(key).decode(),
            erasure_deadline=_ERASE_WITHIN,
        )
        ledger = None if self._plan.content is None else self._ledger_to_keep(key)
        async with open_memory(settings, unfinished=True) as service:
            await replay(service, self._plan, ledger)
            await wait_until_erased(service, _PATIENCE)
        if ledger is not None and self._given is not None:
            # A server of the restored store may use either; the given one may be read-only.
            with suppress(OSError):
                _ledger_in(self._given, key).adopt(ledger)

    @property
    def forgotten(self) -> dict[str, int]:
        """The numbers of names whose erasure was repeated."""
        return {
            "agents": self._plan.count(SuppressionKind.AGENT),
            "subjects": self._plan.count(SuppressionKind.SUBJECT),
            "entries": self._plan.count(SuppressionKind.ENTRIES),
        }

    def _read_ledger(self, key: bytes, expected: LedgerPosition | None) -> LedgerContent:
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
        content = _ledger_in(directory, key).read()
        if expected is not None and not content.is_at(expected):
            raise LedgerDamagedError(
                f"the suppression ledger in {directory} is not the one of the backed-up store, or"
                f" an older copy; give --ledger with the present one, {_WITHOUT}"
            )
        if own is None or not ledger_exists(own):
            return content
        return _ledger_in(own, key).read().merge(content, own, directory)

    def _ledger_to_keep(self, key: bytes) -> SuppressionLedger | None:
        """The ledger of the restored store, which contains all lines of the ledger that was
        read."""
        own = self._storage.ledger_directory or self._given
        if own is None:
            return None
        ledger = _ledger_in(own, key)
        if self._given is not None:
            ledger.adopt(_ledger_in(self._given, key))
        return ledger


def _ledger_in(directory: Path, key: bytes) -> SuppressionLedger:
    return SuppressionLedger(directory, LedgerKey.derive(key))


async def _has_content(source: BackupSource) -> bool:
    """Returns whether a backup has entries or sealed data, and therefore a key."""
    if await holds_sealed(source):
        return True
    return any([await source.count(ENTRIES, one) for one in await source.tenants()])
