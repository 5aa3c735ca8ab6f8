"""A process that has imported memorywall and forks itself into the programs that tests start.

`python -m tests.support.fork_server DESCRIPTOR`, where the descriptor is one end of a socket. Each
message asks for one program: its arguments, directory and environment, with the descriptors of its
standard streams and of a pipe for its status. The reply is the identifier of its process.

The program's parent waits for it and writes its status to the pipe. It is a process between this
one and the program, so that this one never has to wait for anything but a message.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
import types
import warnings
from typing import Any

_IMPORTED = (
    "memorywall.cli",
    "memorywall.assembly",
    "memorywall.server.serve",
    "memorywall.server.uvicorn_transport",
    "memorywall.storage.sqlite.store",
)
_LARGEST_MESSAGE = 1 << 20
_STREAMS = 3


def main() -> None:
    """Serves messages until the tests end; returns in no process but a program's, when it ends."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    # What is imported is never freed, and looking at it would copy its pages in every program.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # An interrupt of the terminal is for the tests and the programs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, _LARGEST_MESSAGE, _STREAMS + 1)
        if not message:
            return
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = json.loads(message)
    program = os.fork()
    if program:
        channel.send(str(program).encode())
        _report_status(program, descriptors)
    channel.close()
    _become(request, descriptors)


def _report_status(program: int, descriptors: list[int]) -> None:
    """Waits for the program, tells how it ended, and ends."""
    *streams, pipe = descriptors
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    # What interrupts the program must not end its parent before it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, status = os.waitpid(program, 0)
    os.write(pipe, str(status).encode())
    os._exit(0)


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Runs the program as a new interpreter would."""
    for number, descriptor in enumerate(descriptors[:_STREAMS]):
        os.dup2(descriptor, number)
    os.closerange(_STREAMS, max(descriptors) + 1)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = _stream(0, unbuffered)
    sys.stdout = _stream(1, unbuffered)
    sys.stderr = _stream(2, unbuffered)
    how, what, *arguments = request["arguments"]
    if how == "-W":
        warnings.simplefilter(what)
        how, what, *arguments = arguments
    if how == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert how == "-c", "a program is a module or given as text"
        sys.argv = [how, *arguments]
        code = compile(what, "<string>", "exec", dont_inherit=True)
        main_module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(code, main_module.__dict__)


def _stream(number: int, unbuffered: bool) -> io.TextIOWrapper:
    return open(
        number,
        "w" if number else "r",
        buffering=1 if number == 2 or unbuffered else -1,
        encoding="utf-8",
        errors="backslashreplace" if number == 2 else "strict",
        closefd=False,
    )


if __name__ == "__main__":
    main()
