"""Which fencing token a write carries: that of the claim it is made under, or of its client."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from memorywall.sdk.session import Session

HEADER = "Fencing-Token"


class Hold(Protocol):
    """A key of shared state that is claimed; see `memorywall.sdk.claims.Claim`."""

    @property
    def token(self) -> int: ...

    @property
    def is_given_back(self) -> bool: ...

    def covers(self, session: Session, namespace: str, key: str) -> bool:
        """Whether this is the claim that a client's writes to an entry are made under."""
        ...


# What holds for the thread or task that claimed it, and for the tasks it starts, holds for no
# other: two threads may share a client, but what one has claimed the other must not write.
_holds: ContextVar[tuple[Hold, ...]] = ContextVar("memorywall-holds", default=())


def enter(hold: Hold) -> None:
    """From here on the writes it covers carry its token."""
    _holds.set((*_holds.get(), hold))


def leave(hold: Hold) -> None:
    """From here on they do not."""
    _holds.set(tuple(one for one in _holds.get() if one is not hold))


def fencing_headers(
    session: Session,
    given: int | None = None,
    namespace: str | None = None,
    key: str | None = None,
) -> dict[str, str]:
    """The header that names what a write is made under, if it is made under anything.

    given: the token a call was given, which counts before any other
    namespace, key: of the shared entry that is written, where it is one
    """
    token = given
    if token is None and namespace is not None and key is not None:
        token = _claimed(session, namespace, key)
    if token is None:
        token = session.fencing_token
    return {} if token is None else {HEADER: str(token)}


def _claimed(session: Session, namespace: str, key: str) -> int | None:
    for hold in reversed(_holds.get()):
        if not hold.is_given_back and hold.covers(session, namespace, key):
            return hold.token
    return None
