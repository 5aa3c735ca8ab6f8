"""The public keys of an issuer, from its discovery document and its JWK Set (RFC 7517)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx
import jwt
import msgspec

from memorywall.records.errors import AuthenticationError, UnavailableError
from memorywall.service.access.token_issuers import TokenIssuer

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]

FRESH_SECONDS = 3_600.0
"""How long keys are used before they are fetched again."""
REST_SECONDS = 30.0
"""The least time between two fetches: a token with an unknown key must not cause one each."""
_LARGEST = 1024 * 1024
_TIMEOUT = 5.0
_DISCOVERY = "/.well-known/openid-configuration"
_UNKNOWN = "the token is signed with a key that its issuer does not have"


async def fetch(url: str) -> bytes:
    """The content of a URL. Raises httpx.HTTPError."""
    async with httpx.AsyncClient(timeout=_TIMEOUT) as client, client.stream("GET", url) as reply:
        reply.raise_for_status()
        content = b""
        async for piece in reply.aiter_bytes():
            content += piece
            if len(content) > _LARGEST:
                raise httpx.DecodingError("the document is too large")
        return content


class IssuerKeys:
    """The keys of an issuer. While it cannot be reached, the keys that are known stay valid.

    seconds: a clock that is never set back
    """

    def __init__(self, issuer: TokenIssuer, get: Fetch, seconds: Callable[[], float]) -> None:
        self._issuer = issuer
        self._get = get
        self._seconds = seconds
        self._lock = asyncio.Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    async def find(self, key_id: str | None) -> jwt.PyJWK:
        """The key of an id; without an id the only key. Raises AuthenticationError for an unknown
        key, UnavailableError while no key of the issuer is known."""
        if self._find(key_id) is None or self._seconds() - self._fetched >= FRESH_SECONDS:
            async with self._lock:
                # Requests that waited find what the first of them has fetched.
                if self._seconds() - self._tried >= REST_SECONDS:
                    await self._refresh()
        found = self._find(key_id)
        if found is not None:
            return found
        if not self._keys:
            raise UnavailableError("the keys of the token's issuer cannot be fetched; try later")
        raise AuthenticationError(_UNKNOWN)

    def _find(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        self._tried = self._seconds()
        try:
            url = self._issuer.jwks_uri or await self._discover()
            found = jwt.PyJWKSet.from_dict(await self._read(url)).keys
        except (httpx.HTTPError, msgspec.DecodeError, jwt.PyJWTError):
            return
        self._keys = {key.key_id: key for key in found if key.public_key_use != "enc"}
        self._fetched = self._seconds()

    async def _discover(self) -> str:
        """The URL of the keys. Raises httpx.HTTPError, msgspec.DecodeError."""
        found = await self._read(self._issuer.issuer.rstrip("/") + _DISCOVERY)
        url = found.get("jwks_uri")
        if found.get("issuer") != self._issuer.issuer or not isinstance(url, str):
            raise msgspec.ValidationError("the discovery document is of another issuer")
        return url

    async def _read(self, url: str) -> dict[str, Any]:
        return msgspec.json.decode(await self._get(url), type=dict[str, Any])
