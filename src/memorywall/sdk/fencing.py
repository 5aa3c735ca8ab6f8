"""Selects the fencing token of a write: that of a claim, or that of the client."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from memorywall.sdk.client_state import ClientState


class FencingTokenHolder(Protocol):
    """A claimed key of shared state; see `memorywall.sdk.claims.Claim`."""

    @property
    def token(self) -> int: ...

    @property
    def is_released(self) -> bool: ...

    def covers(self, state: ClientState, namespace: str, key: str) -> bool:
        """Returns whether a client's writes to an entry use this claim."""
        ...


# A claim applies to the thread or task that acquired it and to the tasks that it starts. Another
# thread that shares the client must not write under the claim.
_holders: ContextVar[tuple[FencingTokenHolder, ...]] = ContextVar("memorywall-holds", default=())


def enter(holder: FencingTokenHolder) -> None:
    """Applies the claim's token to the writes that it covers."""
    _holders.set((*_holders.get(), holder))


def leave(holder: FencingTokenHolder) -> None:
    """Stops applying the claim's token."""
    _holders.set(tuple(one for one in _holders.get() if one is not holder))


def fencing_token_of(
    state: ClientState,
    given: int | None = None,
    namespace: str | None = None,
    key: str | None = None,
) -> int | None:
    """Returns the fencing token of a write, or None.

    given: the token that the caller passed, which takes precedence
    namespace, key: the name of a shared entry, if the write is to one
    """
    token = given
    if token is None and namespace is not None and key is not None:
        token = _claimed(state, namespace, key)
    return state.fencing_token if token is None else token


def _claimed(state: ClientState, namespace: str, key: str) -> int | None:
    for holder in reversed(_holders.get()):
        if not holder.is_released and holder.covers(state, namespace, key):
            return holder.token
    return None
