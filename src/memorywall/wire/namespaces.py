"""Namespaces and their permissions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from memorywall.records.errors import (
    MemoryConflictError,
)
from memorywall.records.filter import DEFAULT_PAGE, LARGEST_PAGE
from memorywall.records.namespace import Access, Grant
from memorywall.records.principal import Permission
from memorywall.wire.entries import Conditions
from memorywall.wire.operation import Operation
from memorywall.wire.operation_group import OperationGroup


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of a namespace (RFC-0015 section 2.3)."""

    default: Access
    allow: list[Grant]


class PermissionsChange(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The permissions to replace. Each given field replaces the whole stored field."""

    default: Access | None = None
    allow: list[Grant] | None = None


class NamespacePatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An update of the permissions of a namespace, or of its rule for writes, or of both.

    last_write_wins: whether a `PUT` without a precondition replaces an entry of this namespace.
        It concerns semantic and procedural memory. A replacement of shared state or of an entry of
        a governed kind always needs a precondition.
    """

    permissions: PermissionsChange | None = None
    last_write_wins: bool | None = None
    indexed_paths: Annotated[
        list[str] | None,
        Meta(
            description="Paths below `value` whose values are indexed for queries with `where`;"
            " they replace all earlier ones."
        ),
    ] = None


class NamespaceResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A namespace. `access` is the caller's own level; `last_write_wins` is shown where it is
    true."""

    namespace: str
    access: Access
    permissions: Permissions
    version: int
    created_at: str
    updated_at: str
    last_write_wins: bool = False
    indexed_paths: tuple[str, ...] = ()


class NamespaceBrief(msgspec.Struct, frozen=True, kw_only=True):
    """An element of the list of namespaces."""

    namespace: str
    access: Access


class NamespaceListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces that the caller may read or administer."""

    namespaces: list[NamespaceBrief]
    total: int


class EntryNamespaceQuery(Conditions, frozen=True, kw_only=True):
    """Conditions of entries, and a page of their namespaces.

    after_namespace: `next` of the page before; default: the first page
    """

    after_namespace: Annotated[
        str, Meta(description="Only namespaces after this one; default: all.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE


class EntryNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace, and the number of its entries that match."""

    namespace: str
    entries: int


class EntryNamespaceListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Namespaces of entries, in their order.

    next: the value of `after_namespace` for the next page; None after the last page
    """

    namespaces: list[EntryNamespace]
    next: str | None


_NAMESPACES = OperationGroup(name="Namespaces", source='RFC-0015 "Namespace Management"')

NAMESPACE_OPERATIONS: tuple[Operation, ...] = (
    _NAMESPACES(
        "list_namespaces",
        "GET /memory/namespaces",
        "List the namespaces that the caller has access to.",
        reply=NamespaceListResponse,
    ),
    _NAMESPACES(
        "get_namespace",
        "GET /memory/namespaces/{namespace:path}",
        "Get a namespace and its permissions.",
        reply=NamespaceResponse,
        etag=True,
    ),
    _NAMESPACES(
        "set_namespace_permissions",
        "PATCH /memory/namespaces/{namespace:path}",
        "Replace the permissions or the rule for writes of a namespace, or create it.",
        permission=Permission.ADMIN,
        body=NamespacePatchRequest,
        reply=NamespaceResponse,
        if_match="optional",
        etag=True,
        not_found=(),
        raises=(MemoryConflictError,),
    ),
)
