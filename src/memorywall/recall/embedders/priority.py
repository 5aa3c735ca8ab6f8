"""Thread priority of background work."""

from __future__ import annotations

import os
import sys
import threading

_NICE = 19


def lower_thread_priority() -> bool:
    """Lowers the priority of the calling thread. Returns whether it succeeded.

    Only Linux has priorities per thread; elsewhere nothing happens. A thread cannot raise its
    priority again, so only threads for background work may call this function.
    """
    if sys.platform != "linux":
        return False
    thread = threading.get_native_id()
    try:
        if os.getpriority(os.PRIO_PROCESS, thread) < _NICE:
            os.setpriority(os.PRIO_PROCESS, thread, _NICE)
    except OSError:
        return False
    return True
