"""Which fencing token a write carries: that of the claim it is made under, or of its client."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from memorywall.sdk.client_state import ClientState


class FencingTokenHolder(Protocol):
    """A key of shared state that is claimed; see `memorywall.sdk.claims.Claim`."""

    @property
    def token(self) -> int: ...

    @property
    def is_released(self) -> bool: ...

    def covers(self, state: ClientState, namespace: str, key: str) -> bool:
        """Whether this is the claim that a client's writes to an entry are made under."""
        ...


# What holds for the thread or task that claimed it, and for the tasks it starts, holds for no
# other: two threads may share a client, but what one has claimed the other must not write.
_holds: ContextVar[tuple[FencingTokenHolder, ...]] = ContextVar("memorywall-holds", default=())


def enter(holder: FencingTokenHolder) -> None:
    """From here on the writes it covers carry its token."""
    _holds.set((*_holds.get(), holder))


def leave(holder: FencingTokenHolder) -> None:
    """From here on they do not."""
    _holds.set(tuple(one for one in _holds.get() if one is not holder))


def fencing_token_of(
    state: ClientState,
    given: int | None = None,
    namespace: str | None = None,
    key: str | None = None,
) -> int | None:
    """The fencing token of what a write is made under, if it is made under anything.

    given: the token a call was given, which counts before any other
    namespace, key: of the shared entry that is written, where it is one
    """
    token = given
    if token is None and namespace is not None and key is not None:
        token = _claimed(state, namespace, key)
    return state.fencing_token if token is None else token


def _claimed(state: ClientState, namespace: str, key: str) -> int | None:
    for holder in reversed(_holds.get()):
        if not holder.is_released and holder.covers(state, namespace, key):
            return holder.token
    return None
