"""What the logic of the SDK asks a driver to do. Nothing here, or in the logic, does I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """Send this and give me the whole reply."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    media: str = "application/json"

    @property
    def target(self) -> str:
        """Path and query, encoded."""
        query = urlencode(self.params, quote_via=quote)
        return f"{self.path}?{query}" if query else self.path


@dataclass(frozen=True, slots=True)
class Response:
    """A reply; of an opened stream only a refusal has a body."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """Send this and give me the reply's head; the body follows piece by piece.

    silence: seconds without a single byte after which the connection counts as lost
    """

    request: Request
    silence: float


@dataclass(frozen=True, slots=True)
class Read:
    """Give me the next piece of the opened stream, or None at its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Let this many seconds pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Now:
    """Tell me the time, in seconds that never go back. Only differences of it mean anything."""


@dataclass(frozen=True, slots=True)
class Emit(Generic[Item]):
    """Hand this to whoever iterates."""

    item: Item


# A driver throws MemoryTransportError into a script where a request or a stream is lost.
Script: TypeAlias = Generator[Request | Pause | Now, Any, Result]
StreamScript: TypeAlias = Generator[Request | Open | Read | Pause | Now | Emit[Item], Any, None]


def part(name: str) -> str:
    """A name as one part of a path, whatever characters it has."""
    # URL libraries fold `.` and `..` away unless even the dots are encoded.
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")
