"""Creation of API keys: their checks, and the only place where their text exists."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from memorywall.records.clock import parse_instant
from memorywall.records.errors import ConfigurationError, ValidationError
from memorywall.records.principal import (
    READING_PERMISSIONS,
    ApiKey,
    Permission,
    PrincipalKind,
)
from memorywall.service.access.api_keys import digest_of
from memorywall.service.access.known_names import known_agent
from memorywall.service.access.subjects import check_subject
from memorywall.service.requests.operation_context import OperationContext
from memorywall.service.requests.validation import check_namespace

MOST_LIMITS = 100
"""The most namespaces, and the most subjects, that a key is limited to."""
_PREFIX_BYTES = 5
_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey:
    """The fields of a new key.

    principal: the agent, user or service that the key acts for
    subjects: the people that the key is limited to; empty for no limit, the default
    namespaces: the namespaces that the key is limited to, by their full names; empty for no limit,
        the default
    expires_at: an RFC 3339 instant in the future from which the key is refused; None for no
        expiry, the default
    read_only: whether the key gets only those of its permissions that change nothing; default:
        false
    """

    principal: str
    kind: PrincipalKind
    permissions: frozenset[Permission]
    subjects: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    expires_at: str | None = None
    read_only: bool = False


async def add_key(context: OperationContext, wanted: NewKey) -> tuple[str, ApiKey]:
    """Stores a new key, and its principal if it is new. Returns the text of the key, which is shown
    once, and its record.

    Raises ValidationError, and ConfigurationError for a principal of another kind.
    """
    principal = await known_agent(context, "agent", wanted.principal)
    named = [check_subject("subject", one) for one in _limited("subjects", wanted.subjects)]
    places = tuple(check_namespace(one) for one in _limited("namespaces", wanted.namespaces))
    expires_at = check_expiry(context, wanted.expires_at)
    identities = context.transaction.identities
    known = await identities.ensure_principal(principal, wanted.kind, context.now)
    if known is not wanted.kind:
        raise ConfigurationError(
            f"this principal is known as {known.value}, not {wanted.kind.value}"
        )
    digest = context.service.cipher.literal_digest
    prefix = "mw_" + base64.b32encode(secrets.token_bytes(_PREFIX_BYTES)).decode().lower()
    text = f"{prefix}.{secrets.token_urlsafe(_SECRET_BYTES)}"
    if len(named) == 1:
        # The key binds requests that name nobody to its only subject, whose name is not stored.
        text += "." + base64.urlsafe_b64encode(named[0].encode()).decode().rstrip("=")
    allowed = wanted.permissions
    key = ApiKey(
        prefix=prefix,
        digest=digest_of(text),
        tenant=context.tenant,
        principal=principal,
        kind=wanted.kind,
        permissions=allowed & READING_PERMISSIONS if wanted.read_only else allowed,
        created_at=context.now,
        subjects=tuple([await digest(context.transaction, one, context.now) for one in named]),
        namespaces=places,
        expires_at=expires_at,
    )
    await identities.add_key(key)
    return text, key


def _limited(field: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once. Raises ValidationError."""
    unique = tuple(dict.fromkeys(names))
    if len(unique) > MOST_LIMITS:
        raise ValidationError(f"`{field}` may have at most {MOST_LIMITS} names")
    return unique


def check_expiry(context: OperationContext, text: str | None) -> str | None:
    """The instant in the stored form. Raises ValidationError for one that is not in the future."""
    if text is None:
        return None
    try:
        expires_at = parse_instant(text)
    except ValueError:
        raise ValidationError(
            "`expires_at` must be an RFC 3339 instant, such as 2030-01-31T00:00:00Z"
        ) from None
    if expires_at <= context.now:
        raise ValidationError("`expires_at` must be in the future")
    return expires_at
