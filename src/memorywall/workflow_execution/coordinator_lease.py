"""The lease of a workflow's coordinator while the workflow runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from memorywall.records.errors import FencedError, MemoryNotFoundError, MemorywallError
from memorywall.sdk.client import Client

HEARTBEAT_SECONDS = 60
_LAST_BEAT_WITHIN = 5.0


@contextmanager
def coordinator_lease(
    client: Client, intent_id: str, guardrails: Mapping[str, Any]
) -> Iterator[None]:
    """Keeps the lease on the coordination of an intent. If the process dies, the lease expires
    soon; the guardrails remain."""
    office = client.coordinators.create(
        intent_id, guardrails=guardrails, heartbeat_interval_seconds=HEARTBEAT_SECONDS
    )
    over = threading.Event()
    beating = threading.Thread(
        target=_beat, args=(client, office.id, over), name="workflow-heartbeat", daemon=True
    )
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join(_LAST_BEAT_WITHIN)
        # The creator administers the intent also without the lease, which may have ended already.
        with suppress(MemorywallError):
            client.coordinators.resign(office.id)


def _beat(client: Client, coordinator_id: str, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT_SECONDS):
        try:
            client.coordinators.heartbeat(coordinator_id)
        except (FencedError, MemoryNotFoundError):
            return
        except MemorywallError:
            # Two more heartbeats are possible before the lease expires.
            continue
        except RuntimeError:
            # The client is closed: the program ends.
            return
