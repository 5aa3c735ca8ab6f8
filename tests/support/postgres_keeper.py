"""Runs one PostgreSQL server and never lets it outlive the process that wanted it.

This is a program, started by `postgres_process.py`, and it imports nothing of ours so that it
starts quickly. It writes the server's process id to its standard output and ends, with the
server's exit code, when the last process of the server has ended. If the process that started it
dies first, however it dies, the server is stopped and its files are removed. If the keeper itself
dies, the kernel signals the server.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_STOP_LIMIT_MS = 15_000


def main(owner: int, user: int, group: int, directories: list[str], command: list[str]) -> int:
    """`user` is -1 where the server runs as the user who runs this."""
    # A handle, not the number: numbers are given to other processes again.
    owner_handle = os.pidfd_open(owner)
    if os.getppid() != owner:
        return 1
    system = ctypes.CDLL(None, use_errno=True)
    keeper = os.getpid()

    def die_with_the_keeper() -> None:
        # After the change of user, which would clear it.
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != keeper:
            os._exit(1)

    # Every process of the server inherits the writing end and nobody writes to it: the reading
    # end reports the end of the file when the last of them is gone, not only the first.
    alive, inherited = os.pipe()
    other_user: dict[str, Any] = {}
    if user >= 0:
        other_user = {"user": user, "group": group, "extra_groups": []}
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        pass_fds=(inherited,),
        start_new_session=True,
        preexec_fn=die_with_the_keeper,
        **other_user,
    )
    os.close(inherited)
    print(server.pid, flush=True)
    poll = select.poll()
    poll.register(owner_handle, select.POLLIN)
    poll.register(alive, select.POLLIN)
    if alive not in dict(poll.poll()):
        poll.unregister(owner_handle)
        server.send_signal(signal.SIGQUIT)
        if not poll.poll(_STOP_LIMIT_MS):
            server.kill()
        server.wait()
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
    # Not before: until it is waited for, nobody else gets its number.
    return server.wait()


if __name__ == "__main__":
    owner, user, group = map(int, sys.argv[1:4])
    sys.exit(main(owner, user, group, sys.argv[4:6], sys.argv[6:]))
