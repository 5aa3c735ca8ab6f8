"""What a forked process must not share with its parent: connections, files, held locks."""

from __future__ import annotations

import os
import sys
import threading
from weakref import WeakSet

FORK_LOCK = threading.RLock()
"""No process forks while a thread holds it, so that a child finds it free and what it guards whole.
It is held for short times only, and not while another lock is acquired."""


class ProcessBound:
    """Something that only the process that created it may use.

    A forked process keeps what it inherits until it ends: to collect it as garbage would close it,
    or change the event loop of the parent.

    is_inherited: whether this process is a fork of the one that created it
    """

    is_inherited = False

    def __init__(self) -> None:
        _bound.add(self)

    def let_go(self) -> None:
        """Is called in a forked process, for what it must give up at once."""


_bound: WeakSet[ProcessBound] = WeakSet()
_inherited: list[ProcessBound] = []


def _begin_child() -> None:
    FORK_LOCK.release()
    for one in tuple(_bound):
        one.is_inherited = True
        one.let_go()
        _inherited.append(one)
    _bound.clear()


if sys.platform != "win32":
    os.register_at_fork(
        before=FORK_LOCK.acquire, after_in_parent=FORK_LOCK.release, after_in_child=_begin_child
    )
