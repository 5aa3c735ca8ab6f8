"""The authority of a workflow's coordinator over its intent, for as long as it runs."""

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
def in_office(client: Client, intent_id: str, guardrails: Mapping[str, Any]) -> Iterator[None]:
    """Coordinates an intent. When the process dies, that is over soon; the guardrails stay."""
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
        # Whoever made the intent administers it without this as well; it may be over already.
        with suppress(MemorywallError):
            client.coordinators.resign(office.id)


def _beat(client: Client, office_id: str, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT_SECONDS):
        try:
            client.coordinators.heartbeat(office_id)
        except (FencedError, MemoryNotFoundError):
            return
        except MemorywallError:
            # There is time for two more before the authority is over.
            continue
        except RuntimeError:
            # The client was closed: the program is at its end.
            return
