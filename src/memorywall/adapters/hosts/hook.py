"""The hook of a host: what `memorywall hook` does with one event.

A hook never fails its host: what goes wrong is a line in the log of the connection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorywall.adapters.hosts.connection import HostConnection
from memorywall.adapters.hosts.hook_event import HookEvent, read_hook_event
from memorywall.adapters.hosts.hook_socket import RelayRequest, ask_relay
from memorywall.adapters.hosts.host_formats import HostFormat, host_formats
from memorywall.adapters.hosts.spool import Spool
from memorywall.records.clock import Clock, format_instant
from memorywall.records.errors import MemorywallError

if TYPE_CHECKING:
    from memorywall.adapters.hosts.host_memory import DrainCounts

_PATIENCE = 3
"""The seconds that a host waits for memory at most."""
_LONGEST_LOG = 256 * 2**10


def run_hook(
    connection: HostConnection, given: Mapping[str, Any], clock: Clock
) -> dict[str, Any] | None:
    """Keeps what was said, and returns what the hook of a prompt prints; None for nothing.

    given: what the host wrote to the hook
    """
    host = host_formats()[connection.host]
    tell = log_of(connection, clock)
    event = read_hook_event(host, given, format_instant(clock.now()))
    if event is None or _is_excluded(connection, given.get(host.fields.folders)):
        return None
    try:
        if event.turn is not None:
            Spool(connection.folder).append([event.turn])
        text = _use_memory(connection, event, tell)
    except Exception as error:
        tell(_reason_of(error))
        return None
    return None if text is None else _output(host, text)


def _is_excluded(connection: HostConnection, folders: Any) -> bool:
    """Returns whether a host works in an excluded folder.

    folders: one path, or several
    """
    named = folders if isinstance(folders, list) else [folders]
    paths = [Path(one) for one in named if isinstance(one, str)]
    return any(path.is_relative_to(one) for path in paths for one in connection.exclude)


def drain_spool(connection: HostConnection, clock: Clock) -> DrainCounts:
    """Stores what waits in the spool of a connection. Raises the errors of the SDK."""
    from memorywall.adapters.hosts.direct_memory import drain_directly

    return drain_directly(connection, log_of(connection, clock))


def log_of(connection: HostConnection, clock: Clock) -> Callable[[str], None]:
    """Returns a function that adds a sentence to the log of a connection, the file `hooks.log`. A
    log of 256 KiB begins anew."""
    path = connection.folder / "hooks.log"

    def tell(sentence: str) -> None:
        # A full disk must not end the turn of a host either.
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > _LONGEST_LOG:
                path.replace(path.with_suffix(".log.1"))
            with open(path, "a", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(f"{format_instant(clock.now())} {sentence}\n")

    return tell


def _use_memory(
    connection: HostConnection, event: HookEvent, tell: Callable[[str], None]
) -> str | None:
    """Returns the text for the model; after a reply it empties the spool."""
    if event.turn is None:
        return None
    answer = ask_relay(connection.folder, RelayRequest(event.session, event.prompt))
    if answer is not None:
        if answer.error is not None:
            tell(answer.error)
        return answer.text
    # The modules of a client take longer to import than all of the above.
    from memorywall.adapters.hosts.direct_memory import drain_directly, recall_directly

    if event.prompt is None:
        drain_directly(connection, tell, _PATIENCE)
        return None
    return recall_directly(connection, event.prompt, event.session, tell, _PATIENCE)


def _output(host: HostFormat, text: str) -> dict[str, Any]:
    """Returns what the hook of a prompt prints for the host to give to the model."""

    def with_text(value: Any, names: tuple[str, ...]) -> Any:
        if not names:
            return text
        return {**(value or {}), names[0]: with_text((value or {}).get(names[0]), names[1:])}

    output: dict[str, Any] = with_text(host.output.constant, host.output.context)
    return output


def _reason_of(error: Exception) -> str:
    """Returns the reason of an error without any content."""
    if isinstance(error, MemorywallError):
        return error.detail
    if isinstance(error, TimeoutError):
        return f"memory did not answer within {_PATIENCE} seconds"
    return f"{type(error).__name__}: {getattr(error, 'strerror', None) or 'a fault of this hook'}"
