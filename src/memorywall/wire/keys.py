"""The operations on API keys, with their requests and responses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.copier import copier
from memorywall.records.principal import DEFAULT_PERMISSIONS, ApiKey, Permission, PrincipalKind
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


class NewKeyResponse(KeyResponse, frozen=True, kw_only=True):
    """A new API key. `key` is its text with the secret, which is shown only here."""

    key: str


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
        "revoke_key",
        "DELETE /keys/{prefix}",
        "Revoke an API key; its next request is refused.",
        reply=KeyResponse,
    ),
)
