"""The errors of files that are not as they were written; see the tree in `errors.py`."""

from __future__ import annotations

from memorywall.records.errors import ConfigurationError


class StoreDamagedError(ConfigurationError):
    """Rows of a database cannot be read, or are not rows that memorywall writes."""

    code = "STORE_DAMAGED"
    title = "The database is damaged"


class BackupDamagedError(ConfigurationError):
    """The checksums of a backup show that bytes are changed, missing or added."""

    code = "BACKUP_DAMAGED"
    title = "The backup is damaged"


class LedgerDamagedError(ConfigurationError):
    """Lines of a suppression ledger are changed or missing, or it belongs to another store."""

    code = "LEDGER_DAMAGED"
    title = "The suppression ledger is damaged"
