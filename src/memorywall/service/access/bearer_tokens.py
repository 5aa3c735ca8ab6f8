"""Authentication by JWTs of identity providers (RFC 7519, RFC 8725) beside API keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from memorywall.records.errors import AuthenticationError, ConfigurationError
from memorywall.records.principal import Principal
from memorywall.service.access.api_keys import ApiKeyAuthenticator, impersonate
from memorywall.service.access.subjects import subject_form
from memorywall.service.access.token_issuers import TokenIssuer, read_issuers
from memorywall.service.requests.services import SharedServices
from memorywall.storage.port import REGISTRY, Transaction

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Asymmetric algorithms only: a server that could sign would have to keep a secret."""
LEEWAY = 30_000
"""Milliseconds by which the clock of an issuer may differ."""
_BEGINNING = "eyJ"
"""A JSON object in base64url; no API key and no token of a session begins so."""
_REQUIRED = ("exp", "aud", "iss")


async def open_authenticator(service: SharedServices) -> ApiKeyAuthenticator:
    """The authenticator for the settings of a store. Raises ConfigurationError for a file of
    issuers that cannot be used."""
    file = service.settings.token_issuers
    if file is None:
        return ApiKeyAuthenticator(service)
    if find_spec("jwt") is None:
        raise ConfigurationError("`token_issuers` needs pyjwt: pip install 'memorywall[jwt]'")
    issuers = read_issuers(file)

    async def names(transaction: Transaction) -> list[str]:
        return await transaction.identities.tenants()

    if missing := {one.tenant for one in issuers} - {*await service.store.read(REGISTRY, names)}:
        raise ConfigurationError(
            f"{file}: there is no tenant {min(missing)!r}; `memorywall tenants create` makes it"
        )
    return TokenAuthenticator(service, issuers)


class TokenAuthenticator(ApiKeyAuthenticator):
    """Authenticates requests by the tokens of some issuers, and by API keys.

    get: fetches the documents of the issuers; default: over HTTPS
    seconds: a clock that is never set back
    """

    def __init__(
        self,
        service: SharedServices,
        issuers: tuple[TokenIssuer, ...],
        get: Callable[[str], Any] | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(service)
        # Imported here, because few servers have issuers and few installations the package.
        import jwt

        from memorywall.service.access.token_keys import IssuerKeys, fetch

        self._jwt = jwt
        self._service = service
        self._issuers = [(one, IssuerKeys(one, get or fetch, seconds)) for one in issuers]
        self.issuers = tuple(dict.fromkeys(one.issuer for one in issuers))

    async def authenticate(self, key: str | None, agent: str | None) -> Principal:
        if key is None or not key.startswith(_BEGINNING):
            return await super().authenticate(key, agent)
        issuer, claims = await self._verify(key)
        subject = issuer.subject_of(claims)
        limits = (
            () if subject is None else (await subject_form(self._service, issuer.tenant, subject),)
        )
        principal = Principal(
            tenant=issuer.tenant,
            id=issuer.agent_of(claims),
            kind=issuer.kind,
            permissions=issuer.permissions,
            limited_to=limits,
            only_subject=subject,
            groups=issuer.groups_of(claims),
        )
        return impersonate(principal, agent)

    async def _verify(self, token: str) -> tuple[TokenIssuer, dict[str, Any]]:
        """The issuer and the claims of a valid token. Raises AuthenticationError, which says what
        is wrong and repeats nothing, UnavailableError."""
        jwt = self._jwt
        try:
            header = jwt.get_unverified_header(token)
            unverified = jwt.decode(token, options={"verify_signature": False})
        except jwt.PyJWTError:
            raise AuthenticationError("the token is not a JWT") from None
        if header.get("alg") not in ALGORITHMS:
            raise AuthenticationError("the token is signed with an algorithm that is not accepted")
        audiences = _audiences(unverified)
        found = next(
            (
                (one, keys)
                for one, keys in self._issuers
                if one.issuer == unverified.get("iss") and one.audience in audiences
            ),
            None,
        )
        if found is None:
            raise AuthenticationError("the token is of another issuer, or for another audience")
        issuer, keys = found
        key = await keys.find(header.get("kid"))
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=issuer.audience,
                issuer=issuer.issuer,
                # Instants are compared with the clock of the server below.
                options={
                    "require": [*_REQUIRED],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError:
            raise AuthenticationError(
                "the token is not signed by its issuer, or incomplete"
            ) from None
        self._check_time(claims)
        return issuer, claims

    def _check_time(self, claims: dict[str, Any]) -> None:
        now = self._clock.now()
        if now >= _milliseconds(claims, "exp") + LEEWAY:
            raise AuthenticationError("the token has expired; get a new one")
        if "nbf" in claims and now < _milliseconds(claims, "nbf") - LEEWAY:
            raise AuthenticationError("the token is not valid yet")


def _audiences(claims: dict[str, Any]) -> list[Any]:
    given = claims.get("aud")
    return given if isinstance(given, list) else [given]


def _milliseconds(claims: dict[str, Any], claim: str) -> float:
    given = claims[claim]
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise AuthenticationError(f"the claim `{claim}` of the token must be a number")
    return given * 1000
