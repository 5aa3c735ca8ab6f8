"""A PostgreSQL server that a test starts, stops, kills and starts again."""

from __future__ import annotations

import atexit
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal
from urllib.parse import quote

from tests.support import postgres_keeper
from tests.support.postgres_databases import DatabaseServer
from tests.support.postgres_programs import SUPERUSER, PostgresError, workspace

START_LIMIT = 60.0
STOP_LIMIT = 60.0
WAIT_LIMIT = 30.0

_STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_ATTEMPTS_TO_BIND = 5
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # Files in the data directory: they go with it, and /dev/shm is small in many containers.
    "dynamic_shared_memory_type": "mmap",
    "log_line_prefix": "%m [%p] %d %a ",
}
# The log of changes may lie in memory, so it is kept short.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"}


def wait_until(condition: Callable[[], bool], what: str, seconds: float = WAIT_LIMIT) -> None:
    """Waits for a condition; an error names it when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise PostgresError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.005)


class PostgresServer(DatabaseServer):
    """A server on a free loopback port, started at once. A context manager that removes it.

    It keeps its port and its data over `stop`, `kill` and `start`. `durable` makes it survive a
    crash of the machine, which only costs time unless that is what is measured; without it the
    files are in memory if there is enough. With `password`
    connections over TCP need one, as in production, and `url` has the superuser's; otherwise
    nobody is asked. `settings` are PostgreSQL's own and come before those chosen here.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        password: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._workspace = workspace()
        self._password = password
        self._settings = {**_SETTINGS, **({} if durable else _NOT_DURABLE), **(settings or {})}
        self.directory = self._workspace.make_directory(durable=durable)
        self.data = self.directory / "data"
        self.data.mkdir(mode=0o700)
        self._workspace.give(self.data)
        self._log = self.directory / "log"
        self._keeper: subprocess.Popen[str] | None = None
        self._process = 0
        self._use_port(_free_port())
        atexit.register(self._close_at_exit)
        try:
            self._fill()
            self._write_authentication()
            self._start_on_a_free_port()
        except BaseException:
            self.close()
            raise

    def _use_port(self, port: int) -> None:
        self.port = port
        secret = f":{self._workspace.password}" if self._password else ""
        super().__init__(f"postgresql://{SUPERUSER}{secret}@127.0.0.1:{port}/postgres")

    def _fill(self) -> None:
        """Puts the first contents into the data directory."""
        self._workspace.copy_data(self.data)

    def _write_authentication(self) -> None:
        method = "scram-sha-256" if self._password else "trust"
        # The socket lies in a directory that only the owner may enter.
        lines = [
            "local all all trust",
            "local replication all trust",
            f"host all all 127.0.0.1/32 {method}",
            f"host replication all 127.0.0.1/32 {method}",
        ]
        (self.data / "pg_hba.conf").write_text("\n".join(lines) + "\n")

    def url(
        self,
        database: str = "postgres",
        *,
        user: str | None = None,
        password: str | None = None,
        via: Literal["tcp", "socket"] = "tcp",
    ) -> str:
        """The URL of a database, for the superuser or for another role."""
        if via == "tcp":
            return super().url(database, user=user, password=password)
        account = quote(user or SUPERUSER, safe="")
        if password is not None:
            account += f":{quote(password, safe='')}"
        place = quote(str(self.directory), safe="")
        return f"postgresql://{account}@/{quote(database, safe='')}?host={place}&port={self.port}"

    def administration_url(self, database: str) -> str:
        """Over the socket, which asks for no password and takes half the time."""
        return self.url(database, via="socket")

    # Starting and stopping

    def _start_on_a_free_port(self) -> None:
        for attempt in range(1, _ATTEMPTS_TO_BIND + 1):
            try:
                self.start()
                return
            except PostgresError as error:
                if attempt == _ATTEMPTS_TO_BIND or "Address already in use" not in str(error):
                    raise
                self._use_port(_free_port())
                self._log.unlink()

    def start(self) -> None:
        """Starts it, again after it was stopped, and returns when it takes connections."""
        assert not self.is_running(), "it runs"
        user, group = self._workspace.account or (-1, -1)
        settings = {
            **self._settings,
            "port": str(self.port),
            "unix_socket_directories": f'"{self.directory}"',
        }
        with self._log.open("ab") as log:
            self._keeper = subprocess.Popen(
                [
                    sys.executable, "-I", "-S", postgres_keeper.__file__,
                    str(os.getpid()), str(user), str(group),
                    self._workspace.disk, self._workspace.memory,
                    self._workspace.programs / "postgres", "-D", self.data,
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=self._workspace.disk,
                env=self._workspace.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # An interrupt from the keyboard is for the tests, which then stop the server.
                start_new_session=True,
            )  # fmt: skip
        assert self._keeper.stdout is not None
        with self._keeper.stdout as printed:
            self._process = int(printed.readline() or 0)
        try:
            wait_until(self._is_ready, "the server takes connections", START_LIMIT)
        except PostgresError as error:
            self.kill()
            raise PostgresError(f"PostgreSQL did not start: {error}\n{self.log()}") from None

    def _is_ready(self) -> bool:
        if not self.is_running():
            raise PostgresError("it ended")
        try:
            state = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        # The file of a server that was killed stays until the next one writes its own.
        if len(state) < 8 or state[0] != str(self._process):
            return False
        return state[7].strip() in {"ready", "standby"}

    def is_running(self) -> bool:
        """Whether any process of the server is left."""
        return self._keeper is not None and self._keeper.poll() is None

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stops it and returns when all its processes are gone.

        "fast" ends the connections and writes everything out; "immediate" leaves it to the next
        start to recover, as after a crash of the server.
        """
        if self.is_running():
            os.kill(self._process, _STOP_SIGNALS[mode])
            self._wait_until_gone()

    def kill(self) -> None:
        """SIGKILL to all its processes at once: no chance to say anything to anybody."""
        if self.is_running() and self._process:
            # Stopped, it neither starts nor buries a child, so the numbers stay those of its own.
            os.kill(self._process, signal.SIGSTOP)
            for child in _children(self._process):
                os.kill(child, signal.SIGKILL)
            os.kill(self._process, signal.SIGKILL)
        self._wait_until_gone()
        self._remove_shared_memory()

    def _wait_until_gone(self) -> None:
        if self._keeper is not None:
            try:
                self._keeper.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                raise PostgresError(f"PostgreSQL does not stop:\n{self.log()}") from None

    def _remove_shared_memory(self) -> None:
        """Frees the segment that the server frees itself when it is not killed."""
        try:
            state = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return
        if len(state) > 6 and len(numbers := state[6].split()) == 2:
            ctypes.CDLL(None).shmctl(int(numbers[1]), 0, None)

    def log(self) -> str:
        """The end of what the server wrote."""
        return self._log.read_text(errors="replace")[-8000:] if self._log.exists() else ""

    def close(self) -> None:
        """Stops it for good and removes its files."""
        self.stop("immediate")
        self._workspace.remove_directory(self.directory)
        atexit.unregister(self._close_at_exit)

    def _close_at_exit(self) -> None:
        # A fork of this process has another number, and the server is not its own.
        if self._workspace.owner == os.getpid():
            self.close()

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Replica(PostgresServer):
    """A copy of a running server that follows it, under a name in `pg_stat_replication`."""

    def __init__(
        self,
        primary: PostgresServer,
        *,
        name: str = "replica",
        durable: bool = False,
        password: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.primary = primary
        self.name = name
        super().__init__(durable=durable, password=password, settings=settings)

    def _fill(self) -> None:
        place = str(self.primary.directory).replace("\\", "\\\\").replace("'", "\\'")
        source = (
            f"host='{place}' port={self.primary.port} user={SUPERUSER} application_name={self.name}"
        )
        self._workspace.run(
            "pg_basebackup", "--dbname", source, "--pgdata", self.data, "--write-recovery-conf",
            "--create-slot", "--slot", self.name, "--wal-method", "stream",
            "--checkpoint", "fast", "--no-sync",
        )  # fmt: skip
        # The copy would wait for its own replicas, which it does not have, after a promotion.
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("synchronous_standby_names = ''\n")

    def make_synchronous(self) -> None:
        """From now on a commit of the primary is acknowledged when it is written here as well."""
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '\"{self.name}\"'")
        self.primary.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self._state() == "sync", f"{self.name} is synchronous")

    def _state(self) -> str | None:
        rows = self.primary.rows(
            "SELECT sync_state FROM pg_stat_replication"
            " WHERE application_name = $1 AND state = 'streaming'",
            self.name,
        )
        return rows[0][0] if rows else None

    def wait_until_caught_up(self) -> None:
        """Waits until everything the primary has committed so far can be read here."""
        written = self.primary.value("SELECT pg_current_wal_lsn()::text")
        reached = "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)"
        wait_until(
            lambda: bool(self.value(reached, written)), f"{self.name} has replayed {written}"
        )

    def promote(self) -> None:
        """Makes it a primary of its own; returns when it takes writes."""
        self.execute(f"SELECT pg_promote(true, {WAIT_LIMIT:.0f})")
        wait_until(lambda: not self.value("SELECT pg_is_in_recovery()"), f"{self.name} is promoted")

    def __enter__(self) -> Replica:
        return self


def _children(process: int) -> list[int]:
    """The processes that this one started and that have not ended."""
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # The name before the last parenthesis may hold anything; the parent is second after.
            if int(status.rpartition(")")[2].split()[1]) == process:
                children.append(int(entry.name))
    return children


def _free_port() -> int:
    """A port nobody listens on, outside those the system gives to connections by itself.

    A server that is stopped would lose one of those to any connection made meanwhile.
    """
    for _ in range(1000):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise PostgresError("no free port")
