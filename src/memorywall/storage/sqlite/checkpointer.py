"""Moves committed pages from the write-ahead log into the database, outside the writer's path.

A log that is written continuously is never truncated by SQLite itself. When the log has grown
large, or when removed data must leave it, this class truncates the log between two writes. Earlier
checkpoints have moved all but the last pages by then, so the pause is short.

Removed data must leave the database as well. `secure_delete` overwrites it in place. This class
overwrites the copies that `secure_delete` does not reach, in the pages that were moved since the
last time: most of them while writes continue, the last ones in the pause. Then the log is
truncated, which also makes every connection discard its cached pages, so that no old page is
written back.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from memorywall.storage.sqlite.connection import connect
from memorywall.storage.sqlite.scrub import DirtyPages, Scrubber
from memorywall.storage.sqlite.wal_pages import WalLostError, WalPages
from memorywall.storage.sqlite.writer import Writer

_INTERVAL = 0.2
_LARGEST_LOG = 64 * 1024 * 1024
_BUSY_TIMEOUT_MILLISECONDS = 20
"""Truncation waits for readers; a later attempt is better than waiting writers."""
_SCRUB_BESIDE_WRITES = 0.5
_SCRUB_IN_A_PAUSE = 0.01
_SCRUB_AT_THE_END = 0.1
_REST = 0.001
"""The pause after each millisecond of work, in which other threads can run."""
_REMOVED_ELSEWHERE = "SELECT coalesce(sum(value), 0) FROM counters WHERE name = 'removals'"
"""A process that removes data while a server runs increments this counter; see
`SqliteEntryRepository.note_removal`."""
_LONGEST_DELAY_OF_READS = 2.0
"""Seconds. A reader of another process may block an erasure for longer."""
_ROUNDS = 4
"""The most rounds before the pause; each round leaves less work for it."""


class Checkpointer:
    """Runs in its own thread, beside `writer`."""

    def __init__(self, database: Path, writer: Writer, erasure_deadline: float) -> None:
        self._connection = connect(database)
        self._connection.set_busy_timeout(_BUSY_TIMEOUT_MILLISECONDS)
        self._reader = connect(database, read_only=True)
        self._reader.set_busy_timeout(_BUSY_TIMEOUT_MILLISECONDS)
        self._log = database.with_name(database.name + "-wal")
        self._pages = WalPages(self._log)
        self._dirty_pages = DirtyPages()
        self._scrubber = Scrubber(database)
        self._guard = threading.Lock()
        self._writer = writer
        self._erasure_deadline = erasure_deadline
        # An earlier process may have left removed data in the files, so one full run is always due.
        # It starts at once, because it takes a while in a large file.
        self._erased = self._erased_own = -1
        self._elsewhere = 0
        self._due: float | None = time.monotonic()
        self._readable = threading.Event()
        self._readable.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="memorywall-checkpointer", daemon=True
        )
        self._thread.start()

    @property
    def is_erasure_complete(self) -> bool:
        """Returns whether the files contain no removed data, neither from this process nor from a
        command."""
        return self._erased == self._writer.removals + self._elsewhere

    def has_erased(self, removals: int) -> bool:
        """Returns whether the files contain nothing of so many removals of this process."""
        return self._erased_own >= removals

    def let_read(self) -> None:
        """Returns when a long snapshot may begin: while an erasure is due, such snapshots one after
        another would prevent it. Waits for at most one round of the erasure."""
        self._readable.wait(_LONGEST_DELAY_OF_READS)

    def close(self) -> None:
        """Ends the thread, erases removed data and truncates the log a last time. The writer is
        closed before.

        A large file that was opened recently is not scanned completely; the next process that opens
        it does that.
        """
        self._stop.set()
        self._readable.set()
        self._thread.join()
        with self._guard:
            self._move("FULL", _SCRUB_AT_THE_END)
            self._cut(math.inf, sweep=self._erased >= 0, anyhow=True)
            self._reader.close()
            with suppress(apsw.Error):
                self._scrubber.close()
            self._connection.close()

    def _run(self) -> None:
        while not self._stop.wait(_INTERVAL):
            if self.is_erasure_complete:
                self._due = None
            elif self._due is None:
                self._due = time.monotonic() + self._erasure_deadline / 2
            if self._due is not None and time.monotonic() >= self._due:
                self._readable.clear()
                self._erase()
            else:
                self._readable.set()
                with self._guard:
                    self._move("PASSIVE")
            if self._log_is_large():
                self._in_a_pause(lambda: self._cut(anyhow=True))

    def _erase(self) -> None:
        for _ in range(_ROUNDS):
            # Twice, so that little work is left for the pause.
            for _ in range(2):
                with self._guard:
                    all_moved = self._move("PASSIVE", _SCRUB_BESIDE_WRITES, rest=_rest)
            if not all_moved or self._dirty_pages or self._stop.is_set():
                return
            self._in_a_pause(lambda: self._cut(_SCRUB_IN_A_PAUSE))
            if not self._dirty_pages:
                # The work is done, or a reader blocks it.
                return

    def _in_a_pause(self, work: Callable[[], object]) -> None:
        done = threading.Event()

        def guarded() -> None:
            try:
                with self._guard:
                    work()
            finally:
                done.set()

        self._writer.between_writes(guarded)
        while not done.wait(_INTERVAL) and not self._stop.is_set():
            pass

    def _cut(self, seconds: float = 0, *, sweep: bool = True, anyhow: bool = False) -> None:
        """Overwrites residual data for this number of seconds and, if that was all, truncates the
        log.

        anyhow: truncate the log even if residual data is left
        """
        removals = self._writer.removals
        if not self._move("FULL", seconds, sweep=sweep) or (self._dirty_pages and not anyhow):
            return
        elsewhere = self._elsewhere
        with suppress(apsw.Error), self._reading():
            # The whole log has been moved, so this reader needs none of it. It only blocks further
            # checkpoints: the writes of another process after this point would be missed.
            if elsewhere == self._elsewhere and self._checkpoint("TRUNCATE")[0] == 0:
                self._pages.emptied()
                if not self._dirty_pages:
                    self._erased, self._erased_own = removals + elsewhere, removals
                    self._due = None

    def _move(
        self,
        mode: str,
        seconds: float = 0,
        *,
        sweep: bool = True,
        rest: Callable[[], object] = lambda: None,
    ) -> bool:
        """Makes a checkpoint and overwrites residual data for this number of seconds.

        Returns whether the whole log was moved. Data is overwritten only then: the open reader
        prevents every other checkpoint, so nothing else writes to the file.
        """
        try:
            with self._reading():
                self._pages.read_header()
                busy, frames, moved = self._checkpoint(mode)
                self._mark_dirty(moved)
                if busy or frames != moved:
                    return False
                if seconds:
                    self._scrubber.scrub(self._dirty_pages, seconds, sweep=sweep, rest=rest)
                return True
        except (WalLostError, OSError):
            self._dirty_pages.add_all()
        except apsw.Error:
            # A full disk or a busy reader; the log keeps everything until the next round.
            pass
        return False

    def _mark_dirty(self, moved: int) -> None:
        """Records the moved pages, unless a scan of the whole file is less work."""
        was_clean = self._erased >= 0
        if was_clean and self._dirty_pages.are_all:
            self._pages.pass_over(moved)
            return
        self._dirty_pages.add(self._pages.moved_until(moved))
        if was_clean and self._dirty_pages.added > self._scrubber.measure()[1] / 2:
            self._dirty_pages.add_all()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Holds a read transaction. The transaction begins with a read of other processes'
        removals."""
        try:
            self._reader.execute("BEGIN")
            self._elsewhere = self._reader.execute(_REMOVED_ELSEWHERE).get
            yield
        finally:
            if self._reader.in_transaction:
                self._reader.execute("COMMIT")

    def _checkpoint(self, mode: str) -> tuple[int, int, int]:
        """Returns whether the checkpoint was blocked, the frames in the log, and the moved
        frames."""
        busy, frames, moved = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").get
        return busy, frames, moved

    def _log_is_large(self) -> bool:
        try:
            return self._log.stat().st_size > _LARGEST_LOG
        except FileNotFoundError:
            return False


def _rest() -> None:
    time.sleep(_REST)
