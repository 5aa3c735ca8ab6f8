"""Requests and responses of worthiness, and their operations."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.principal import Permission
from memorywall.records.worthiness import WorthinessMode
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class WorthinessRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the tenant does with texts that are not worth keeping."""

    mode: Annotated[
        WorthinessMode | None,
        Meta(
            description="`off`, `mark` or `refuse`; null for what the settings of the server say."
        ),
    ]


class WorthinessRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: what it finds, what it decides, and in how many texts of the tenant it did so since
    the start of the server. The count is null without the permission `tenant.admin`."""

    name: str
    description: str
    worthy: bool
    count: int | None


class WorthinessResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the tenant does with texts that are not worth keeping, and the rules, of which the first
    one that holds decides. `is_own` is false while the settings of the server decide the mode."""

    mode: WorthinessMode
    is_own: bool
    rules: list[WorthinessRule]


_WORTHINESS = OperationGroup(name="Tiers", write=Permission.TENANT_ADMIN)

WORTHINESS_OPERATIONS: tuple[Operation, ...] = (
    _WORTHINESS(
        "get_worthiness",
        "GET /worthiness",
        "Get the rules that say which texts are worth keeping, and how often each has decided.",
        reply=WorthinessResponse,
    ),
    _WORTHINESS(
        "set_worthiness",
        "PUT /worthiness",
        "Set what the tenant does with texts that are not worth keeping.",
        body=WorthinessRequest,
        reply=WorthinessResponse,
    ),
)
