"""The command line with a server whose requests hold the event loop, for `test_serve.py`."""

from __future__ import annotations

import time
from typing import Any

from memorywall.cli.main import main
from memorywall.server.routing import Router

_HELD = 0.06
"""Seconds of processor time."""


def hold_the_loop() -> None:
    """Makes every request use much processor time in one callback."""
    answer = Router.__call__

    async def held(router: Router, *arguments: Any) -> None:
        until = time.thread_time() + _HELD
        while time.thread_time() < until:
            sum(range(1_000))
        await answer(router, *arguments)

    Router.__call__ = held  # type: ignore[method-assign]


if __name__ == "__main__":
    hold_the_loop()
    main()
