"""Who is asking: API keys and the principals behind them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import replace

from memorywall.records.errors import AuthenticationError, MemoryAccessError
from memorywall.records.principal import ApiKey, Permission, Principal, PrincipalKind
from memorywall.storage.port import REGISTRY, Store, Transaction
from memorywall.wall.limits import check_agent

_PREFIX_BYTES = 5
_SECRET_BYTES = 32
_MOST_CACHED = 4_096
_OVER_THE_TENANT = frozenset({Permission.TENANT_ADMIN, Permission.ACT_AS})


class Keyring:
    """Authenticates requests.

    What it has looked up it remembers under the key's digest until the store says that keys may
    have changed, so that a revoked key is refused at its next request.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[bytes, str], Principal] = {}
        self._generation = -1

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        """The principal a request is made for.

        key: what was sent as X-API-Key or as a bearer token
        agent: what was sent as X-Agent-ID
        Raises AuthenticationError, or MemoryAccessError when `agent` is not the key's own principal
        and the key may not act for others.
        """
        if not key:
            raise AuthenticationError("send an API key as `X-API-Key` or `Authorization: Bearer`")
        generation = await self._store.generation()
        if generation != self._generation:
            self._known.clear()
            self._generation = generation
        digest = digest_of(key)
        known = self._known.get((digest, agent or ""))
        if known is not None:
            return known
        principal = speaking_for(await self._look_up(key, digest), agent)
        if len(self._known) < _MOST_CACHED:
            self._known[digest, agent or ""] = principal
        return principal

    async def _look_up(self, key: str, digest: bytes) -> Principal:
        prefix, _, _ = key.partition(".")

        async def script(transaction: Transaction) -> ApiKey | None:
            return await transaction.identities.find_key(prefix)

        found = await self._store.read(REGISTRY, script)
        # An unknown prefix is compared too, so that it takes as long as a wrong secret.
        matches = hmac.compare_digest(digest, bytes(32) if found is None else found.digest)
        if found is None or not matches or found.revoked_at is not None:
            raise AuthenticationError("the API key is unknown or revoked")
        return Principal(
            tenant=found.tenant,
            id=found.principal,
            kind=found.kind,
            permissions=found.permissions,
        )


def speaking_for(principal: Principal, agent: str | None) -> Principal:
    """The principal a request is for when it names an agent in X-Agent-ID.

    What acts for another is that agent and nothing more: it keeps the permissions over memory
    and loses those over the tenant.
    """
    if not agent or agent == principal.id:
        return principal
    if Permission.ACT_AS not in principal.permissions:
        raise MemoryAccessError("`X-Agent-ID` must be the key's own principal")
    return replace(
        principal,
        id=check_agent("X-Agent-ID", agent),
        kind=PrincipalKind.AGENT,
        permissions=principal.permissions - _OVER_THE_TENANT,
        acting=principal.id,
    )


def digest_of(key: str) -> bytes:
    """The only thing kept of a key. Its secret has 256 random bits, so a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def make_key(
    tenant: str,
    principal: str,
    kind: PrincipalKind,
    permissions: Iterable[Permission],
    now: str,
) -> tuple[str, ApiKey]:
    """A new key: its text, to be shown once, and what is kept of it."""
    prefix = "mw_" + base64.b32encode(secrets.token_bytes(_PREFIX_BYTES)).decode().lower()
    text = f"{prefix}.{secrets.token_urlsafe(_SECRET_BYTES)}"
    return text, ApiKey(
        prefix=prefix,
        digest=digest_of(text),
        tenant=tenant,
        principal=principal,
        kind=kind,
        permissions=frozenset(permissions),
        created_at=now,
    )
