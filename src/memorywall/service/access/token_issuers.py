"""Identity providers whose tokens are accepted, as a file declares them.

The file binds an issuer to a tenant and to permissions. A token proves only who its holder is: its
claims choose among the agents, people and groups that the file allows, and never a tenant.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from memorywall.configuration.values import is_loopback
from memorywall.records.argument_names import unknown_names
from memorywall.records.errors import AuthenticationError, ConfigurationError, ValidationError
from memorywall.records.group import grantee_of
from memorywall.records.principal import DEFAULT_PERMISSIONS, Permission, PrincipalKind
from memorywall.records.struct_errors import explain
from memorywall.service.access.subjects import check_subject
from memorywall.service.requests.validation import check_agent

ANY = "*"
Names = Annotated[frozenset[str], Meta(min_length=1)]
Claim = Annotated[str, Meta(min_length=1)]


class TokenIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the tokens of an issuer for an audience allow.

    issuer: the claim `iss`, whose discovery document (OpenID Connect Discovery 1.0) names the keys
    audience: a value that the claim `aud` must contain
    tenant: the tenant of every request with such a token
    permissions: of every such request; default: memory.read and memory.write
    kind: of the principals; default: agent
    agent_claim: the claim that names the agent; default: sub
    agents: the agents that the claim may name; `*` allows any
    subject_claim: the claim that names the person that requests are bound to; default: none
    subjects: the people that the claim may name; default: any
    groups_claim: the claim with the groups of the agent, a list or words; default: the groups are
        the stored ones
    groups: the groups that the claim may name; others are ignored
    jwks_uri: the URL of the keys, in place of the discovery document; default: none
    """

    issuer: str
    audience: str
    tenant: str
    permissions: frozenset[Permission] = DEFAULT_PERMISSIONS
    kind: PrincipalKind = PrincipalKind.AGENT
    agent_claim: Claim = "sub"
    agents: Names
    subject_claim: Claim | None = None
    subjects: Names = frozenset({ANY})
    groups_claim: Claim | None = None
    groups: frozenset[str] = frozenset()
    jwks_uri: str | None = None

    def agent_of(self, claims: dict[str, Any]) -> str:
        """The agent of a token. Raises AuthenticationError."""
        agent = _chosen(claims, self.agent_claim, self.agents)
        try:
            return check_agent(self.agent_claim, agent)
        except ValidationError as error:
            raise AuthenticationError(f"the token names no agent: {error.detail}") from None

    def subject_of(self, claims: dict[str, Any]) -> str | None:
        """The person of a token; None if its requests are bound to nobody. Raises
        AuthenticationError."""
        if self.subject_claim is None:
            return None
        subject = _chosen(claims, self.subject_claim, self.subjects)
        try:
            return check_subject(self.subject_claim, subject)
        except ValidationError as error:
            raise AuthenticationError(f"the token names no person: {error.detail}") from None

    def groups_of(self, claims: dict[str, Any]) -> frozenset[str] | None:
        """The groups of a token as grants name them; None for the stored ones."""
        if self.groups_claim is None:
            return None
        given = claims.get(self.groups_claim, [])
        named = given.split() if isinstance(given, str) else given
        texts = {one for one in named if isinstance(one, str)} if isinstance(named, list) else set()
        return frozenset(map(grantee_of, texts & self.groups))


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    issuers: Annotated[list[TokenIssuer], Meta(min_length=1)]


_FIELDS = frozenset(TokenIssuer.__struct_fields__)


def read_issuers(file: Path) -> tuple[TokenIssuer, ...]:
    """The issuers of a file in TOML. Raises ConfigurationError, which names the field."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not valid TOML: {error}") from None
    try:
        given = content.get("issuers")
        for one in given if isinstance(given, list) else ():
            if isinstance(one, dict) and (unknown := sorted(set(one) - _FIELDS)):
                raise ConfigurationError(f"{file}: {unknown_names('fields', unknown, _FIELDS)}")
        issuers = msgspec.convert(content, _File).issuers
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{file}: {explain(error, _File, inside='file')}") from None
    for one in issuers:
        for name, url in (("issuer", one.issuer), ("jwks_uri", one.jwks_uri)):
            if url is not None:
                _check_url(file, name, url)
    if len({(one.issuer, one.audience) for one in issuers}) < len(issuers):
        raise ConfigurationError(f"{file}: an issuer and its audience stand there once")
    return tuple(issuers)


def _check_url(file: Path, name: str, url: str) -> None:
    """Raises ConfigurationError for a URL over which somebody else could answer."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise ConfigurationError(f"{file}: `{name}` must be a URL that begins with https://")


def _chosen(claims: dict[str, Any], claim: str, allowed: frozenset[str]) -> str:
    named = claims.get(claim)
    if not isinstance(named, str) or not named:
        raise AuthenticationError(f"the token must have the claim `{claim}`, a text")
    if ANY not in allowed and named not in allowed:
        raise AuthenticationError(f"what the claim `{claim}` of the token names is not allowed")
    return named
