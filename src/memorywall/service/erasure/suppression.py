"""Records erasures in the suppression ledger, so that a restore of an older backup repeats them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from memorywall.records.errors import ConfigurationError, UnavailableError
from memorywall.records.event_chain import LogHead
from memorywall.records.suppression import SuppressionKind
from memorywall.service.requests.services import SharedServices


async def record_suppression(
    service: SharedServices,
    tenant: str,
    kind: SuppressionKind,
    names: Iterable[str],
    head: LogHead,
) -> bool:
    """Records names whose erasure is committed, and returns after the line is on disk. Returns
    False if the store has no ledger.

    head: the end of the tenant's log, read in the transaction that completed the erasure
    Raises UnavailableError if the ledger cannot be written.
    """
    ledger = service.ledger
    if ledger is None:
        return False

    def append() -> None:
        ledger.append([ledger.key.make_line(now, kind, tenant, names, head)])

    now = service.now()
    try:
        await asyncio.to_thread(append)
    except (OSError, ConfigurationError) as error:
        raise UnavailableError(
            "the data is erased, but the suppression ledger cannot be written, and a restore of an"
            " older backup would bring the data back; repair the ledger, then forget again"
        ) from error
    return True
