"""`client.keys`: API keys, for administrators of the tenant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from memorywall.sdk.effects import RequestGenerator
from memorywall.sdk.facade import AsyncFacade, Facade, method
from memorywall.sdk.fields import duration
from memorywall.sdk.filters import instant, without_absent
from memorywall.sdk.retry import call
from memorywall.wire.keys import (
    KeyListResponse,
    KeyResponse,
    NewKeyResponse,
    RotatedKeyResponse,
)


class KeysCore:
    """The operations on API keys, as request generators."""

    def list(self) -> RequestGenerator[list[KeyResponse]]:
        """Returns the API keys of the tenant, in the order of creation, without their secrets."""
        return (yield from call("list_keys", KeyListResponse)).keys

    def create(
        self,
        agent_id: str,
        *,
        kind: str = "agent",
        permissions: Iterable[str] | None = None,
        users: Iterable[str] = (),
        namespaces: Iterable[str] = (),
        read_only: bool = False,
        expires_at: datetime | str | None = None,
    ) -> RequestGenerator[NewKeyResponse]:
        """Creates an API key. The `key` of the result contains the secret, which cannot be read
        again.

        agent_id: the agent, user or service that the key acts for; another than the client's own
            requires `act_as`
        kind: "agent", "user" or "service"
        permissions: at most those of the client's key; default: memory.read and memory.write
        users: the people that the key is limited to; default: no limit
        namespaces: the namespaces that the key is limited to, by their full names; default: no
            limit
        read_only: whether the key gets only those of its permissions that change nothing
        expires_at: an instant in the future with an offset, or its RFC 3339 text; default: no
            expiry, which a client whose own key expires may not ask for; at most that of its key

        Raises MemoryAccessError, ValidationError.
        """
        text = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        body = {
            "agent_id": agent_id,
            "kind": kind,
            "permissions": None if permissions is None else [*permissions],
            "users": [*users],
            "namespaces": [*namespaces],
            "read_only": read_only,
            "expires_at": text,
        }
        return call("create_key", NewKeyResponse, body=without_absent(body))

    def rotate(
        self,
        prefix: str,
        *,
        overlap: timedelta | str | int | None = None,
        expires_at: datetime | str | None = None,
        user: str | None = None,
    ) -> RequestGenerator[RotatedKeyResponse]:
        """Replaces a key by one with the same rights and limits. The `key` of the result contains
        the secret, which cannot be read again; `replaces` is the old key with its end.

        prefix: the part of the key before the dot
        overlap: how long the old key remains valid, as a duration (a timedelta, seconds, a text
            such as "30m", or ISO 8601); 0 revokes it at once; default: one day
        expires_at: the expiry of the new key, see `create`; default: that of the old key
        user: the person that the key is limited to; required for a key that is limited to one
            person, whose name is not stored

        Raises MemoryAccessError, MemoryNotFoundError, ResourceConflictError for a key that has a
        successor or is refused already, ValidationError.
        """
        body = {
            "overlap": duration(overlap),
            "expires_at": None if expires_at is None else instant(expires_at),
            "user": user,
        }
        return call("rotate_key", RotatedKeyResponse, prefix=prefix, body=without_absent(body))

    def revoke(self, prefix: str) -> RequestGenerator[KeyResponse]:
        """Revokes a key, whose next request is refused; a repeat changes nothing.

        prefix: the part of the key before the dot

        Raises MemoryAccessError, MemoryNotFoundError.
        """
        return call("revoke_key", KeyResponse, prefix=prefix)


class _KeysMethods:
    list = method(KeysCore.list)
    create = method(KeysCore.create)
    rotate = method(KeysCore.rotate)
    revoke = method(KeysCore.revoke)


class KeysClient(_KeysMethods, Facade[KeysCore]):
    """Lists, creates, rotates and revokes API keys."""


class AsyncKeysClient(_KeysMethods, AsyncFacade[KeysCore]):
    """Lists, creates, rotates and revokes API keys."""
