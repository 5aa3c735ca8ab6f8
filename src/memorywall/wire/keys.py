"""The operations on API keys, with their requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.errors import ResourceConflictError
from memorywall.records.principal import (
    DEFAULT_OVERLAP,
    DEFAULT_PERMISSIONS,
    ApiKey,
    Permission,
    PrincipalKind,
)
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

NO_KEY = "send an API key as `X-API-Key` or `Authorization: Bearer`"
"""The refusal of a request without a key, which the SDK words for its callers."""


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new API key."""

    agent_id: Annotated[str, Meta(description="The principal that the key acts for.")]
    kind: Annotated[PrincipalKind, Meta(description="The kind of the principal.")] = (
        PrincipalKind.AGENT
    )
    permissions: Annotated[
        list[Permission],
        Meta(description="The permissions; at most those of the key that creates the key."),
    ] = msgspec.field(default_factory=lambda: sorted(DEFAULT_PERMISSIONS))
    users: Annotated[
        list[str], Meta(description="The people that the key is limited to; default: no limit.")
    ] = []
    namespaces: Annotated[
        list[str],
        Meta(description="The full names of the namespaces that the key is limited to."),
    ] = []
    read_only: Annotated[
        bool, Meta(description="Whether the key keeps only permissions that change nothing.")
    ] = False
    expires_at: Annotated[
        str | None,
        Meta(
            description="The instant from which the key is refused; required, and at most its own,"
            " for a creator whose key expires."
        ),
    ] = None


class KeyResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret.

    prefix: the part before the dot, which identifies the key
    subjects: keyed digests of the people that the key is limited to
    last_used_at: the last use, to within about a minute
    successor: the prefix of the key that a rotation made in its place
    """

    prefix: str
    agent_id: str
    kind: PrincipalKind
    permissions: list[Permission]
    subjects: list[str]
    namespaces: list[str]
    read_only: bool
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    successor: str | None


class NewKeyResponse(KeyResponse, frozen=True, kw_only=True):
    """A new API key. `key` is its text with the secret, which is shown only here."""

    key: str


class KeyRotationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an API key is replaced."""

    overlap: Annotated[
        str,
        Meta(
            description="How long the key remains valid beside its successor, as an ISO 8601"
            " duration; `PT0S` revokes it at once. An earlier expiry stays.",
            max_length=64,
        ),
    ] = DEFAULT_OVERLAP
    expires_at: Annotated[
        str | None,
        Meta(
            description="The instant from which the successor is refused; default: that of the key."
        ),
    ] = None
    user: Annotated[
        str | None,
        Meta(
            description="The person that the key is limited to; required for a key that is limited"
            " to one person, whose name is not stored."
        ),
    ] = None


class RotatedKeyResponse(NewKeyResponse, frozen=True, kw_only=True):
    """The successor of an API key. `key` is its text with the secret, which is shown only here.

    replaces: the key that was rotated; `expires_at` or `revoked_at` is its end
    """

    replaces: KeyResponse


class KeyListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """All API keys of the tenant, in the order of creation."""

    keys: list[KeyResponse]


key_view = copier(
    ApiKey,
    KeyResponse,
    agent_id="principal",
    permissions=lambda key: sorted(key.permissions),
    subjects=lambda key: list(key.subjects),
    namespaces=lambda key: list(key.namespaces),
    read_only="is_read_only",
)
"""The wire form of a key."""


def new_key_view(text: str, key: ApiKey) -> NewKeyResponse:
    """The wire form of a new key with its text."""
    return NewKeyResponse(key=text, **msgspec.structs.asdict(key_view(key)))


def rotated_key_view(text: str, successor: ApiKey, key: ApiKey) -> RotatedKeyResponse:
    """The wire form of a successor with its text, and of the key that it replaces."""
    new = msgspec.structs.asdict(new_key_view(text, successor))
    return RotatedKeyResponse(replaces=key_view(key), **new)


_KEYS = OperationGroup(name="Service", read=Permission.TENANT_ADMIN, write=Permission.TENANT_ADMIN)

KEY_OPERATIONS: tuple[Operation, ...] = (
    _KEYS(
        "list_keys",
        "GET /keys",
        "List the API keys of the tenant, without their secrets.",
        reply=KeyListResponse,
    ),
    _KEYS(
        "create_key",
        "POST /keys",
        "Create an API key; its secret is shown once.",
        body=KeyRequest,
        reply=NewKeyResponse,
        status=201,
    ),
    _KEYS(
        "rotate_key",
        "POST /keys/{prefix}/rotate",
        "Replace an API key by one with the same rights; the old key ends after an overlap.",
        body=KeyRotationRequest,
        reply=RotatedKeyResponse,
        status=201,
        raises=(ResourceConflictError,),
    ),
    _KEYS(
        "revoke_key",
        "DELETE /keys/{prefix}",
        "Revoke an API key; its next request is refused.",
        reply=KeyResponse,
    ),
)
