"""Moves committed pages from the write-ahead log into the database, off the writer's path.

A log that is always being written to is never cut by itself. So when it has grown large, or when
something has been removed and has to leave it, the log is cut to nothing in a pause between two
writes: all but the last moments' pages have been moved by then, so the pause is short. After a
removal that happens at the latest `erase_within` seconds later; `secure_delete` has overwritten
what was removed in the database's own pages by then.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import apsw

from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.writer import Writer

_INTERVAL = 0.2
_LARGEST_LOG = 64 * 1024 * 1024


class Checkpointer:
    """Works in a thread of its own, beside `writer`."""

    def __init__(self, database: Path, writer: Writer, erase_within: float) -> None:
        self._connection = connect(database)
        # Cutting the log waits for readers; better to come again than to make writers wait.
        self._connection.set_busy_timeout(20)
        self._guard = threading.Lock()
        self._log = database.with_name(database.name + "-wal")
        self._writer = writer
        self._erase_within = erase_within
        # What an earlier process removed may still be in the log, so it is cut once in any case.
        self._erased = -1
        self._due: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="memorywall-checkpointer", daemon=True
        )
        self._thread.start()

    @property
    def erased(self) -> bool:
        """Whether nothing that was removed is left in the log."""
        return self._erased == self._writer.removals

    def close(self) -> None:
        """Ends the thread and cuts the log a last time. The writer is closed before."""
        self._stop.set()
        self._thread.join()
        self._truncate()
        self._connection.close()

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL):
            self._checkpoint("PASSIVE")
            if self.erased:
                self._due = None
            elif self._due is None:
                self._due = time.monotonic() + self._erase_within / 2
            if (self._due is not None and time.monotonic() >= self._due) or self._log_is_large():
                # Once more, so that little is left to do in the pause.
                self._checkpoint("PASSIVE")
                self._truncate_between_writes()

    def _truncate_between_writes(self) -> None:
        done = threading.Event()

        def work() -> None:
            self._truncate()
            done.set()

        self._writer.between_writes(work)
        while not done.wait(_INTERVAL) and not self._stop.is_set():
            pass

    def _truncate(self) -> None:
        removals = self._writer.removals
        if self._checkpoint("TRUNCATE"):
            self._erased = removals
            self._due = None

    def _checkpoint(self, mode: str) -> bool:
        """Whether the checkpoint ran to its end."""
        with self._guard:
            try:
                row = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            except apsw.Error:
                # A full disk or a busy reader; the log keeps everything until the next round.
                return False
        return row is not None and row[0] == 0

    def _log_is_large(self) -> bool:
        try:
            return self._log.stat().st_size > _LARGEST_LOG
        except FileNotFoundError:
            return False
