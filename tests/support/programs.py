"""Python programs as processes of their own, forked from one that has imported memorywall.

A new interpreter spends half a second of a core on imports, and the tests start hundreds of them.
A forked program is a process like any other: it has its own memory, takes signals, is killed. What
is about the start of an interpreter itself starts one. `make chaos` does so for all of them, and so
do measurements of coverage, which begin with the interpreter.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import fork_server
from tests.support.extent import CHAOS

_REPOSITORY = Path(__file__).parents[2]


def start_program(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Starts `memorywall` with these arguments; see `start_python` for the options."""
    return start_python("-m", "memorywall", *arguments, **options)


def start_python(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Starts `python` with these arguments: perhaps `-W` and an action, then `-m` and a module or
    `-c` and a program, then those of the program.

    The options are those of `subprocess.Popen`, of which the standard streams, `cwd` and `env` are
    supported. Streams are text."""
    kind = subprocess.Popen[str] if _needs_an_interpreter() else _ForkedProgram
    return kind([sys.executable, *arguments], text=True, **options)


def run_python(
    *arguments: str, input: str | None = None, check: bool = True, limit: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs `python` as `start_python` does until it ends.

    input: the text on standard input; None for an empty one
    check: raise CalledProcessError for an exit code other than 0
    limit: the seconds after which it counts as hanging and is killed
    """
    streams = {
        "stdin": subprocess.DEVNULL if input is None else subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    with start_python(*arguments, **{**streams, **options}) as program:
        try:
            output, errors = program.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    ended = subprocess.CompletedProcess(arguments, program.returncode, output, errors)
    if check:
        ended.check_returncode()
    return ended


def _needs_an_interpreter() -> bool:
    return CHAOS or any(name.startswith("COVERAGE_") for name in os.environ)


class _ForkServer:
    """The process that forks, and the socket to it."""

    def __init__(self) -> None:
        self._channel, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with given:
            command = [sys.executable, "-m", fork_server.__name__, str(given.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[given.fileno()], cwd=_REPOSITORY)

    def start(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Has a program started; returns the identifier of its process."""
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(request).encode()], descriptors)
            reply = self._channel.recv(100)
        assert reply, "the process that forks has ended"
        return int(reply)


@cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


class _ForkedProgram(subprocess.Popen[str]):
    """A process that the fork server started, whose parent reports its status through a pipe.

    These three methods are all of `Popen` that depends on how a process is started.
    """

    _status: int | None = None
    _waitpid_lock: threading.Lock
    _close_pipe_fds: Callable[..., None]

    def _execute_child(self, args: list[str], *options: Any) -> None:
        *_, cwd, env, _startup, _flags, _shell = options[:9]
        pipes: tuple[int, ...] = options[9:15]
        # Both ends of each stream's pipe, where -1 means that the program has the tests' own.
        given = [pipes[0], pipes[3], pipes[5]]
        streams = [number if end == -1 else end for number, end in enumerate(given)]
        self._status, written = os.pipe()
        request = {
            "arguments": args[1:],
            "directory": os.fspath(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
        }
        try:
            self.pid = _fork_server().start(request, [*streams, written])
        finally:
            os.close(written)
            self._close_pipe_fds(*pipes)
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """The identifier and status of the process; 0 and 0 while it runs and nobody waits."""
        assert self._status is not None
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        status = int(os.read(self._status, 100))
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, _deadstate: object = None, **_: object) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    process, status = self._try_wait(os.WNOHANG)
                    if process:
                        self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode
