"""The processor time that callbacks of an event loop take."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LONGEST = 0.020
"""Seconds of processor time that a callback may take."""


class LoopTime:
    """The longest callback so far, in seconds of processor time of the loop's thread."""

    def __init__(self) -> None:
        self.longest = 0.0


@asynccontextmanager
async def loop_time() -> AsyncIterator[LoopTime]:
    """Measures the callbacks of the running loop within the context.

    The garbage collector does not run meanwhile: its time depends on all objects of the process,
    and not on what is measured.
    """
    measured, thread = LoopTime(), threading.get_ident()
    run = asyncio.Handle._run  # type: ignore[attr-defined]

    def run_measured(handle: asyncio.Handle) -> None:
        if threading.get_ident() != thread:
            run(handle)
            return
        begun = time.thread_time()
        run(handle)
        measured.longest = max(measured.longest, time.thread_time() - begun)

    gc.collect()
    gc.disable()
    asyncio.Handle._run = run_measured  # type: ignore[attr-defined]
    try:
        # The first callback begins after this one, and the last one ends before it goes on.
        await asyncio.sleep(0)
        yield measured
        await asyncio.sleep(0)
    finally:
        asyncio.Handle._run = run  # type: ignore[attr-defined]
        gc.enable()
