"""Creation and rotation of API keys: their checks, and the only place where their text exists."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from memorywall.records.clock import after, check_duration, parse_instant
from memorywall.records.errors import ConfigurationError, ResourceConflictError, ValidationError
from memorywall.records.event import WorkEventType
from memorywall.records.identifiers import name_forms
from memorywall.records.principal import (
    DEFAULT_OVERLAP,
    READING_PERMISSIONS,
    ApiKey,
    Permission,
    PrincipalKind,
)
from memorywall.service.access.api_keys import digest_of
from memorywall.service.access.known_names import known_agent
from memorywall.service.access.subjects import check_subject
from memorywall.service.requests.event_log import append_work_event
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


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRotation:
    """How a key is replaced.

    overlap: how long the key remains valid beside its successor, as an ISO 8601 duration; zero
        revokes it at once; default: one day
    expires_at: the RFC 3339 instant from which the successor is refused; None for that of the key,
        the default
    subject: the person that the key is limited to, for a key that is limited to one person; None
        for any other key, the default
    """

    overlap: str = DEFAULT_OVERLAP
    expires_at: str | None = None
    subject: str | None = None


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
    prefix, text = _new_text(named[0] if len(named) == 1 else None)
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


async def replace_key(
    context: OperationContext, key: ApiKey, rotation: KeyRotation
) -> tuple[str, ApiKey]:
    """Stores a successor of a key with the same rights and limits, and lets the key end after the
    overlap. Returns the text of the successor, which is shown once, and its record.

    Raises ValidationError, and ResourceConflictError for a key that has a successor or is refused
    already.
    """
    overlap = check_duration("overlap", rotation.overlap, may_be_zero=True)
    _check_valid(context, key)
    subject = await _only_subject(context, key, rotation.subject)
    prefix, text = _new_text(subject)
    successor = replace(
        key,
        prefix=prefix,
        digest=digest_of(text),
        created_at=context.now,
        expires_at=check_expiry(context, rotation.expires_at) or key.expires_at,
        last_used_at=None,
    )
    identities = context.transaction.identities
    await identities.add_key(successor)
    ends_at = after(context.moment, overlap)
    await identities.end_key(key.prefix, prefix, ends_at)
    if not overlap:
        await identities.revoke_key(key.prefix, context.now)
    ends_at = min(ends_at, key.expires_at or ends_at)
    data = {"prefix": key.prefix, "successor": prefix, "ends_at": ends_at}
    await append_work_event(context, WorkEventType.KEY_ROTATED, agent=key.principal, data=data)
    return text, successor


def _check_valid(context: OperationContext, key: ApiKey) -> None:
    """Raises ResourceConflictError for a key that has a successor, and for one that is refused."""
    if key.successor is not None:
        raise ResourceConflictError("the key has been rotated; rotate its `successor`")
    has_expired = key.expires_at is not None and key.expires_at <= context.now
    if key.revoked_at is not None or has_expired:
        raise ResourceConflictError("the key is revoked or has expired; create a new key")


async def _only_subject(context: OperationContext, key: ApiKey, subject: str | None) -> str | None:
    """The person that the text of a successor names; None for a key that is not limited to one
    person. The store has a digest only, so the caller repeats the name. Raises ValidationError."""
    if len(key.subjects) != 1:
        if subject is not None:
            raise ValidationError("`user` is for a key that is limited to one person")
        return None
    if subject is None:
        raise ValidationError(
            "`user` must name the person that the key is limited to: the successor names the"
            " person too, and the store has no name"
        )
    name = check_subject("subject", subject)
    digest = context.service.cipher.literal_digest
    forms = [await digest(context.transaction, one, context.now) for one in name_forms(name)]
    if key.subjects[0] not in forms:
        raise ValidationError("`user` is not the person that the key is limited to")
    return name


def _new_text(subject: str | None) -> tuple[str, str]:
    """The prefix and the text of a new key.

    subject: the only person that the key is limited to; None for another key
    """
    prefix = "mw_" + base64.b32encode(secrets.token_bytes(_PREFIX_BYTES)).decode().lower()
    text = f"{prefix}.{secrets.token_urlsafe(_SECRET_BYTES)}"
    if subject is not None:
        # The key binds requests that name nobody to its only subject, whose name is not stored.
        text += "." + base64.urlsafe_b64encode(subject.encode()).decode().rstrip("=")
    return prefix, text


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
