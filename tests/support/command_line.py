"""The `memorywall` command, run in the process of the tests.

The start of an interpreter and the imports of a command take 0.7 s of a core, the command itself
some hundredths. What only a process can show (a signal, a pipe that is closed, an encoding, what is
printed when an interpreter starts or ends) is tested with a process: `run_process`.

Standard input, output and error are replaced at the level of file descriptors, so a program that a
command starts inherits them.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import importlib
import io
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from memorywall.cli import main
from tests.support.programs import run_python

Printed = subprocess.CompletedProcess[str]

LIMIT = 120.0
"""Seconds after which a process counts as hanging."""
_LARGEST_INPUT = 1 << 20
"""Bytes that a pipe can be made to hold without anybody reading."""
_OWN_PROCESS = frozenset({"serve"})
"""Commands that change the process they run in: its logging and its event loop."""
_HANDLED = (signal.SIGINT, signal.SIGTERM)


def run_process(*arguments: str, check: bool = True, **options: Any) -> Printed:
    """Runs the command in a process of its own; the options are those of `run_python`."""
    return run_python("-m", "memorywall", *arguments, check=check, limit=LIMIT, **options)


def run_cli(
    *arguments: str,
    check: bool = True,
    input: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Printed:
    """Runs the command in this process where that is possible, else in one of its own.

    arguments: the command line without the program's name
    check: raise CalledProcessError for an exit code other than 0
    input: the text on standard input; None for an empty one
    cwd: the working directory; None for that of the tests
    env: the whole environment; None for that of the tests
    """
    content = (input or "").encode()
    if not _is_possible(arguments, content):
        return run_process(*arguments, check=check, input=input, cwd=cwd, env=env)
    with ExitStack() as stack:
        output, errors = stack.enter_context(_streams(content))
        stack.enter_context(_surroundings(arguments, cwd, env))
        code = contextvars.copy_context().run(_exit_code)
        sys.stdout.flush()
        sys.stderr.flush()
        printed = Printed(["memorywall", *arguments], code, _read(output), _read(errors))
    if check:
        printed.check_returncode()
    return printed


def _is_possible(arguments: tuple[str, ...], content: bytes) -> bool:
    if not arguments or arguments[0] in _OWN_PROCESS or len(content) > _LARGEST_INPUT:
        return False
    # Only the main thread may set signal handlers, and commands start an event loop of their own.
    return threading.current_thread() is threading.main_thread() and not _is_in_a_loop()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _exit_code() -> int:
    """The exit code of the interpreter."""
    try:
        main()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _streams(content: bytes) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Replaces the standard streams; yields the files that hold output and errors."""
    with ExitStack() as stack:
        output = stack.enter_context(_memory_file("output"))
        errors = stack.enter_context(_memory_file("errors"))
        stack.enter_context(_redirected(0, _pipe_with(content)))
        stack.enter_context(_redirected(1, os.dup(output.fileno())))
        stack.enter_context(_redirected(2, os.dup(errors.fileno())))
        stack.enter_context(patch.multiple(sys, stdin=_text(0), stdout=_text(1), stderr=_text(2)))
        yield output, errors


def _memory_file(name: str) -> IO[bytes]:
    return open(os.memfd_create(name), "w+b")


def _pipe_with(content: bytes) -> int:
    """The reading end of a pipe that holds this and nothing after it."""
    reading, writing = os.pipe()
    if len(content) > fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, len(content))
    with open(writing, "wb") as pipe:
        pipe.write(content)
    return reading


@contextmanager
def _redirected(descriptor: int, source: int) -> Iterator[None]:
    """Makes `descriptor` another name of `source`, which is closed."""
    before = os.dup(descriptor)
    try:
        os.dup2(source, descriptor)
        os.close(source)
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


def _text(descriptor: int) -> io.TextIOWrapper:
    """A standard stream as an interpreter makes it, of a descriptor that it does not close."""
    raw = io.FileIO(descriptor, "rb" if descriptor == 0 else "wb", closefd=False)
    errors = "backslashreplace" if descriptor == 2 else "strict"
    buffer = io.BufferedReader(raw) if descriptor == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=descriptor == 2)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@contextmanager
def _surroundings(
    arguments: tuple[str, ...], cwd: Path | None, env: Mapping[str, str] | None
) -> Iterator[None]:
    """The command line, the environment and the directory; the end undoes what a command changed.

    A module that a command imports from elsewhere than the installation is forgotten, because the
    next command may mean another one with the same name.
    """
    modules, handlers = set(sys.modules), {one: signal.getsignal(one) for one in _HANDLED}
    environment, directory = os.environ if env is None else env, Path.cwd()
    with (
        patch.object(sys, "argv", ["memorywall", *arguments]),
        patch.object(sys, "path", list(sys.path)),
        patch.dict(os.environ, environment, clear=True),
    ):
        os.chdir(directory if cwd is None else cwd)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            os.chdir(directory)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for name in [name for name in sys.modules if name not in modules]:
                if not _is_installed(sys.modules[name]):
                    del sys.modules[name]


def _is_installed(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    places = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
    return file is None or file.startswith(places)
