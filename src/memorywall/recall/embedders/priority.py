"""Background work that gives way to requests."""

from __future__ import annotations

import os
import sys
import threading

_NICE = 19


def lower_thread_priority() -> bool:
    """Makes the calling thread, and it alone, yield to the others; tells whether it could.

    Only Linux has a priority for each thread; elsewhere nothing happens. A thread cannot take its
    old priority back, so call it in a thread that does background work for all of its life.
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
