"""Requests and responses of quotas, and their operations."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.principal import Permission
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup

_MOST = 2**53


class QuotaRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The quota that the tenant sets for itself. A field that is omitted or null has no limit of
    its own.

    A value above the quota of the operator is refused with 422.
    """

    entries: Annotated[
        Annotated[int, Meta(ge=0, le=_MOST)] | None, Meta(description="Entries of all tiers.")
    ] = None
    bytes: Annotated[
        Annotated[int, Meta(ge=0, le=_MOST)] | None,
        Meta(description="Bytes of the JSON texts of their values."),
    ] = None


class QuotaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The quota of the tenant and its usage.

    `entries` and `bytes` are what applies, null without a limit. `most_entries` and `most_bytes`
    are the quota of the operator. `used_entries` and `used_bytes` do not count expired entries.
    """

    entries: int | None
    bytes: int | None
    most_entries: int | None
    most_bytes: int | None
    used_entries: int
    used_bytes: int


_QUOTA = OperationGroup(
    name="Tiers",
    source="RFC-0015 section 9.4",
    read=Permission.TENANT_ADMIN,
    write=Permission.TENANT_ADMIN,
)

QUOTA_OPERATIONS: tuple[Operation, ...] = (
    _QUOTA(
        "get_quota",
        "GET /quota",
        "Get the quota of the tenant in entries and bytes, and its usage.",
        reply=QuotaResponse,
    ),
    _QUOTA(
        "set_quota",
        "PUT /quota",
        "Set a quota of the tenant, at most that of the operator.",
        body=QuotaRequest,
        reply=QuotaResponse,
    ),
)
