"""API keys, and authentication of requests."""

from __future__ import annotations

import base64
import hmac
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

from memorywall.records.clock import format_instant, instant_to_milliseconds
from memorywall.records.errors import AuthenticationError, MemoryAccessError
from memorywall.records.identifiers import is_same_name
from memorywall.records.principal import ApiKey, Permission, Principal, PrincipalKind
from memorywall.records.session import SessionBinding
from memorywall.service.access.session_tokens import MARK, is_signed, parse
from memorywall.service.requests.namespace_names import forms_of_limits
from memorywall.service.requests.services import SharedServices
from memorywall.service.requests.validation import check_agent
from memorywall.storage.port import REGISTRY, Transaction
from memorywall.wire.keys import NO_KEY

_MOST_CACHED = 4_096
_REFUSED = "the session token is invalid, or its API key is revoked"
_OVER_THE_TENANT = frozenset({Permission.TENANT_ADMIN, Permission.ACT_AS})


class _KnownKey(NamedTuple):
    """A key that was looked up.

    stored: the key as the store had it
    expires: milliseconds since the epoch, None for no expiry
    """

    principal: Principal
    stored: ApiKey
    expires: int | None


class ApiKeyAuthenticator:
    """Authenticates requests.

    The authenticator caches principals by the digest of the key. When the generation of the store
    changes, which any commit may do, a cached principal is used again only if its key is stored as
    it was, so that a revoked key is refused on its next request. Last uses of keys are recorded in
    memory, see `UsageTracker.key_uses`.

    issuers: the issuers whose tokens are accepted as well
    """

    issuers: tuple[str, ...] = ()

    def __init__(self, service: SharedServices) -> None:
        self._store = service.store
        self._clock = service.clock
        self._cipher = service.cipher
        self._uses = service.usage_tracker.key_uses
        self._known: dict[tuple[bytes, str], _KnownKey] = {}
        # The names of `_known` that have been compared with the present generation of the store.
        self._compared: set[tuple[bytes, str]] = set()
        self._generation = -1

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        """The principal of a request.

        key: the value of X-API-Key or the bearer token, None if missing
        agent: the value of X-Agent-ID, None if missing
        Raises AuthenticationError, or MemoryAccessError if `agent` is not the key's own principal
        and the key has no `act_as`.
        """
        if not key:
            raise AuthenticationError(NO_KEY)
        generation = await self._store.generation()
        if generation != self._generation:
            self._compared.clear()
            self._generation = generation
        digest = sha256(key.encode("utf-8", "surrogatepass")).digest()
        name = (digest, agent or "")
        known = self._known.get(name)
        if known is None or name not in self._compared:
            if known is None or not await self._is_stored(known.stored):
                known = await self._look_up_anew(key, digest, agent)
            if generation == self._generation:
                self._compared.add(name)
        if known.expires is not None and known.expires <= self._clock.now():
            # Only the holder of the secret learns this: other keys were not found.
            raise AuthenticationError(
                "the session token has expired; ask for a new one"
                if known.principal.session is not None
                else "the API key has expired; ask an administrator for a new one"
            )
        self._uses.add((known.stored.tenant, known.stored.prefix))
        return known.principal

    async def _look_up_anew(self, key: str, digest: bytes, agent: str | None) -> _KnownKey:
        """Caches and returns what the store has of a key now. Raises AuthenticationError,
        MemoryAccessError."""
        self._known.pop((digest, agent or ""), None)
        known = await self._look_up(key, digest)
        known = known._replace(principal=impersonate(known.principal, agent))
        if len(self._known) >= _MOST_CACHED:
            self._known.clear()
        self._known[digest, agent or ""] = known
        return known

    async def _is_stored(self, key: ApiKey) -> bool:
        """Whether a key is stored as it was."""
        found = await self._find(key.prefix)
        # A key that has not changed is mostly the same object.
        return found is key or found == key

    async def _look_up(self, key: str, digest: bytes) -> _KnownKey:
        if key.startswith(MARK):
            return await self._look_up_token(key)
        prefix, _, _ = key.partition(".")
        found = await self._find(prefix)
        # The digest is compared for an unknown prefix too, so that both refusals take the same
        # time.
        matches = hmac.compare_digest(digest, bytes(32) if found is None else found.digest)
        if found is None or not matches or found.revoked_at is not None:
            raise AuthenticationError("the API key is unknown or revoked")
        return await self._known_key(found, subject_in(key))

    async def _find(self, prefix: str) -> ApiKey | None:
        async def script(transaction: Transaction) -> ApiKey | None:
            return await transaction.identities.find_key(prefix)

        return await self._store.read(REGISTRY, script)

    async def _look_up_token(self, text: str) -> _KnownKey:
        """The principal of a token: that of its key for one agent, inside the token's session."""
        parsed = parse(text)
        found = None if parsed is None else await self._find(parsed[0].key)
        if parsed is None or found is None or found.revoked_at is not None:
            raise AuthenticationError(_REFUSED)
        token, signature = parsed
        if token.tenant != found.tenant:
            raise AuthenticationError(_REFUSED)
        now = format_instant(self._clock.now())
        await self._cipher.prepare_digests(self._store, token.tenant, now)
        if not is_signed(self._cipher, token, signature):
            raise AuthenticationError(_REFUSED)
        known = await self._known_key(found)
        principal = impersonate(known.principal, token.agent)
        principal = replace(
            principal,
            permissions=principal.permissions - _OVER_THE_TENANT,
            session=SessionBinding(id=token.session),
        )
        expires = token.expires if known.expires is None else min(token.expires, known.expires)
        return _KnownKey(principal, found, expires)

    async def _known_key(self, found: ApiKey, subject: str | None = None) -> _KnownKey:
        """The key with its principal.

        subject: the person that the text of the key names
        """
        principal = Principal(
            tenant=found.tenant,
            id=found.principal,
            kind=found.kind,
            permissions=found.permissions,
            limited_to=found.subjects,
            only_subject=subject,
            namespaces=await self._stored_limits(found) or None,
            key=found.prefix,
            key_expires_at=found.expires_at,
        )
        expires = None if found.expires_at is None else instant_to_milliseconds(found.expires_at)
        return _KnownKey(principal, found, expires)

    async def _stored_limits(self, found: ApiKey) -> tuple[str, ...]:
        now = format_instant(self._clock.now())
        names = found.namespaces
        return await forms_of_limits(self._cipher, self._store, found.tenant, names, now)


def impersonate(principal: Principal, agent: str | None) -> Principal:
    """The principal of a request with X-Agent-ID.

    A key that acts for another agent keeps its permissions over memory and loses those over the
    tenant. Raises MemoryAccessError.
    """
    if not agent or is_same_name(agent, principal.id):
        return principal
    if Permission.ACT_AS not in principal.permissions:
        raise MemoryAccessError(
            "`X-Agent-ID` must be the key's own principal; another agent needs a key of its own, or"
            " one with `act_as`"
        )
    return replace(
        principal,
        id=check_agent("X-Agent-ID", agent, is_new=False),
        kind=PrincipalKind.AGENT,
        permissions=principal.permissions - _OVER_THE_TENANT,
        acting=principal.id,
    )


def subject_in(key: str) -> str | None:
    """The person that the text of a key names, because the store has a digest only."""
    _, _, encoded = key.partition(".")[2].partition(".")
    if not encoded:
        return None
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return None


def digest_of(key: str) -> bytes:
    """The stored digest of a key. A plain hash is sufficient for a secret of 256 random bits."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
